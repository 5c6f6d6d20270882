// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"bytes"
	"maps"

	helmchart "helm.sh/helm/v3/pkg/chart"
)

// PlatformUserIDs is the key below `global` by which a chart is told that the platform gives pods their user and group IDs, and
// refuses others: OpenShift's SecurityContextConstraints do.
const PlatformUserIDs = "platformUserIDs"

// WithPlatformUserIDs returns the chart with global.platformUserIDs set to true, if a template of it asks for that value.
func (c *Chart) WithPlatformUserIDs() *Chart {
	if !mentions(c.helm, PlatformUserIDs) {
		return c
	}
	loaded := *c.helm
	loaded.Values = maps.Clone(c.helm.Values)
	if loaded.Values == nil {
		loaded.Values = map[string]any{}
	}
	global, _ := loaded.Values["global"].(map[string]any)
	global = maps.Clone(global)
	if global == nil {
		global = map[string]any{}
	}
	global[PlatformUserIDs] = true
	loaded.Values["global"] = global
	told := newChart(&loaded, c.digest+"+"+PlatformUserIDs, c.schemas)
	told.structured = c.structured
	return told
}

// mentions reports whether a template of a chart or of its subcharts contains a word.
func mentions(c *helmchart.Chart, word string) bool {
	for _, template := range c.Templates {
		if bytes.Contains(template.Data, []byte(word)) {
			return true
		}
	}
	for _, part := range c.Dependencies() {
		if mentions(part, word) {
			return true
		}
	}
	return false
}
