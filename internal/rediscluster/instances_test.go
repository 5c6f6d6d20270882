// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// How far a replica is behind is told only while it follows: one that copies everything has an offset of its own, and would seem to lack
// all that its master ever wrote.
func TestInstanceValues(t *testing.T) {
	replica := func(ordinal int, offset int64, linked bool) snapshot.Instance {
		return snapshot.Instance{Name: "c-0-" + string(rune('0'+ordinal)), Ordinal: ordinal,
			Redis: &snapshot.Redis{NodeID: string(rune('a' + ordinal)), MasterID: "a", MasterLinkUp: linked, Offset: offset}}
	}
	s := &snapshot.Snapshot{Instances: []snapshot.Instance{
		{Name: "c-0-0", Redis: &snapshot.Redis{NodeID: "a", Master: true, Offset: 5000, Slots: slots.All(), Keys: 7}},
		replica(1, 4900, true), replica(2, 1, false), replica(3, 5100, true),
		{Name: "c-1-0", Shard: 1},
	}}
	want := []metrics.Instance{
		{Pod: "c-0-0", Answers: true, Master: true, Slots: slots.Count, Keys: 7, Behind: -1},
		{Pod: "c-0-1", Answers: true, Linked: true, Behind: 100},
		{Pod: "c-0-2", Answers: true, Behind: -1},
		{Pod: "c-0-3", Answers: true, Linked: true}, // it was asked later
		{Pod: "c-1-0", Shard: 1, Behind: -1},
	}
	if diff := cmp.Diff(want, instanceValues(s.Indexed())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
