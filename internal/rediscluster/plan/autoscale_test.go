// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// The load changes the number of shards of a cluster that lacks nothing, and when nothing else is under way or asked for.
func TestAutoscale(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		to     int // 0: another step comes first, or none
	}{
		"healthy":          {func(*Desired, *snapshot.Snapshot) {}, 5},
		"as it is":         {func(d *Desired, _ *snapshot.Snapshot) { d.ScaleTo = 3 }, 0},
		"not known":        {func(d *Desired, _ *snapshot.Snapshot) { d.ScaleTo = 0 }, 0},
		"healing":          {func(_ *Desired, s *snapshot.Snapshot) { kill(s, 1, 1) }, 0},
		"a backup":         {func(_ *Desired, s *snapshot.Snapshot) { s.Backup = snapshot.Backup{Name: "monday", UID: "b"} }, 0},
		"to be hibernated": {func(d *Desired, _ *snapshot.Snapshot) { d.Hibernate = true }, 0},
		"being deleted":    {func(d *Desired, _ *snapshot.Snapshot) { d.Deleting = true }, 0},
		"not valid":        {func(d *Desired, _ *snapshot.Snapshot) { d.Problems = []string{"spec.pod: no"} }, 0},
		"a scaling":        {func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(4) }, 0},
		"a rollout": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Shards[0].UpdateRevision, s.Instances[1].Revision = "v2", "v1"
		}, 0},
		"an instance alone": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.MasterLinkUp = false }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := desired(), formed()
			d.ScaleTo, d.ScaleMost, d.ScaleWhy = 5, 9, "it is a lot"
			tt.change(&d, s)
			got := decide(d, s, now)
			set, sets := got.Step.(SetShards)
			if sets != (tt.to != 0) || set.To != tt.to {
				t.Errorf("got %s: %s, want %d shards", got.Step.Name(), got.Step.Why(), tt.to)
			}
			if sets && (got.Situation != Steady || set.From != 3 || got.Goal != nil) {
				t.Errorf("situation %s, %+v", got.Situation, set)
			}
		})
	}
}

// Shards that were to be removed stay when the data has grown meanwhile, unless the bounds allow no more. What a person asks for
// stalls.
func TestAutoscaleTakesBack(t *testing.T) {
	for most, want := range map[int]string{9: "SetShards", 4: "SetShards", 3: "Stall", 0: "Stall"} {
		d, s := with(topologyOf(3)), scaled(4)
		limit(s, 133<<20, 0)
		d.ScaleMost = most
		got := decide(d, s, now)
		if set, sets := got.Step.(SetShards); got.Step.Name() != want || sets && (set.To != 4 || !set.Back) {
			t.Errorf("at most %d: got %s: %s", most, got.Step.Name(), got.Step.Why())
		} else if sets && (got.Stalled != nil || got.Situation != Steady) {
			t.Errorf("at most %d: it fails for what is taken back: %s, %+v", most, got.Situation, got.Stalled)
		}
	}
}

// waking makes a cluster one that was hibernated and is not awake yet: an instance is not elected.
func waking(_ *Desired, s *snapshot.Snapshot) {
	s.Hibernated, s.Instances[0].Redis.Settings = v1alpha1.Topology{2, 2, 2}, map[string]string{redisconf.NoFailover: "yes"}
}

// Shards stay only if a scaling to fewer would begin and their data has no room. Before a cluster is awake the load changes nothing.
func TestAutoscaleClauses(t *testing.T) {
	few := func() (Desired, *snapshot.Snapshot) {
		d, s := with(topologyOf(3)), scaled(4)
		limit(s, 133<<20, 0)
		d.ScaleMost = 9
		return d, s
	}
	stay := func(in input) bool { set, sets := planAutoscale(in).(SetShards); return sets && set.Back }
	proven(t, few, stay, changes{
		"there is room": func(_ *Desired, s *snapshot.Snapshot) { limit(s, 200<<20, 0) },
		"it has begun": func(d *Desired, s *snapshot.Snapshot) {
			limit(s, 0, 0)
			recorded(*d, s)
			limit(s, 133<<20, 0)
		},
		"slots were to be where nobody asks for them any more": func(_ *Desired, s *snapshot.Snapshot) {
			s.Goal = &snapshot.Goal{For: byLoad("3 shards"), From: 3, Shards: uneven()}
		},
		"there are as many, and what is to be evened out has no room": func(d *Desired, s *snapshot.Snapshot) {
			*s = *formed()
			for shard, part := range uneven() {
				s.Find(shard, 0).Redis.Slots = part
			}
			introduce(s)
			s.SlotsAssigned = true
			limit(s, 100<<20, 0)
		},
	}, nil)
	more := func() (Desired, *snapshot.Snapshot) {
		d, s := healthy()
		d.ScaleTo, d.ScaleMost = 5, 9
		return d, s
	}
	proven(t, more, func(in input) bool { return planAutoscale(in) != nil }, changes{"it wakes": waking}, nil)
}

// While something is stalled, the load changes nothing.
func TestAutoscaleWaitsForAPerson(t *testing.T) {
	stalled := Decision{Step: SetShards{To: 4}, Stalled: &Stall{Cause: "UnownedKeys"}}
	if step, told := heldByStall(stalled); !Is[Stall](step) || told != stalled.Stalled {
		t.Errorf("%+v, %+v", step, told)
	}
	stalled.Step = SetShards{To: 4, Back: true}
	if step, told := heldByStall(stalled); !Is[SetShards](step) || told != stalled.Stalled {
		t.Errorf("back: %+v, %+v", step, told)
	}
}
