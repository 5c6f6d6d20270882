// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func TestNoForeignNode(t *testing.T) {
	const foreign = "foreign"
	link := func(change func(*snapshot.Snapshot, *snapshot.Peer)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			p := snapshot.Peer{ID: foreign, IP: "10.99.0.1", Connected: true, Master: true, Slots: slots.Of(7)}
			change(s, &p)
			s.Find(1, 1).Redis.Peers[foreign] = p
		}
	}
	proven(t, healthy, func(in input) bool { return noForeignNode(in.snap).Holds }, changes{
		"a master with a slot":   link(func(*snapshot.Snapshot, *snapshot.Peer) {}),
		"a replica without slot": link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.Master, p.Slots = false, slots.Set{} }),
	}, changes{
		"there is no link":              link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.Connected = false }),
		"it has failed":                 link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.Failed = true }),
		"it is suspected":               link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.Suspected = true }),
		"its ID is not its own yet":     link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.Handshake = true }),
		"it owns nothing":               link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.Slots = slots.Set{} }),
		"one of ours was it before":     link(func(s *snapshot.Snapshot, _ *snapshot.Peer) { s.Seen = map[string]bool{foreign: true} }),
		"it is at one of our addresses": link(func(_ *snapshot.Snapshot, p *snapshot.Peer) { p.IP = podIP(0, 0) }),
	})
}

func TestSlotsDisjoint(t *testing.T) {
	proven(t, func() (Desired, *snapshot.Snapshot) { return desired(), fresh() }, func(in input) bool { return slotsDisjoint(in.snap).Holds },
		changes{
			"two strangers own one slot": func(_ *Desired, s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Slots, s.Find(1, 0).Redis.Slots = slots.Of(7), slots.Of(7, 8)
			},
		}, changes{
			"the first knows the second": func(_ *Desired, s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Slots, s.Find(1, 0).Redis.Slots = slots.Of(7), slots.Of(7, 8)
				peer(s, "c-0-0", "c-1-0", func(*snapshot.Peer) {})
			},
			"the second knows the first": func(_ *Desired, s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Slots, s.Find(1, 0).Redis.Slots = slots.Of(7), slots.Of(7, 8)
				peer(s, "c-1-0", "c-0-0", func(*snapshot.Peer) {})
			},
		})
}

func TestSnapshotComplete(t *testing.T) {
	proven(t, healthy, func(in input) bool { return snapshotComplete(in).Holds }, changes{
		"a pod is missing":             func(_ *Desired, s *snapshot.Snapshot) { kill(s, 1, 1) },
		"one waits, though it answers": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Waiting = "not scheduled" },
		"one does not answer":          func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"one that is let go may run": func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances = append(s.Instances, snapshot.Instance{Name: "c-1-2", Shard: 1, Ordinal: 2})
		},
	}, changes{
		"one that is let go stops": func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances = append(s.Instances, snapshot.Instance{Name: "c-1-2", Shard: 1, Ordinal: 2, Terminating: true})
		},
		"one that is let go stops, while a slot is owned by nobody": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Slots = slots.Range(1, 5460)
			s.Instances = append(s.Instances, snapshot.Instance{Name: "c-1-2", Shard: 1, Ordinal: 2, Terminating: true})
		},
		"one that is let go does not run": func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances = append(s.Instances, snapshot.Instance{Name: "c-1-2", Shard: 1, Ordinal: 2, Waiting: "not scheduled"})
		},
	})
}

// unlinked is the formed cluster of which two instances do not know each other's address.
func unlinked() (Desired, *snapshot.Snapshot) {
	s := formed()
	delete(s.Find(0, 1).Redis.Peers, nodeID(1, 1))
	delete(s.Find(1, 1).Redis.Peers, nodeID(0, 1))
	return desired(), s
}

func TestMeetsWhoDoesNotKnowTheOther(t *testing.T) {
	elsewhere := func(p *snapshot.Peer) { p.IP = "10.9.9.9" }
	proven(t, unlinked, func(in input) bool { return planMeet(in) != nil }, changes{
		"the first stops":      func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Terminating = true },
		"the second stops":     func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"the first is let go":  func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{1, 2, 2} },
		"the second is let go": func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 1, 2} },
		"they know each other, one of them where": func(_ *Desired, s *snapshot.Snapshot) {
			introduce(s)
			peer(s, "c-0-1", "c-1-1", elsewhere)
		},
		"they know each other, the other one where": func(_ *Desired, s *snapshot.Snapshot) {
			introduce(s)
			peer(s, "c-1-1", "c-0-1", elsewhere)
		},
		"nothing has formed and somebody is missing": func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false; lose(s, 2, 1) },
	}, changes{
		"the first knows the second": func(_ *Desired, s *snapshot.Snapshot) { introduce(s); delete(s.Find(1, 1).Redis.Peers, nodeID(0, 1)) },
		"the second knows the first": func(_ *Desired, s *snapshot.Snapshot) { introduce(s); delete(s.Find(0, 1).Redis.Peers, nodeID(1, 1)) },
		"neither knows where the other is": func(_ *Desired, s *snapshot.Snapshot) {
			introduce(s)
			peer(s, "c-1-1", "c-0-1", elsewhere)
			peer(s, "c-0-1", "c-1-1", elsewhere)
		},
		"somebody else is missing": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
	})
}

// One meeting more than is sent at once has to wait.
func TestMeetingsAreBounded(t *testing.T) {
	d, s := large(23) // 1035 pairs
	for _, in := range s.Reachable() {
		in.Redis.Peers = map[string]snapshot.Peer{}
		in.Redis.Slots = slots.Set{}
	}
	if step, ok := planMeet(ShapeOf(d, s, now).in).(Meet); !ok || len(step.Meetings) != mostMeetings {
		t.Errorf("got %d meetings, want %d", len(step.Meetings), mostMeetings)
	}
}

// A new master has a short node timeout until it serves, the others the one asked for.
func TestJoiningTimeout(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := withTimeout(func() *snapshot.Snapshot { return joined(4) }, 5*time.Second)()
		s.Find(3, 0).Redis.ClusterOK = false
		d := with(topologyOf(4))
		d.NodeTimeout = 5 * time.Second
		return d, s
	}
	joining := func(in input) bool {
		step, ok := planTimeout(in).(SetNodeTimeout)
		return ok && step.Timeout == joiningTimeout && len(step.On) == 1 && step.On[0].Pod == "c-3-0"
	}
	proven(t, situation, joining, changes{
		"it serves":                func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.ClusterOK = true },
		"it owns slots":            func(_ *Desired, s *snapshot.Snapshot) { giveSlot(s, 3) },
		"it is a replica":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Master = false },
		"it is to go":              func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(3) },
		"its timeout is not known": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.NodeTimeout = 0 },
		"its timeout is short":     func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.NodeTimeout = joiningTimeout },
		"nothing is asked for":     func(d *Desired, _ *snapshot.Snapshot) { d.NodeTimeout = 0 },
		"what is asked for is as short": func(d *Desired, s *snapshot.Snapshot) {
			d.NodeTimeout = time.Second
			withTimeout(func() *snapshot.Snapshot { return s }, time.Second)()
		},
		"it has lost its nodes.conf, and claims slots": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Peers, s.Find(3, 0).Redis.Slots = map[string]snapshot.Peer{}, slots.Of(7)
		},
	}, nil)
	longer := func(in input) bool {
		step, ok := planTimeout(in).(SetNodeTimeout)
		return ok && step.Timeout == 5*time.Second && len(step.On) == 1 && step.On[0].Pod == "c-1-1"
	}
	proven(t, func() (Desired, *snapshot.Snapshot) {
		d, s := situation()
		s.Find(1, 1).Redis.NodeTimeout = 2 * time.Second
		return d, s
	}, longer, nil, nil)
}

// Slots that nobody owns are given away once it is proven that nobody does.
func TestAssignsOnlyWhatNobodyOwns(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		s.Find(0, 0).Redis.Slots = slots.Range(2, 5460)
		introduce(s)
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return planAssign(in) != nil }, changes{
		"somebody was not asked": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
		"somebody takes another for the owner of one": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-2-0", func(p *snapshot.Peer) { p.Slots = slots.Of(1) })
		},
		"somebody who knows nobody claims one": func(_ *Desired, s *snapshot.Snapshot) {
			r := s.Find(2, 1).Redis
			r.Peers, r.Master, r.Slots = map[string]snapshot.Peer{}, true, slots.Range(1, 9)
		},
	}, changes{
		"somebody who knows nobody claims others": func(_ *Desired, s *snapshot.Snapshot) {
			r := s.Find(2, 1).Redis
			r.Peers, r.Master, r.Slots = map[string]snapshot.Peer{}, true, slots.Range(8, 9)
		},
	})
}

// Who has keys of slots that nobody owns gets them: a former master that has come back only if there is no other.
func TestHoldersGetTheirSlots(t *testing.T) {
	s := joined(4)
	s.Find(0, 0).Redis.Slots = slots.Range(3, 5460)
	introduce(s)
	old := s.Find(1, 1) // follows nobody, though its shard has a master
	old.Redis.Master, old.Redis.MasterID, old.Redis.OpenKeys = true, "", map[uint16]int64{0: 5, 1: 5}
	s.Find(3, 0).Redis.OpenKeys = map[uint16]int64{1: 1}
	s.Find(2, 1).Redis.OpenKeys = map[uint16]int64{2: 1} // a replica has its master's
	step, _ := planAssign(ShapeOf(with(topologyOf(4)), s, now).in).(AssignSlots)
	got := map[string]string{}
	for _, a := range step.Assignments {
		got[a.To.Pod] += a.Slots.String() + " "
	}
	want := map[string]string{"c-3-0": "1 2 ", "c-1-1": "0 "}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	s.Find(0, 0).Redis.Slots = slots.Range(2, 5460) // of all that are left somebody has keys: nobody else is given any
	step, _ = planAssign(ShapeOf(with(topologyOf(4)), s, now).in).(AssignSlots)
	if len(step.Assignments) != 2 || step.Assignments[0].To.Pod != "c-3-0" || step.Assignments[1].To.Pod != "c-1-1" {
		t.Errorf("got %+v", step.Assignments)
	}
}

// Slots that nobody owns go to the masters that there are, wherever else a former one runs, and to nobody where all hold keys.
func TestWhoIsGivenSlots(t *testing.T) {
	s := formed()
	s.Find(0, 0).Redis.Slots = slots.Range(1, 5460)
	s.Find(1, 1).Redis.Master, s.Find(1, 1).Redis.MasterID = true, ""
	introduce(s)
	step, _ := planAssign(ShapeOf(desired(), s, now).in).(AssignSlots)
	if len(step.Assignments) != 1 || step.Assignments[0].To.Pod != "c-1-0" || step.Assignments[0].Slots.String() != "0" {
		t.Errorf("got %+v", step.Assignments)
	}
	s = shardLost()
	s.Find(1, 0).Redis.Keys, s.Find(1, 1).Redis.Keys = 1, 1
	stall, _ := planAssign(ShapeOf(desired(), s, now).in).(Stall)
	if stall.Cause != "NoCandidate" || stall.BlockedBy != NoUnownedKeys || !containsWhy(stall, "no instance of shard 1 can take its part") {
		t.Errorf("all hold keys: %+v", stall)
	}
}

// Who is forgotten, and by whom.
func TestForgetsWhoIsGone(t *testing.T) {
	s := formed()
	s.Find(0, 0).Redis.Peers["z"] = snapshot.Peer{ID: "z", Failed: true}
	s.Find(2, 1).Redis.Peers["a"] = snapshot.Peer{ID: "a", Failed: true}
	s.Find(1, 0).Redis.Peers["h"] = snapshot.Peer{ID: "h", Handshake: true}
	step, _ := planForget(ShapeOf(desired(), s, now).in).(Forget)
	var on []string
	for _, target := range step.On {
		on = append(on, target.Pod)
	}
	if diff := cmp.Diff([][]string{{"a", "z"}, {"c-0-0", "c-2-1"}}, [][]string{step.NodeIDs, on}); diff != "" {
		t.Error(diff)
	}
}

// A new cluster's nodes get epochs of their own, and only nodes that never had one.
func TestFirstEpochs(t *testing.T) {
	s := fresh()
	s.Find(0, 0).Redis.Epoch = 9
	peer(s, "c-1-0", "c-0-0", func(*snapshot.Peer) {})
	s.Find(0, 1).Redis.Epoch = 9
	peer(s, "c-1-1", "c-0-0", func(*snapshot.Peer) {})
	// Somebody asked for one more, and took that back.
	s.Instances = append(s.Instances, snapshot.Instance{Name: "c-0-2", Ordinal: 2, Terminating: true})
	step, _ := planAssign(ShapeOf(desired(), s, now).in).(AssignSlots)
	got := map[string]uint64{}
	for _, a := range step.Assignments {
		got[a.To.Pod] = a.Epoch
	}
	if diff := cmp.Diff(map[string]uint64{"c-0-0": 0, "c-1-1": 0, "c-2-0": 9, "c-2-1": 6}, got); diff != "" {
		t.Error(diff)
	}
	s = fresh() // forming was cut short, and two of a shard own slots: neither is a replica
	s.Find(1, 0).Redis.Slots, s.Find(1, 1).Redis.Slots = slots.Of(6000), slots.Range(6001, 7000)
	step, _ = planAssign(ShapeOf(desired(), s, now).in).(AssignSlots)
	for _, a := range step.Assignments {
		if strings.HasPrefix(a.To.Pod, "c-1-") {
			t.Errorf("got %+v", a)
		}
	}
}

// The slots of a shard that is to go are given to others, and of a shard none of whose instances can be a master, to nobody.
func TestWhoBecomesMaster(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := fresh()
		return desired(), s
	}
	first := func(in input) bool {
		pod := chooseMaster(in, 1, map[int]*snapshot.Instance{})
		return pod != nil && pod.Name == "c-1-0"
	}
	proven(t, situation, first, changes{
		"it holds a key":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Keys = 1 },
		"it is a replica":  func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Master = false },
		"it stops":         func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Terminating = true },
		"it is left alone": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Fenced = true },
		"it is to go":      func(d *Desired, s *snapshot.Snapshot) { d.Topology, s.Formed = []int32{2, 0, 2}, true },
	}, nil)
	goes := func() (Desired, *snapshot.Snapshot) {
		d, s := drained()
		s.Find(0, 0).Redis.Slots = slots.Range(1, 5460)
		introduce(s)
		return d, s
	}
	proven(t, goes, func(in input) bool { return !slices.Contains(destinations(in), 3) }, changes{
		"nothing has formed":   func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"the spec asks for it": func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(4) },
	}, nil)
}
