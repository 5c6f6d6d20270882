// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stats

import (
	"slices"
	"strings"
	"testing"
)

// What a server tells is read with its unit; what is missing, or no figure, is not told.
func TestRead(t *testing.T) {
	values := Read(map[string]string{"used_memory": "1048576", "latest_fork_usec": "2500",
		"used_cpu_sys": "1.25", "rdb_last_bgsave_status": "ok",
		"aof_last_write_status": "err", "aof_last_bgrewrite_status": "", "maxmemory_policy": "allkeys-lru",
		"evicted_keys": "-1", "expired_keys": "NaN", "keyspace_hits": "many", "keyspace_misses": "1e400"})
	want := map[string]float64{"memory_used_bytes": 1 << 20, "last_fork_seconds": 0.0025, "cpu_system_seconds_total": 1.25,
		"snapshot_saved": 1, "append_only_file_written": 0, "memory_full_refuses": 0}
	for i, stat := range All {
		expected, told := want[stat.Name]
		if !told {
			expected = Unknown
		}
		if values[i] != expected {
			t.Errorf("%s is %v, want %v", stat.Name, values[i], expected)
		}
	}
}

// Prometheus' conventions: base units, and counters end in _total.
func TestNames(t *testing.T) {
	var names []string
	for _, stat := range All {
		if stat.Counter != strings.HasSuffix(stat.Name, "_total") {
			t.Errorf("%s: counter %t", stat.Name, stat.Counter)
		}
		if slices.Contains(names, stat.Name) || stat.field == "" || !strings.HasSuffix(stat.Help, ".") {
			t.Errorf("%+v", stat)
		}
		names = append(names, stat.Name)
	}
}
