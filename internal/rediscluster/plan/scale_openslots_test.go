// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// comeBack makes the replica of shard 2 a master that has come back after the other one took over: it has keys of a slot that c-0-0
// owns, and Redis has marked the slot.
func comeBack(s *snapshot.Snapshot, slot uint16, keys int64) {
	r := s.Find(2, 1).Redis
	r.Master, r.MasterID, r.Keys = true, "", keys
	r.Importing, r.OpenKeys[slot] = map[uint16]string{slot: nodeID(0, 0)}, keys
	s.Claims = []snapshot.Claim{{Name: "data-c-2-1"}}
	introduce(s)
}

// What becomes of open slots: those that redis-cli --cluster fix knows, and those it
// gives up on.
func TestOpenSlots(t *testing.T) {
	const slot = 100 // c-0-0 owns it
	migrating := func(s *snapshot.Snapshot, shard int, to string) {
		s.Find(shard, 0).Redis.Migrating = map[uint16]string{slot: to}
	}
	importing := func(s *snapshot.Snapshot, shard int, from string, keys int64) {
		r := s.Find(shard, 0).Redis
		r.Importing = map[uint16]string{slot: from}
		if keys > 0 {
			r.OpenKeys[slot] = keys
		}
	}
	own := func(s *snapshot.Snapshot, shard int) {
		for i := range s.Instances {
			r := s.Instances[i].Redis
			r.Slots = r.Slots.Subtract(slots.Of(slot))
		}
		if shard >= 0 {
			s.Find(shard, 0).Redis.Slots = s.Find(shard, 0).Redis.Slots.Union(slots.Of(slot))
		}
		introduce(s)
	}
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		want   string
	}{
		"both ends marked, keys on the way": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			importing(s, 1, nodeID(0, 0), 3)
		}, "finish c-0-0 > c-1-0"},
		"both ends marked, nothing moved": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			importing(s, 1, nodeID(0, 0), 0)
		}, "close c-0-0 c-1-0"},
		"only the owner is marked":       {func(s *snapshot.Snapshot) { migrating(s, 0, nodeID(1, 0)) }, "close c-0-0"},
		"only the destination is marked": {func(s *snapshot.Snapshot) { importing(s, 1, nodeID(0, 0), 0) }, "close c-1-0"},
		"only the destination is marked, and another does not answer": {func(s *snapshot.Snapshot) {
			importing(s, 1, nodeID(0, 0), 0)
			lose(s, 2, 1)
		}, "close c-1-0"},
		"the owner's mark was lost in a failover": {func(s *snapshot.Snapshot) { importing(s, 1, nodeID(0, 1), 2) }, "reopen c-0-0 > c-1-0"},
		"the owner was told of the new destination": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			s.Find(1, 0).Redis.OpenKeys[slot] = 1
		}, "finish c-0-0 > c-1-0"},
		"and the destination has not heard of it": {func(s *snapshot.Snapshot) {
			importing(s, 1, nodeID(0, 0), 2)
			s.Find(1, 0).Redis.Peers[nodeID(0, 0)] = snapshot.Peer{ID: nodeID(0, 0), IP: podIP(0, 0), Master: true, Connected: true}
		}, "reopen c-0-0 > c-1-0"},
		"the destination's mark was lost in a failover": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 1))
			s.Find(1, 0).Redis.OpenKeys[slot] = 2
		}, "reopen c-0-0 > c-1-0"},
		"the destination is gone for good": {func(s *snapshot.Snapshot) { migrating(s, 0, nodeID(9, 9)) }, "close c-0-0"},
		"the owner imports what it owns":   {func(s *snapshot.Snapshot) { importing(s, 0, nodeID(1, 0), 4) }, "close c-0-0"},
		"a former owner kept its mark": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			own(s, 1)
		}, "close c-0-0"},
		"several destinations, one with keys": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			importing(s, 1, nodeID(0, 0), 0)
			importing(s, 2, nodeID(0, 0), 1)
		}, "close c-1-0"},
		"several destinations with keys: the one with most first": {func(s *snapshot.Snapshot) {
			importing(s, 1, nodeID(0, 0), 1)
			importing(s, 2, nodeID(0, 0), 2)
		}, "finish c-0-0 > c-2-0"},
		"several destinations with as many keys: the first": {func(s *snapshot.Snapshot) {
			importing(s, 1, nodeID(0, 0), 2)
			importing(s, 2, nodeID(0, 0), 2)
		}, "finish c-0-0 > c-1-0"},
		"the goal leaves it where it is": {func(s *snapshot.Snapshot) {
			s.Goal = asItStands()
			migrating(s, 0, nodeID(1, 0))
			importing(s, 1, nodeID(0, 0), 0)
		}, "close c-0-0 c-1-0"},
		"it was to go to the shard that it is in": {func(s *snapshot.Snapshot) {
			s.Goal = asItStands()
			migrating(s, 0, nodeID(0, 1))
		}, "close c-0-0"},
		"the goal does not know the shard of its destination": {func(s *snapshot.Snapshot) {
			more := joined(4)
			s.Goal, s.Shards, s.Instances = asItStands(), more.Shards, more.Instances
			for _, pod := range s.Reachable() {
				pod.Redis.OpenKeys = map[uint16]int64{}
			}
			migrating(s, 0, nodeID(3, 0))
		}, "close c-0-0"},
		"a former master that nobody may empty takes nothing either": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			importing(s, 1, nodeID(0, 0), 3)
			comeBack(s, slot, 9)
			s.Claims = nil
		}, "finish c-0-0 > c-1-0"},
		"a former master came back with an old copy: it takes nothing, and is emptied": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			importing(s, 1, nodeID(0, 0), 3)
			comeBack(s, slot, 9)
		}, "renew c-2-1"},
		"so it does when nothing else is open": {func(s *snapshot.Snapshot) { comeBack(s, slot, 9) }, "renew c-2-1"},
		"not before it is certain that every slot has an owner": {func(s *snapshot.Snapshot) {
			comeBack(s, slot, 9)
			own(s, -1)
			s.Find(1, 0).Redis.OpenKeys[slot] = 3
		}, "assign c-1-0"},
		"an old copy of what nobody owns is better than none": {func(s *snapshot.Snapshot) {
			comeBack(s, slot, 9)
			own(s, -1)
		}, "assign c-2-1"},
		"its owner gives it the slot: then it is no former master": {func(s *snapshot.Snapshot) {
			comeBack(s, slot, 9)
			migrating(s, 0, nodeID(2, 1))
		}, "finish c-0-0 > c-2-1"},
		"nobody owns it: who has the keys does": {func(s *snapshot.Snapshot) {
			own(s, -1)
			importing(s, 2, nodeID(0, 0), 2)
		}, "assign c-2-0"},
		"a master did not say what it holds": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			s.Find(2, 0).Redis.OpenKeys = nil
		}, "wait"},
		"the destination does not answer": {func(s *snapshot.Snapshot) {
			migrating(s, 0, nodeID(1, 0))
			lose(s, 1, 0)
		}, "wait"},
	} {
		t.Run(name, func(t *testing.T) {
			s := formed()
			for i := range s.Instances {
				s.Instances[i].Redis.OpenKeys = map[uint16]int64{}
			}
			tt.change(s)
			step := decide(desired(), s, now).Step
			if got := told(step); got != tt.want {
				t.Errorf("got %s (%s: %s), want %s", got, step.Name(), step.Why(), tt.want)
			}
		})
	}
}

// asItStands is a goal that the formed cluster has reached.
func asItStands() *snapshot.Goal {
	return &snapshot.Goal{For: "3 shards", From: 3, Shards: slots.All().Split(3)}
}

// Marks of replicas, and of former masters that have come back, say nothing: nothing is closed, and nobody has to say which keys it holds.
func TestMarksThatSayNothing(t *testing.T) {
	for name, change := range map[string]func(*snapshot.Snapshot){
		"of a replica":       func(s *snapshot.Snapshot) { s.Find(2, 1).Redis.Importing = map[uint16]string{100: nodeID(0, 0)} },
		"of a former master": func(s *snapshot.Snapshot) { comeBack(s, 100, 9) },
	} {
		s := formed()
		s.Find(2, 1).Redis.OpenKeys = map[uint16]int64{}
		change(s)
		if step := openSlots(ShapeOf(desired(), s, now).in).step(); step != nil {
			t.Errorf("%s: %s: %s", name, step.Name(), step.Why())
		}
	}
}

// told is a step about slots in a few words.
func told(step Step) string {
	switch step := step.(type) {
	case MoveSlots:
		return fmt.Sprintf("finish %s > %s", step.Moves[0].From.Pod, step.Moves[0].To.Pod)
	case RepairSlots:
		return fmt.Sprintf("reopen %s > %s", step.Moves[0].From.Pod, step.Moves[0].To.Pod)
	case StabilizeSlots:
		words := []string{"close"}
		for _, c := range step.Stabilizations {
			words = append(words, c.On.Pod)
		}
		return strings.Join(words, " ")
	case AssignSlots:
		return "assign " + step.Assignments[0].To.Pod
	case Recreate:
		return "renew " + step.Pod
	case Wait:
		return "wait"
	}
	return step.Name()
}

// No master gives slots while it receives others: its epoch would rise above that of who has just received from it.
func TestMovesGoOneWay(t *testing.T) {
	s := formed()
	for i, slot := range []uint16{100, 6000, 11000} { // owned by c-0-0, c-1-0, c-2-0: each gives one to the next
		source, destination := s.Find(i, 0).Redis, s.Find((i+1)%3, 0).Redis
		source.Migrating = map[uint16]string{slot: destination.NodeID}
		destination.Importing = map[uint16]string{slot: source.NodeID}
		destination.OpenKeys = map[uint16]int64{slot: 2}
	}
	step, ok := decide(desired(), s, now).Step.(MoveSlots)
	if !ok || len(step.Moves) != 1 || !strings.Contains(step.Why(), "3 slots are left to move") {
		t.Fatalf("got %+v, want one of the three moves", decide(desired(), s, now).Step)
	}
}

// An atomic migration that leads nowhere any more is cancelled where it was told.
func TestJobs(t *testing.T) {
	d := with(topologyOf(4))
	job := snapshot.Job{Slots: slots.Range(4096, 4100), SourceID: nodeID(0, 0), TargetID: nodeID(3, 0)}
	for name, tt := range map[string]struct {
		method slots.AtomicMethod
		want   []string
		takers string
	}{"told to the source": {slots.AtomicSource, []string{"c-0-0"}, "c-3-0"},
		"told to the destination": {slots.AtomicDestination, []string{"c-3-0"}, ""}} {
		t.Run(name, func(t *testing.T) {
			s := recorded(d, joined(4))
			for _, in := range s.Reachable() {
				in.Redis.Atomic = tt.method
				if in.Ordinal == 0 && (in.Shard == 0 || in.Shard == 3) {
					in.Redis.Jobs = []snapshot.Job{job}
				}
			}
			if step, ok := decide(d, s, now).Step.(MoveSlots); !ok || !step.Atomic {
				t.Errorf("a job on its way: %+v", decide(d, s, now).Step)
			}
			if tt.method == slots.AtomicSource {
				wantHandedOver(t, s)
			}
			cancel, ok := decide(with(topologyOf(3)), s, now).Step.(CancelJobs)
			var on []string
			for _, pod := range cancel.On {
				on = append(on, pod.Pod)
			}
			if diff := cmp.Diff(tt.want, on); !ok || diff != "" {
				t.Errorf("cancelled on (-want +got):\n%s", diff)
			}
			if takers := pods(cancel.Takers); takers != tt.takers {
				t.Errorf("%q may be taking slots over, want %q", takers, tt.takers)
			}
			d := d
			if d.KeysPerSecond = 10; decide(d, recorded(d, joined(4)), now).Step.(MoveSlots).Atomic {
				t.Error("a limit was set, and the engine moves slots by itself")
			}
		})
	}
}

// wantHandedOver asserts that a source is not told to stop while its slots are being taken over: it would let clients write on.
func wantHandedOver(t *testing.T, s *snapshot.Snapshot) {
	t.Helper()
	source, taker := s.Find(0, 0).Redis, s.Find(3, 0).Redis
	for name, happens := range map[string]func() (undo func()){
		"clients of the source wait": func() func() {
			source.Jobs[0].HandingOver = true
			return func() { source.Jobs[0].HandingOver = false }
		},
		"the source does not know yet": func() func() {
			was := taker.Slots
			taker.Slots = taker.Slots.Union(source.Jobs[0].Slots)
			return func() { taker.Slots = was }
		},
		"who may have taken them does not answer": func() func() {
			pod := s.Find(3, 0)
			pod.Redis = nil
			return func() { pod.Redis = taker }
		},
	} {
		undo := happens()
		for shards := 3; shards <= 4; shards++ {
			step := decide(with(topologyOf(shards)), s, now).Step
			if waits := blockedBy(step) == OwnershipSettled; Is[CancelJobs](step) || shards == 3 && !waits {
				t.Errorf("%s, %d shards: %s: %s", name, shards, step.Name(), step.Why())
			}
		}
		undo()
	}
}
