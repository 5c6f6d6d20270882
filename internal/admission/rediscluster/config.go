// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
)

// adviseConfig warns of settings that the engine does not have, as far as that is known: a
// new cluster would not start with them. A newer engine may have more.
func adviseConfig(cr *v1alpha1.RedisCluster) []string {
	engine, known := engineOf(cr.Spec.Image())
	if known {
		known = slices.Contains(redisconf.Engines(), column(engine))
	}
	var warnings []string
	for _, name := range slices.Sorted(maps.Keys(cr.Spec.Config)) {
		canonical := redisconf.Canonical(name)
		if _, reserved := redisconf.Reserved(name); reserved || has(canonical, engine, known) {
			continue
		}
		if len(cr.Spec.Modules) > 0 && !redisconf.Known(canonical) {
			continue // it may be one of a module
		}
		whose := "any engine that this operator was tested with (" + strings.Join(redisconf.Engines(), ", ") + ")"
		if known {
			whose = engine.String()
		}
		warnings = append(warnings,
			fmt.Sprintf("spec.config[%s]: is no setting of %s: instances that do not know it do not start, and running ones are not told", name,
				whose))
	}
	return warnings
}

// has reports whether the engine has a setting, or any engine when it is not known.
func has(name string, e engine, known bool) bool {
	if !known {
		return redisconf.Known(name)
	}
	_, found := redisconf.Defaults(column(e))[name]
	return found
}

// column is the engine's name in the table of settings.
func column(e engine) string { return fmt.Sprintf("%s-%d.%d", e.name, e.major, e.minor) }
