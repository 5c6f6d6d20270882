// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// changes of what was seen or is desired, by what they are.
type changes map[string]func(*Desired, *snapshot.Snapshot)

// proven checks a safety rule clause by clause: it holds in a situation, each of the first changes of that alone makes it fail, and
// the others do not.
func proven(t *testing.T, situation func() (Desired, *snapshot.Snapshot), rule func(input) bool, breaks, leaves changes) {
	t.Helper()
	check := func(name string, change func(*Desired, *snapshot.Snapshot), want bool) {
		t.Run(name, func(t *testing.T) {
			d, s := situation()
			change(&d, s)
			if got := rule(ShapeOf(d, s, now).in); got != want {
				t.Errorf("holds: %t, want %t", got, want)
			}
		})
	}
	check("as it is", func(*Desired, *snapshot.Snapshot) {}, true)
	for name, change := range breaks {
		check(name, change, false)
	}
	for name, change := range leaves {
		check(name, change, true)
	}
}

// peer changes what an instance knows of another one.
func peer(s *snapshot.Snapshot, on, of string, change func(*snapshot.Peer)) {
	redis := named(s, on).Redis
	id := named(s, of).Redis.NodeID
	p := redis.Peers[id]
	change(&p)
	redis.Peers[id] = p
}

func named(s *snapshot.Snapshot, name string) *snapshot.Instance {
	for i := range s.Instances {
		if s.Instances[i].Name == name {
			return &s.Instances[i]
		}
	}
	panic("no instance " + name)
}

// drained is a cluster of four shards of which the last is to go and owns nothing any more.
func drained() (Desired, *snapshot.Snapshot) { return with(topologyOf(3)), joined(4) }

// smaller is a cluster whose third shard is to have one instance less: a replica.
func smaller() (Desired, *snapshot.Snapshot) { return with(v1alpha1.Topology{2, 2, 1}), formed() }

func TestSafeToRemove(t *testing.T) {
	of := func(name string) func(input) bool {
		return func(in input) bool { return in.safeToRemove(named(in.snap, name)).Holds }
	}
	proven(t, drained, of("c-3-0"), changes{
		"the spec asks for it":    func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(4) },
		"nothing has formed":      func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"it does not answer":      func(_ *Desired, s *snapshot.Snapshot) { lose(s, 3, 0) },
		"it owns a slot":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Slots = slots.Of(7) },
		"it holds a key":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 1 },
		"it is receiving a slot":  func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Importing = map[uint16]string{7: "x"} },
		"it is giving a slot":     func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Migrating = map[uint16]string{7: "x"} },
		"its replica owns a slot": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 1).Redis.Slots = slots.Of(7) },
	}, nil)
	proven(t, smaller, of("c-2-1"), changes{
		"it is the master":   func(_ *Desired, s *snapshot.Snapshot) { swapped(s, 2) },
		"it does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
	}, changes{
		"it has its master's keys and marks": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(2, 1).Redis.Keys, s.Find(2, 1).Redis.Migrating = 7, map[uint16]string{7: "x"}
		},
	})
}

func TestNotRequired(t *testing.T) {
	unscheduled := func(d Desired, s *snapshot.Snapshot, shard, ordinal int) (Desired, *snapshot.Snapshot) {
		lose(s, shard, ordinal).Find(shard, ordinal).Waiting = "not scheduled"
		return d, s
	}
	last := func() (Desired, *snapshot.Snapshot) { d, s := drained(); return unscheduled(d, s, 3, 1) }
	rule := func(in input) bool { return in.notRequired(3, 1).Holds && in.mayBeRemoved(3, 1).Holds }
	proven(t, last, rule, changes{
		"the spec asks for it": func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(4) },
		"it may run":           func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 1).Waiting = "" },
		"it stops, and answers": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 1).Redis, s.Find(3, 1).Waiting, s.Find(3, 1).Terminating = joined(4).Find(3, 1).Redis, "", true
		},
		"its master still owns slots":           func(_ *Desired, s *snapshot.Snapshot) { giveSlot(s, 3) },
		"slots are owned by nobody who answers": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 0, 0) },
		"another shard lacks a slot":            func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Slots = slots.Range(1, 5460) },
	}, changes{
		"its pod is gone": func(_ *Desired, s *snapshot.Snapshot) { s.Instances = s.Instances[:7] },
		"it stops, and does not answer": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 1).Waiting, s.Find(3, 1).Terminating = "", true
		},
	})
	replica := func() (Desired, *snapshot.Snapshot) { d, s := smaller(); return unscheduled(d, s, 2, 1) }
	proven(t, replica, func(in input) bool { return in.notRequired(2, 1).Holds && in.mayBeRemoved(2, 1).Holds }, changes{
		"the master of its shard, which stays, does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 0) },
	}, nil)
	proven(t, drained, func(in input) bool { return in.mayBeRemoved(3, 0).Holds }, changes{
		"it answers, and holds a key": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 1 },
		"it answers, is said to wait, and holds a key": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Keys, s.Find(3, 0).Waiting = 1, "not ready"
		},
	}, nil)
}

// giveSlot moves slot 0 to the first instance of a shard.
func giveSlot(s *snapshot.Snapshot, shard int) {
	s.Find(0, 0).Redis.Slots = s.Find(0, 0).Redis.Slots.Subtract(slots.Of(0))
	s.Find(shard, 0).Redis.Slots = slots.Of(0)
}

func TestForgottenByAll(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) { d, s := drained(); return d, forgotten(s, 3) }
	proven(t, situation, func(in input) bool { return in.forgottenByAll().Holds }, changes{
		"nothing has formed":                       func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"a slot is owned by nobody":                func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Slots = slots.Range(1, 5460) },
		"a replica that stays does not answer":     func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"one member still knows an instance of it": func(_ *Desired, s *snapshot.Snapshot) { peer(s, "c-2-1", "c-3-1", func(*snapshot.Peer) {}) },
		"one member knows a node that is gone": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Peers["gone"] = snapshot.Peer{ID: "gone", Failed: true}
		},
		"an instance of it may run and does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 3, 1) },
	}, changes{
		"an instance of it does not run": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 3, 1).Find(3, 1).Waiting = "not scheduled" },
		"it knows the members":           func(_ *Desired, s *snapshot.Snapshot) { peer(s, "c-3-1", "c-0-0", func(*snapshot.Peer) {}) },
	})
}

// An instance is not let go of before every other one has forgotten it, and says what it waits for.
func TestRemovalWaits(t *testing.T) {
	leaving := func() (Desired, *snapshot.Snapshot) { d, s := drained(); return d, forgotten(s, 3) }
	for name, tt := range map[string]struct {
		change    func(*Desired, *snapshot.Snapshot)
		step, why string
	}{
		"nobody knows the shard": {func(*Desired, *snapshot.Snapshot) {}, "RemoveShards", "shards [3]"},
		"a member was not asked": {func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) }, "Wait",
			"not every instance is known to have forgotten"},
		"a master has keys and no slot": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 1 }, "Stall", "holds 1 keys"},
		"a master without slots has keys, and its shard stays": {func(d *Desired, s *snapshot.Snapshot) {
			*d, *s = with(v1alpha1.Topology{2, 2, 1}), *formed()
			s.Find(2, 1).Redis.Master, s.Find(2, 1).Redis.Keys = true, 1
		}, "Stall", "c-2-1 is to go, owns no slot and holds 1 keys"},
		"a master has no key and marks": {
			func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Importing = map[uint16]string{7: "x"} }, "Wait", "takes part in moving"},
		"a replica of a shard that still owns slots": {func(_ *Desired, s *snapshot.Snapshot) {
			giveSlot(s, 3)
			s.Find(3, 1).Redis.Keys = 1
			s.Instances[6].Terminating = true
		}, "Wait", "c-3-1 is to go with shard 3, whose master still owns slots"},
		"a master that still owns slots of a shard that goes": {
			func(_ *Desired, s *snapshot.Snapshot) { giveSlot(s, 3); s.Find(3, 0).Redis.Keys = 9 }, "Wait", "still owns slots 0"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := leaving()
			tt.change(&d, s)
			step := planRemoval(ShapeOf(d, s, now).in)
			if step == nil || step.Name() != tt.step || !containsWhy(step, tt.why) {
				t.Errorf("got %+v, want %s: %s", step, tt.step, tt.why)
			}
		})
	}
}

// A master that is to go makes the replica that stays and has most of its data the master in its place, or waits.
func TestRemovalSwitchesOverToTheBest(t *testing.T) {
	three := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		for ordinal := 2; ordinal < 4; ordinal++ {
			s.Instances = append(s.Instances, *s.Find(2, 1))
			pod := &s.Instances[len(s.Instances)-1]
			redis := *pod.Redis
			pod.Name, pod.Ordinal, pod.IP, pod.Redis = "c-2-"+string(rune('0'+ordinal)), ordinal, podIP(2, ordinal), &redis
			redis.NodeID, redis.Peers = nodeID(2, ordinal), map[string]snapshot.Peer{}
		}
		// The third one becomes the master, and the last two go.
		master, was := s.Find(2, 2).Redis, s.Find(2, 0).Redis
		master.Slots, master.Master, master.MasterID, was.Slots, was.Master = was.Slots, true, "", slots.Set{}, false
		for _, ordinal := range []int{0, 1, 3} {
			r := s.Find(2, ordinal).Redis
			r.MasterID, r.MasterLinkUp, r.Offset = master.NodeID, true, int64(10*ordinal)
		}
		introduce(s)
		s.Shards[2].Replicas = 4
		return with(v1alpha1.Topology{2, 2, 2}), s
	}
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		want   string
	}{
		"the one with most data that stays":    {func(*snapshot.Snapshot) {}, "c-2-1"},
		"of two that have the same, the first": {func(s *snapshot.Snapshot) { s.Find(2, 1).Redis.Offset = 0 }, "c-2-0"},
		"another one, if that is not linked":   {func(s *snapshot.Snapshot) { s.Find(2, 1).Redis.MasterLinkUp = false }, "c-2-0"},
		"nobody, if none is": {func(s *snapshot.Snapshot) {
			s.Find(2, 0).Redis.MasterLinkUp, s.Find(2, 1).Redis.MasterLinkUp = false, false
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := three()
			tt.change(s)
			in := ShapeOf(d, s, now).in
			step := hold(in, s.Find(2, 2), in.safeToRemove(in.snap.Find(2, 2)))
			got, _ := step.(Switchover)
			if wait, waits := step.(Wait); tt.want == "" && (!waits || wait.BlockedBy != ReplicaInSync) || got.Replica.Pod != tt.want {
				t.Errorf("got %+v, want a switchover to %q", step, tt.want)
			}
		})
	}
}

func TestClaimsAgreed(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) { return desired(), formed() }
	proven(t, situation, func(in input) bool { return claimsAgreed(in, in.snap.Find(0, 0)).Holds }, changes{
		"an instance does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"a slot has two owners":       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Slots = slots.Of(0) },
		"a slot has none": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Subtract(slots.Of(slots.Count - 1))
			introduce(s)
		},
		"a slot has two, and another one none": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.Slots = s.Find(1, 0).Redis.Slots.Subtract(slots.Of(6000))
			s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Union(slots.Of(0))
			introduce(s)
		},
		"a slot is given":      func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Migrating = map[uint16]string{7: "x"} },
		"a slot is received":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Importing = map[uint16]string{7: "x"} },
		"a job moves slots":    func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Jobs = make([]snapshot.Job, 1) },
		"a replica takes over": func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.SwitchoverAt = now.Add(-time.Second) },
		"an instance stops":    func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"somebody suspects it": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Suspected = true })
		},
		"somebody takes it for failed": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Failed = true })
		},
		"somebody has no link to it": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Connected = false })
		},
		"somebody takes it for a replica": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Master = false })
		},
		"somebody does not know it": func(_ *Desired, s *snapshot.Snapshot) { delete(s.Find(1, 0).Redis.Peers, nodeID(0, 0)) },
		"somebody names other slots": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Slots = slots.Of(0) })
		},
	}, nil)
}

func containsWhy(step Step, words string) bool { return strings.Contains(step.Why(), words) }
