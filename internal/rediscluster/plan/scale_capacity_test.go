// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Data that does not fit is not moved: nothing is begun, and the numbers are told.
func TestCapacity(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*Desired, *snapshot.Snapshot)
		refused string
	}{
		"no limit":            {func(*Desired, *snapshot.Snapshot) {}, ""},
		"maxmemory is enough": {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 134<<20, 0) }, ""},
		"maxmemory is too little": {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 133<<20, 0) },
			"shard 0 would hold 133.3 MiB, more than the 133.0 MiB of maxmemory: give its instances more memory, move less to it, or set the annotation redis.middleware.hc.cn/allow-scale-in-over-capacity to true"},
		"the limit leaves room for a fork": {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 0, 150<<20) },
			"more than the 112.5 MiB of 75 % of its memory limit"},
		"a shard that receives nothing is not asked": {func(d *Desired, s *snapshot.Snapshot) {
			to := 1
			*d, *s = with(topologyOf(4)), *scaled(4)
			d.AssignReceive, d.SlotAssignments = true, []SlotAssignment{{Slots: 4100, From: []string{nodeID(0, 0)}, To: &to}}
			limit(s, 134<<20, 0)
			s.Find(2, 0).Redis.UsedMemory = 200 << 20
		}, ""},
		"a shard that an entry names receives too much": {func(d *Desired, s *snapshot.Snapshot) {
			to := 1
			*d, *s = with(topologyOf(4)), *scaled(4)
			d.AssignReceive, d.SlotAssignments = true, []SlotAssignment{{Slots: 6144, From: []string{nodeID(0, 0)}, To: &to}}
			limit(s, 120<<20, 0)
		}, "shard 1 would hold 150.0 MiB, more than the 120.0 MiB of maxmemory"},
		"allowed all the same": {func(d *Desired, s *snapshot.Snapshot) { limit(s, 133<<20, 0); d.OverCapacity = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := with(topologyOf(3)), scaled(4)
			tt.change(&d, s)
			got := decide(d, s, now)
			stall, refused := got.Step.(Stall)
			if refused != (tt.refused != "") || !strings.Contains(stall.Reason, tt.refused) {
				t.Errorf("got %s: %s, want %q", got.Step.Name(), got.Step.Why(), tt.refused)
			}
			if refused && (got.Goal != nil || !got.Healthy) {
				t.Errorf("something was begun: goal %v, healthy %v", got.Goal, got.Healthy)
			}
		})
	}
}

func limit(s *snapshot.Snapshot, maxMemory, memoryLimit int64) {
	for i := range s.Instances {
		s.Instances[i].Redis.UsedMemory, s.Instances[i].Redis.MaxMemory, s.Instances[i].MemoryLimit = 100<<20, maxMemory, memoryLimit
	}
}
