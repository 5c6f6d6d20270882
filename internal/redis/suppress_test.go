// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import "testing"

func TestMishearsRoles(t *testing.T) {
	for _, tt := range []struct {
		engine  Engine
		version string
		want    bool
	}{
		{EngineRedis, "7.0.15", true},
		{EngineRedis, "7.2.4", true},
		{EngineRedis, "7.4.0", false},
		{EngineRedis, "8.0.6", false},
		{EngineRedis, "unstable", false},
		{EngineValkey, "8.1.1", false},
	} {
		if got := hasRoleBug(View{Engine: tt.engine, Version: tt.version}); got != tt.want {
			t.Errorf("%s %s: %t, want %t", tt.engine, tt.version, got, tt.want)
		}
	}
}
