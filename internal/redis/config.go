// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"maps"
	"slices"
	"strings"
)

// ConfigSetAll changes settings of the running server, all of them or, when one is refused, none. The error names the one
// that the server blames. No settings send nothing.
func (n *Node) ConfigSetAll(ctx context.Context, settings map[string]string) error {
	if len(settings) == 0 {
		return nil
	}
	names := slices.Sorted(maps.Keys(settings))
	c := command{name: "CONFIG SET " + strings.Join(names, " "), args: []any{"CONFIG", "SET"}}
	for _, name := range names {
		c.args = append(c.args, name, settings[name])
		if slices.Contains(secretSettings, name) {
			c.secrets = append(c.secrets, settings[name])
		}
	}
	return n.tellCommand(ctx, c)
}
