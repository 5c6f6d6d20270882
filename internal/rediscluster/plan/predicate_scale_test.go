// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A scaling begins when it is certain who owns what.
func TestGoalNeedsCertainty(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) { return with(topologyOf(4)), joined(4) }
	begins := func(in input) bool { return planGoal(in) != nil }
	uncertain := changes{
		"an instance does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"a slot is owned by nobody":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Slots = slots.Range(1, 5460) },
		"a slot is owned twice":       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Slots = slots.Of(0) },
		"a slot is owned by masters of two shards": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.Slots = s.Find(1, 0).Redis.Slots.Union(slots.Of(0))
			introduce(s)
		},
		"as many slots are owned as there are, one of them twice": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Slots, s.Find(1, 1).Redis.Slots = slots.Range(1, 5460), slots.Of(7)
		},
		"the new shard has no master": func(_ *Desired, s *snapshot.Snapshot) {
			for ordinal := range 2 {
				s.Find(3, ordinal).Redis.Master, s.Find(3, ordinal).Redis.MasterID = false, nodeID(0, 0)
			}
		},
		"a shard has two masters, of which somebody has not heard": func(_ *Desired, s *snapshot.Snapshot) {
			divide(s)
			peer(s, "c-0-0", "c-1-1", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
		},
	}
	for _, rule := range []func(input) bool{certain, begins} {
		proven(t, situation, rule, uncertain, changes{
			"a shard has two masters, and all know it": func(_ *Desired, s *snapshot.Snapshot) { divide(s) },
			"a pod is not ready":                       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Ready = false },
		})
	}
	proven(t, situation, begins, changes{
		"modules are not loaded": func(d *Desired, s *snapshot.Snapshot) {
			d.Modules = "json"
			s.Shards[1].UpdateRevision, s.Find(1, 1).Revision = "new", "old"
		},
	}, nil)
}

// divide gives the second instance of a shard one of the slots of the first.
func divide(s *snapshot.Snapshot) {
	was, is := s.Find(1, 0).Redis, s.Find(1, 1).Redis
	is.Master, is.MasterID, is.Slots, was.Slots = true, "", slots.Of(6000), was.Slots.Subtract(slots.Of(6000))
	introduce(s)
}

// An atomic migration that is under way goes on only if it is one of the moves.
func TestCancelsOtherJobs(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d := with(topologyOf(4))
		s := recorded(d, joined(4))
		move := decide(d, s, now).Moves[0]
		for _, in := range s.Reachable() {
			in.Redis.Atomic = slots.AtomicSource
		}
		s.Find(0, 0).Redis.Jobs = []snapshot.Job{{Slots: move.Slots.Take(10), SourceID: move.From.NodeID, TargetID: move.To.NodeID}}
		return d, s
	}
	job := func(change func(*snapshot.Job)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) { change(&s.Find(0, 0).Redis.Jobs[0]) }
	}
	rule := func(in input) bool { return !Is[CancelJobs](planMove(in)) }
	proven(t, situation, rule, changes{
		"to another node":     job(func(j *snapshot.Job) { j.TargetID = nodeID(1, 0) }),
		"of another slot too": job(func(j *snapshot.Job) { j.Slots = j.Slots.Union(slots.Of(16383)) }),
	}, changes{
		"which another end is told about": job(func(j *snapshot.Job) { j.SourceID = nodeID(1, 0) }),
	})
	taking := func() (Desired, *snapshot.Snapshot) {
		d, s := situation()
		s.Find(3, 0).Redis.Jobs, s.Find(0, 0).Redis.Jobs = s.Find(0, 0).Redis.Jobs, nil
		for _, in := range s.Reachable() {
			in.Redis.Atomic = slots.AtomicDestination
		}
		return d, s
	}
	proven(t, taking, rule, changes{
		"from another node": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Jobs[0].SourceID = nodeID(1, 0) },
	}, nil)
}

// Whole slots move by the engine only where both ends do it in the same way, and no slot is open.
func TestMovesAtomically(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d := with(topologyOf(4))
		s := recorded(d, joined(4))
		for _, in := range s.Reachable() {
			in.Redis.Atomic = slots.AtomicSource
		}
		return d, s
	}
	rule := func(in input) bool { step, ok := planMove(in).(MoveSlots); return ok && step.Atomic }
	proven(t, situation, rule, changes{
		"neither of them can": func(_ *Desired, s *snapshot.Snapshot) {
			for _, in := range s.Reachable() {
				in.Redis.Atomic = ""
			}
		},
		"the source cannot":            func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Atomic = "" },
		"the destination cannot":       func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Atomic = "" },
		"they do it in different ways": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Atomic = slots.AtomicDestination },
		"it is to take its time":       func(d *Desired, _ *snapshot.Snapshot) { d.KeysPerSecond = 10 },
		"one slot is half moved": func(_ *Desired, s *snapshot.Snapshot) {
			for _, in := range s.Reachable() {
				in.Redis.OpenKeys = map[uint16]int64{}
			}
			s.Find(0, 0).Redis.Migrating, s.Find(3, 0).Redis.Importing = map[uint16]string{0: nodeID(3, 0)}, map[uint16]string{0: nodeID(0, 0)}
			s.Find(3, 0).Redis.OpenKeys = map[uint16]int64{0: 1}
		},
	}, nil)
}

// New masters get the functions of the master that has most.
func TestCopiesFunctions(t *testing.T) {
	s := joined(5)
	s.Find(1, 0).Redis.Libraries, s.Find(2, 0).Redis.Libraries = 2, 2
	s.Find(4, 0).Redis.Libraries = 1
	d := with(topologyOf(6)) // of the last shard nothing is there yet
	step, _ := planFunctions(ShapeOf(d, s, now).in).(CopyFunctions)
	if diff := cmp.Diff([]string{"c-1-0", "c-3-0"}, []string{step.From.Pod, pods(step.To)}); diff != "" {
		t.Error(diff)
	}
	s.Find(3, 0).Redis.Libraries = 1
	if step := planFunctions(ShapeOf(d, s, now).in); step != nil {
		t.Errorf("all have some, and got %+v", step)
	}
	for _, in := range s.Reachable() {
		in.Redis.Libraries = 0
	}
	s.Find(3, 0).Redis.Master = false
	if step := planFunctions(ShapeOf(d, s, now).in); step != nil {
		t.Errorf("there are none, and got %+v", step)
	}
	if step := planFunctions(ShapeOf(desired(), fresh(), now).in); step != nil {
		t.Errorf("there is no master yet, and got %+v", step)
	}
}

func pods(targets []Target) string {
	names := make([]string, len(targets))
	for i, target := range targets {
		names[i] = target.Pod
	}
	return list(names)
}

// What instances had, and where it is looked for again.
func TestVolumesAreRemembered(t *testing.T) {
	claims := func() (Desired, *snapshot.Snapshot) {
		s := stored(formed())
		s.DataVolumes = nil
		d := desired()
		d.ClaimBytes = 1 << 30
		return d, s
	}
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		want   string
		known  bool
	}{
		"a master with slots":   {func(*Desired, *snapshot.Snapshot) {}, "uid-c-1-0", true},
		"without slots or keys": {func(_ *Desired, s *snapshot.Snapshot) { giveShard(s, 1, 0) }, "", false},
		"without slots, with a key": {func(_ *Desired, s *snapshot.Snapshot) { giveShard(s, 1, 0); s.Find(1, 0).Redis.Keys = 1 },
			"uid-c-1-0", true},
		"a replica in sync":             {func(_ *Desired, s *snapshot.Snapshot) { swapped(s, 1) }, "uid-c-1-0", true},
		"a replica that is not":         {func(_ *Desired, s *snapshot.Snapshot) { unsynced(swapped(s, 1), 1, 0) }, "", false},
		"its claim was not seen":        {func(_ *Desired, s *snapshot.Snapshot) { s.Claims = nil }, "", false},
		"its volume is shared":          {func(d *Desired, s *snapshot.Snapshot) { s.Claims, d.ClaimBytes = nil, 0 }, notItsOwn, true},
		"its data goes with the pod":    {func(d *Desired, _ *snapshot.Snapshot) { d.Ephemeral = true }, "", false},
		"it is on a node":               {func(d *Desired, _ *snapshot.Snapshot) { d.OnNode = true }, "node/node0", true},
		"it is on a node not known yet": {func(d *Desired, s *snapshot.Snapshot) { d.OnNode, s.Find(1, 0).NodeName = true, "" }, "", false},
		"it does not answer, and had some": {func(_ *Desired, s *snapshot.Snapshot) {
			lose(s, 1, 0).DataVolumes = map[string]string{"c-1-0": "before"}
		}, "before", true},
		"the spec cannot be followed": {func(d *Desired, s *snapshot.Snapshot) {
			d.Problems, s.DataVolumes = []string{"x"}, map[string]string{"c-1-0": "before"}
		}, "before", true},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := claims()
			tt.change(&d, s)
			got, known := ShapeOf(d, s, now).in.dataVolumes(None{})["c-1-0"]
			if got != tt.want || known != tt.known {
				t.Errorf("got %q, %t, want %q, %t", got, known, tt.want, tt.known)
			}
		})
	}
}

// Names of pods that the cluster has, and others.
func TestAsksForPod(t *testing.T) {
	in := ShapeOf(desired(), formed(), now).in
	for name, want := range map[string]bool{"c-0-0": true, "c-2-1": true, "c-3-0": false, "c-2-2": false, "c-x-1": false, "c-1-x": false,
		"c--1-0": true, "c-1--1": false, "c": false, "": false} {
		if got := in.asksForPod(name); got != want {
			t.Errorf("%q: %t, want %t", name, got, want)
		}
	}
}

// The instance of a claim whose owner all others agree about is renewed.
func TestReidentify(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := amnesiac(1, 0, 1, snapshot.Claim{Name: "data-c-1-0"})
		owner := s.Find(1, 1).Redis
		owner.Master, owner.MasterID, owner.Slots, owner.Keys = true, "", slots.All().Split(3)[1], 3
		introduceOthers(s, s.Find(1, 0))
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return renews(planReidentify(in), "c-1-0") }, changes{
		"nothing has formed":            func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"it stops":                      func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Terminating = true },
		"it is left alone":              func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Fenced = true },
		"it is to go":                   func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 0, 2} },
		"its claim is shared":           func(_ *Desired, s *snapshot.Snapshot) { s.Claims = nil },
		"the owner is of another shard": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Shard = 0 },
		"the owner lacks one of its slots": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Slots = s.Find(1, 1).Redis.Slots.Subtract(slots.Of(6000))
		},
		"the owner has no key, and it has one": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Keys, s.Find(1, 0).Redis.Keys = 0, 1
		},
		"somebody does not agree": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-2-0", "c-1-1", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
		},
		"half of them agree, and others were not asked": func(_ *Desired, s *snapshot.Snapshot) {
			lose(s, 2, 1)
			lose(s, 2, 0)
		},
	}, changes{
		"neither has a key": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Keys, s.Find(1, 0).Redis.Keys = 0, 0
		},
		"most of them agree, and another was not asked": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
		"another one has lost it too, and its claim is shared": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(2, 1).Redis = &snapshot.Redis{NodeID: "new", Master: true, Peers: map[string]snapshot.Peer{}, Slots: slots.Of(16000)}
		},
		"half of them agree, and the others know nobody": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 1).Redis.Peers, s.Find(2, 1).Redis.Peers = map[string]snapshot.Peer{}, map[string]snapshot.Peer{}
		},
	})
}

// One whose volume is shared cannot be renewed, which is said; it does not hold back another one that can be.
func TestDamagedFilesAreSaid(t *testing.T) {
	s := damaged(1, 1, corruptions[0])
	if stall, ok := planRecreate(ShapeOf(desired(), s, now).in).(Stall); !ok || stall.Cause != "DamagedFiles" {
		t.Errorf("got %+v", stall)
	}
	s = amnesiac(1, 0, 1, snapshot.Claim{Name: "data-c-9-9"})
	owner := s.Find(1, 1).Redis
	owner.Master, owner.MasterID, owner.Slots, owner.Keys = true, "", slots.All().Split(3)[1], 3
	introduceOthers(s, s.Find(1, 0))
	if stall, ok := planReidentify(ShapeOf(desired(), s, now).in).(Stall); !ok || stall.Cause != "DamagedFiles" {
		t.Errorf("got %+v", stall)
	}
}

// introduceOthers makes all but one know each other as they are.
func introduceOthers(s *snapshot.Snapshot, but *snapshot.Instance) {
	redis := but.Redis
	but.Redis = nil
	introduce(s)
	but.Redis = redis
}

// Directories of nodes are remembered for the pods that there are to be.
func TestNodesAreRemembered(t *testing.T) {
	d, s := unplaced()
	s.PlacedOn["c-1-0"], s.PlacedOn["c-3-0"] = "before", "gone"
	got := ShapeOf(d, s, now).in.placedOn()
	if got["c-1-0"] != "before" || got["c-3-0"] != "" || got["c-0-0"] != "node0" {
		t.Errorf("got %v", got)
	}
	d.Problems = []string{"x"}
	if got := ShapeOf(d, s, now).in.placedOn(); got["c-3-0"] != "gone" {
		t.Errorf("what is asked for is not known, and got %v", got)
	}
	s.Find(1, 0).Terminating = true
	if step := planPlace(ShapeOf(d, s, now).in); step != nil {
		t.Errorf("a pod that stops is placed: %+v", step)
	}
	s.Find(1, 0).Terminating = false
	if step := planPlace(ShapeOf(d, s, now).in); step == nil || !containsWhy(step, "c-1-0 on before") {
		t.Errorf("got %+v, want to be told where", step)
	}
	delete(s.PlacedOn, "c-1-0")
	if step := planPlace(ShapeOf(d, s, now).in); step == nil || !containsWhy(step, "no data yet") {
		t.Errorf("got %+v, want to be told that there is none", step)
	}
	d, s = healthy() // nothing is in a directory of a node any more
	s.PlacedOn = map[string]string{"c-1-0": "before"}
	if got := ShapeOf(d, s, now).in.placedOn(); len(got) != 1 || got["c-1-0"] != "before" {
		t.Errorf("one was known, and got %v", got)
	}
	if s.PlacedOn = nil; ShapeOf(d, s, now).in.placedOn() != nil {
		t.Error("none was known, and some are remembered")
	}
}

// Deleting in the foreground waits for all that was deleted.
func TestDeletionWaits(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d := desired()
		d.Deleting = true
		return d, &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Formed: true}
	}
	proven(t, situation, func(in input) bool { return planDeletion(in).Name() == "RemoveFinalizer" }, changes{
		"it has none":            func(d *Desired, _ *snapshot.Snapshot) { d.HasFinalizer = false },
		"a StatefulSet is there": func(_ *Desired, s *snapshot.Snapshot) { s.Shards = []snapshot.Shard{{}} },
		"one is going":           func(_ *Desired, s *snapshot.Snapshot) { s.Shards = []snapshot.Shard{{Terminating: true}} },
		"a pod is there":         func(_ *Desired, s *snapshot.Snapshot) { s.Instances = []snapshot.Instance{{}} },
	}, nil)
	d, s := situation()
	d.HasFinalizer = false
	if step := planDeletion(ShapeOf(d, s, now).in); !Is[None](step) {
		t.Errorf("without a finalizer: %+v", step)
	}
	d, s = situation()
	s.Shards = []snapshot.Shard{{Terminating: true}}
	if step := planDeletion(ShapeOf(d, s, now).in); blockedBy(step) != PodsGone {
		t.Errorf("while a StatefulSet goes: %+v", step)
	}
	s.Shards = []snapshot.Shard{{Terminating: true}, {}}
	if step := planDeletion(ShapeOf(d, s, now).in); !Is[DeleteChildren](step) {
		t.Errorf("one of two was deleted: %+v", step)
	}
}

// Claims that are big enough, or are going, are left alone.
func TestExpandsOnlyWhatIsTooSmall(t *testing.T) {
	d, s := desired(), formed()
	d.ClaimBytes = 2
	s.Claims = []snapshot.Claim{{Name: "a", Requested: 1}, {Name: "b", Requested: 2}, {Name: "c", Requested: 3},
		{Name: "d", Requested: 1, Terminating: true}}
	step, _ := planStorage(ShapeOf(d, s, now).in).(ExpandPVCs)
	if !slices.Equal(step.Claims, []string{"a"}) {
		t.Errorf("got %v, want a", step.Claims)
	}
}

// A switchover that is under way holds back what a higher epoch would settle wrongly.
func TestEpochOutbids(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		for _, in := range s.Reachable() {
			in.Redis.Engine, in.Redis.Epoch = "valkey", uint64(in.Shard+1)
		}
		peer(s, "c-2-0", "c-1-1", func(p *snapshot.Peer) { p.Master, p.Epoch = true, 3 })
		return desired(), s
	}
	rule := func(in input) bool { step, ok := planEpoch(in).(BumpEpoch); return ok && step.On.Pod == "c-1-0" }
	proven(t, situation, rule, changes{
		"another engine":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Engine = "redis" },
		"it is no replica":        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Master = true },
		"it is not in sync":       func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 1, 1) },
		"its master is gone":      func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterID = "gone" },
		"its master is a replica": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Master = false },
		"claims are not agreed":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.SwitchoverAt = now.Add(-time.Second) },
		"it is known as a replica": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-2-0", "c-1-1", func(p *snapshot.Peer) { p.Master = false })
		},
		"by the epoch of its master": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-2-0", "c-1-1", func(p *snapshot.Peer) { p.Epoch = 2 })
		},
	}, nil)
}
