// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// uneven is where three shards are to have their slots: ten of the first are the second's.
func uneven() []slots.Set {
	shards := slots.All().Split(3)
	ten := slots.Range(0, 9)
	shards[0], shards[1] = shards[0].Subtract(ten), shards[1].Union(ten)
	return shards
}

func followsLoad() (Desired, *snapshot.Snapshot) {
	d, s := desired(), formed()
	d.FollowsLoad, d.ByLoad = true, &ByLoad{Shards: uneven(), Why: "shard 0 bears a lot"}
	return d, s
}

// Slots move because of the load when nothing else is under way or asked for.
func TestPlanBalance(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		moves  bool
	}{
		"healthy":          {func(*Desired, *snapshot.Snapshot) {}, true},
		"a report":         {func(d *Desired, _ *snapshot.Snapshot) { d.FollowsLoad = false }, false},
		"nothing is hot":   {func(d *Desired, _ *snapshot.Snapshot) { d.ByLoad = nil }, false},
		"as it is":         {func(d *Desired, _ *snapshot.Snapshot) { d.ByLoad.Shards = slots.All().Split(3) }, false},
		"of other shards":  {func(d *Desired, _ *snapshot.Snapshot) { d.ByLoad.Shards = slots.All().Split(4) }, false},
		"healing":          {func(_ *Desired, s *snapshot.Snapshot) { kill(s, 1, 1) }, false},
		"a backup":         {func(_ *Desired, s *snapshot.Snapshot) { s.Backup = snapshot.Backup{Name: "monday", UID: "b"} }, false},
		"to be hibernated": {func(d *Desired, _ *snapshot.Snapshot) { d.Hibernate = true }, false},
		"assigned":         {func(d *Desired, _ *snapshot.Snapshot) { d.AssignReceive = true }, false},
		"being deleted":    {func(d *Desired, _ *snapshot.Snapshot) { d.Deleting = true }, false},
		"paused":           {func(d *Desired, _ *snapshot.Snapshot) { d.Paused = true }, false},
		"not valid":        {func(d *Desired, _ *snapshot.Snapshot) { d.Problems = []string{"spec.pod: no"} }, false},
		"more shards":      {func(d *Desired, _ *snapshot.Snapshot) { d.ScaleTo = 5 }, false},
		"a rollout": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Shards[0].UpdateRevision, s.Instances[1].Revision = "v2", "v1"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := followsLoad()
			tt.change(&d, s)
			got := decide(d, s, now)
			record, records := got.Step.(RecordGoal)
			if records != tt.moves || records && (record.ByLoad == nil || count(record.Moves) != 10 || !IsByLoad(got.Goal)) {
				t.Errorf("got %s: %s, %+v", got.Step.Name(), got.Step.Why(), got.Goal)
			}
		})
	}
}

// What keeps slots from moving because of the load does so by itself, whatever else would come first.
func TestBalanceClauses(t *testing.T) {
	proven(t, followsLoad, func(in input) bool { return planBalance(in) != nil }, changes{
		"slots move already": func(_ *Desired, s *snapshot.Snapshot) {
			s.Goal = &snapshot.Goal{For: "another", From: 3, Shards: uneven()}
		},
		"it wakes":                 waking,
		"it is to be hibernated":   func(d *Desired, _ *snapshot.Snapshot) { d.Hibernate = true },
		"slots are assigned":       func(d *Desired, _ *snapshot.Snapshot) { d.AssignReceive = true },
		"an instance is not heard": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"an instance lacks a module": func(d *Desired, s *snapshot.Snapshot) {
			d.Modules, s.Shards[0].UpdateRevision, s.Instances[1].Revision = "json", "new", "old"
		},
	}, nil)
}

func TestIsByLoad(t *testing.T) {
	if IsByLoad(nil) || IsByLoad(&snapshot.Goal{For: "3 shards"}) || !IsByLoad(&snapshot.Goal{For: byLoad("3 shards")}) {
		t.Error("a goal that the load asks for is not told from others")
	}
}

// A goal by load is followed to its end and then left at that, given up with what asked for it, and gives way to another number of shards.
func TestGoalByLoadIsKept(t *testing.T) {
	d, s := followsLoad()
	s.Goal = decide(d, s, now).Goal
	d.ByLoad = nil // while slots move it is not known what they bear
	got := decide(d, s, now)
	if move, moves := got.Step.(MoveSlots); !moves || count(move.Moves) != 10 || !got.Healthy {
		t.Fatalf("got %s: %s", got.Step.Name(), got.Step.Why())
	}
	off := d
	off.FollowsLoad = false
	if got := decide(off, s, now); !Is[None](got.Step) || got.Goal != nil {
		t.Errorf("without balance: %s: %s, %+v", got.Step.Name(), got.Step.Why(), got.Goal)
	}
	for i, part := range uneven() {
		s.Find(i, 0).Redis.Slots = part
	}
	introduce(s)
	for name, d := range map[string]Desired{"reached": d, "and balance is removed": off} {
		if got := decide(d, s, now); !Is[None](got.Step) || got.Goal != nil {
			t.Errorf("%s: %s: %s, %+v", name, got.Step.Name(), got.Step.Why(), got.Goal)
		}
		s.Goal = nil
	}
	more := scaled(4)
	recorded := &snapshot.Goal{For: byLoad("3 shards"), From: 3, Shards: append(uneven(), slots.Set{})}
	more.Goal = recorded
	wanted := with(topologyOf(4))
	wanted.FollowsLoad = true
	if got := decide(wanted, more, now); got.Goal != nil && IsByLoad(got.Goal) {
		t.Errorf("it is kept for four shards: %s: %+v", got.Step.Name(), got.Goal)
	}
}
