// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// halfMoved is a scaling from three to four shards of which a slot is open: the last shard has one of its keys.
func halfMoved() (Desired, *snapshot.Snapshot) {
	d := with(topologyOf(4))
	s := recorded(d, joined(4))
	for _, in := range s.Reachable() {
		in.Redis.OpenKeys = map[uint16]int64{}
	}
	slot := decide(d, s, now).Moves[0].Slots.Take(1)
	for n := range slot.Slots() {
		s.Find(0, 0).Redis.Migrating, s.Find(3, 0).Redis.Importing = map[uint16]string{n: nodeID(3, 0)}, map[uint16]string{n: nodeID(0, 0)}
		s.Find(0, 0).Redis.OpenKeys[n], s.Find(3, 0).Redis.OpenKeys[n] = 5, 1
	}
	return d, s
}

// A slot of which keys have moved is finished, and towards the instance that has most of them.
func TestOpenSlotIsFinished(t *testing.T) {
	finished := func(in input) bool {
		step, ok := planMove(in).(MoveSlots)
		return ok && len(step.Moves) == 1 && step.Moves[0].To.Pod == "c-3-0" && step.Moves[0].From.Pod == "c-0-0" &&
			step.Moves[0].Slots.Len() == 1
	}
	also := func(shard int, keys int64) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			for n := range s.Find(0, 0).Redis.Migrating {
				s.Find(shard, 0).Redis.OpenKeys[n] = keys
			}
		}
	}
	proven(t, halfMoved, finished, changes{
		"another has more of its keys": also(2, 2),
		"no key has moved, and nobody wants it moved": func(d *Desired, s *snapshot.Snapshot) {
			also(3, 0)(d, s)
			s.Goal = nil
		},
		"a master did not say which keys it has": func(_ *Desired, s *snapshot.Snapshot) { s.Find(2, 0).Redis.OpenKeys = nil },
		"it has two owners": func(_ *Desired, s *snapshot.Snapshot) {
			for n := range s.Find(0, 0).Redis.Migrating {
				s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Union(slots.Of(n))
			}
		},
	}, changes{
		"its owner has just received others": func(_ *Desired, s *snapshot.Snapshot) { received(s, time.Second) },
	})
	for name, tt := range map[string]struct {
		change    func(*Desired, *snapshot.Snapshot)
		step      string
		blockedBy Predicate
	}{
		"while a master does not say which keys it has": {
			func(_ *Desired, s *snapshot.Snapshot) { s.Find(2, 0).Redis.OpenKeys = nil }, "Wait", SnapshotComplete},
		"one key elsewhere is as good as many":           {also(3, 1), "MoveSlots", ""},
		"none has moved, and the goal wants it to go on": {also(3, 0), "MoveSlots", ""},
		"none has moved, and nobody wants it": {func(d *Desired, s *snapshot.Snapshot) {
			also(3, 0)(d, s)
			s.Goal = nil
		}, "StabilizeSlots", ""},
		"none has moved, and the goal was for something else": {func(d *Desired, s *snapshot.Snapshot) {
			also(3, 0)(d, s)
			s.Goal.For = "another"
		}, "StabilizeSlots", ""},
		"none has moved, and its destination is gone": {func(d *Desired, s *snapshot.Snapshot) {
			also(3, 0)(d, s)
			for n := range s.Find(0, 0).Redis.Migrating {
				s.Find(0, 0).Redis.Migrating[n] = "gone"
			}
			s.Find(3, 0).Redis.Importing = nil
			s.Goal = nil
		}, "StabilizeSlots", ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := halfMoved()
			tt.change(&d, s)
			step := planMove(ShapeOf(d, s, now).in)
			if step == nil || step.Name() != tt.step || blockedBy(step) != tt.blockedBy {
				t.Errorf("got %+v, want %s", step, tt.step)
			}
		})
	}
}

// An open slot that nobody owns, or more than one, is left to gossip and to planAssign: nothing says who is to give it.
func TestOpenSlotWithoutOneOwner(t *testing.T) {
	for name, change := range map[string]func(s *snapshot.Snapshot, slot uint16){
		"none": func(s *snapshot.Snapshot, slot uint16) {
			s.Find(0, 0).Redis.Slots = s.Find(0, 0).Redis.Slots.Subtract(slots.Of(slot))
		},
		"two": func(s *snapshot.Snapshot, slot uint16) {
			s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Union(slots.Of(slot))
		},
	} {
		d, s := halfMoved()
		for n := range s.Find(0, 0).Redis.Migrating {
			change(s, n)
		}
		if r := openSlots(ShapeOf(d, s, now).in); len(r.finish)+len(r.close)+len(r.reopen) > 0 || r.unknown != "" {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// A former master which has come back holds an old copy. It is none if its data may be the shard's.
func TestStaleMaster(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		s.Find(2, 1).Redis.OpenKeys = map[uint16]int64{}
		comeBack(s, 100, 9)
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return in.staleMaster(in.snap.Find(2, 1)) }, changes{
		"it is a replica":               func(_ *Desired, s *snapshot.Snapshot) { s.Find(2, 1).Redis.Master = false },
		"it owns a slot":                func(_ *Desired, s *snapshot.Snapshot) { s.Find(2, 1).Redis.Slots = slots.Of(100) },
		"no other one of it owns slots": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 0) },
		"a master is giving it the slot": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Migrating = map[uint16]string{100: nodeID(2, 1)}
		},
	}, changes{
		"a master is giving the slot to another": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Migrating = map[uint16]string{100: nodeID(1, 0)}
		},
	})
}

// The marks that are taken off, and the slots that the reason names, are the same.
func TestClosesEachMark(t *testing.T) {
	d, s := desired(), formed()
	for _, in := range s.Reachable() {
		in.Redis.OpenKeys = map[uint16]int64{}
	}
	s.Find(0, 0).Redis.Migrating = map[uint16]string{7: nodeID(1, 0)}
	s.Find(1, 0).Redis.Importing = map[uint16]string{7: nodeID(0, 0)}
	s.Find(2, 0).Redis.Importing = map[uint16]string{8: nodeID(0, 0)}
	step, _ := planMove(ShapeOf(d, s, now).in).(StabilizeSlots)
	got := map[string]string{}
	for _, closing := range step.Stabilizations {
		got[closing.On.Pod] = closing.Slots.String()
	}
	if diff := cmp.Diff(map[string]string{"c-0-0": "7", "c-1-0": "7", "c-2-0": "8"}, got); diff != "" || !containsWhy(step, "slots 7-8 ") {
		t.Errorf("%s%s", step.Why(), diff)
	}
}

// A goal is not made anew while it is not certain who owns what, and begins where the recorded one began.
func TestGoalOfAnUncertainCluster(t *testing.T) {
	d, s := with(topologyOf(4)), joined(4)
	lose(s, 0, 0)
	in := ShapeOf(d, s, now).in
	if goal, err := in.goal(); goal != nil || err == nil {
		t.Errorf("got %v, %v", goal, err)
	}
	if step := planRefusal(in); step != nil {
		t.Errorf("got %+v", step)
	}
	d, s = with(topologyOf(5)), scaled(4)
	s.Goal = &snapshot.Goal{For: "another", From: 3}
	if goal, err := ShapeOf(d, s, now).in.goal(); err != nil || goal.From != 3 {
		t.Errorf("got %+v, %v, want one from 3 shards on", goal, err)
	}
}

// A scaling that can be, and is not certain, says for what it waits.
func TestRefusalWaits(t *testing.T) {
	d := with(topologyOf(4))
	s := joined(4)
	for ordinal := range 2 {
		s.Find(3, ordinal).Redis.Master, s.Find(3, ordinal).Redis.MasterID = false, nodeID(0, 0)
	}
	step := planRefusal(ShapeOf(d, s, now).in)
	if blockedBy(step) != ShardHealthy || !containsWhy(step, "to shard 3") {
		t.Errorf("without a master: %+v", step)
	}
	if step := planRefusal(ShapeOf(d, joined(4), now).in); blockedBy(step) != SnapshotComplete {
		t.Errorf("with one: %+v", step)
	}
	receives := d
	receives.AssignReceive, receives.SlotAssignments = true, []SlotAssignment{{Slots: 5, From: []string{nodeID(0, 0)}}}
	if step := planRefusal(ShapeOf(receives, s, now).in); blockedBy(step) != ShardHealthy || !containsWhy(step, "to shard 3") {
		t.Errorf("without a master, and with assignments: %+v", step)
	}
	s.Goal = recorded(d, joined(4)).Goal
	in := ShapeOf(d, s, now).in
	step = planRefusal(in)
	if blockedBy(step) != ShardHealthy || !containsWhy(step, "to a shard that has no master") || len(in.moves(s.Goal)) > 0 {
		t.Errorf("the master is lost when slots are on their way: %+v, %+v", step, in.moves(s.Goal))
	}
}
