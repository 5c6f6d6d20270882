// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A StatefulSet shrinks when the instances that go are proven to be needed by nobody.
func TestShrinks(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d, s := smaller()
		forgetAll(s, nodeID(2, 1))
		return d, s
	}
	shrinks := func(in input) bool { return slices.Equal(in.topology, []int32{2, 2, 1}) }
	proven(t, situation, shrinks, changes{
		"a member still knows it": func(_ *Desired, s *snapshot.Snapshot) { introduce(s) },
		"it does not answer":      func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
		"it is the master":        func(_ *Desired, s *snapshot.Snapshot) { swapped(s, 2) },
		"it is a master with a key": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(2, 1).Redis.Master, s.Find(2, 1).Redis.Keys = true, 1
		},
		"another one is to go, and may not": func(d *Desired, s *snapshot.Snapshot) {
			d.Topology = []int32{2, 2, 0}
		},
	}, changes{
		"it does not run": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1).Find(2, 1).Waiting = "not scheduled" },
		"it is gone":      func(_ *Desired, s *snapshot.Snapshot) { s.Instances = s.Instances[:5] },
	})
}

// A shard whose StatefulSet is being deleted is not rendered any more, unless it has slots.
func TestShardsThatGo(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) { return desired(), deleted(formed(), 3) }
	proven(t, situation, func(in input) bool { return len(in.topology) == 3 }, changes{
		"nothing has formed":    func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"it is not deleted yet": func(_ *Desired, s *snapshot.Snapshot) { s.Shards[3].Terminating = false },
		"its master owns a slot": func(_ *Desired, s *snapshot.Snapshot) {
			*s = *deleted(formed(), 3)
			owner := joined(4).Find(3, 0)
			owner.Redis.Slots = slots.Of(0)
			s.Find(0, 0).Redis.Slots = slots.Range(1, 5460)
			s.Instances = append(s.Instances, *owner)
		},
		"the spec asks for it": func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(4) },
	}, nil)
	// A shard of which nothing is left but what others know of its master exists.
	lostShard := func() (Desired, *snapshot.Snapshot) {
		d, s := desired(), scaled(4)
		s.Shards, s.Instances = s.Shards[:3], s.Instances[:6]
		return d, s
	}
	proven(t, lostShard, func(in input) bool { return len(in.topology) == 4 }, changes{
		"others have its slots": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.Slots = s.Find(0, 0).Redis.Slots.Union(slots.All().Split(4)[3])
		},
	}, nil)
}

// Whoever owns no slot and holds keys is named, and not taken for a copy of its master.
func TestUnownedKeys(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		s.Find(1, 1).Redis.Master, s.Find(1, 1).Redis.MasterID, s.Find(1, 1).Redis.Keys = true, "", 1
		introduce(s)
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return planUnownedKeys(in) != nil }, changes{
		"it holds none":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Keys = 0 },
		"it owns a slot":  func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Slots = slots.Of(7) },
		"it is a replica": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Master = false },
		"its keys are of a slot that it receives": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Importing = map[uint16]string{7: "x"}
		},
		"its keys are of a slot that it gives": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Migrating = map[uint16]string{7: "x"}
		},
		"it stops":                func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"it is left alone":        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Fenced = true },
		"its shard has no master": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 0) },
		"it has lost its nodes.conf, of which planAmbiguous speaks": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Peers, s.Find(1, 1).Redis.Slots = map[string]snapshot.Peer{}, slots.Range(6000, 6010)
		},
		"it is the master of a shard that owns nothing, and follows nobody": func(d *Desired, s *snapshot.Snapshot) {
			*d, *s = with(topologyOf(4)), *joined(4)
			s.Find(3, 0).Redis.Keys = 1
		},
	}, nil)
}

// Clients are led to instances that know the whole cluster, and away from those that go.
func TestAddToEndpoints(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		s.Find(1, 1).HasReadinessGate = true
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return planAddToEndpoints(in) != nil }, changes{
		"it has no gate": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).HasReadinessGate = false },
		"it is about to restart": func(_ *Desired, s *snapshot.Snapshot) {
			*s = *removedFromEndpoints(outmoded(), 1, 1, time.Second, time.Second)
		},
		"it is there":                  func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).InEndpoints = true },
		"it stops":                     func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"it is let go":                 func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 1, 2} },
		"it does not serve":            func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.ClusterOK = false },
		"it is not in sync":            func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 1, 1) },
		"it knows no owner of a shard": func(_ *Desired, s *snapshot.Snapshot) { delete(s.Find(1, 1).Redis.Peers, nodeID(2, 0)) },
	}, nil)
}

func TestRemovesFromEndpoints(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		return desired(), removedFromEndpoints(outmoded(), 1, 1, time.Second, time.Second)
	}
	remove := func(in input) Step {
		return removeFromEndpoints(in, []*snapshot.Instance{in.snap.Find(1, 1), in.snap.Find(2, 1)}, quiet)
	}
	d, s := situation()
	if step, ok := remove(ShapeOf(d, s, now).in).(RemoveFromEndpoints); !ok || !slices.Equal(step.Pods, []string{"c-2-1"}) {
		t.Errorf("one was removed already: %+v", step)
	}
	s.Find(2, 1).HasReadinessGate = false
	wait, _ := remove(ShapeOf(d, s, now).in).(Wait)
	if wait.BlockedBy != EndpointsUpdated || wait.After != endpointsLag-time.Second {
		t.Errorf("a second after it was: %+v", wait)
	}
	s.Find(1, 1).RemovedFromEndpointsAt = now.Add(-endpointsLag)
	if step := remove(ShapeOf(d, s, now).in); blockedBy(step) != ClientsRedirected {
		t.Errorf("while clients ask it: %+v", step)
	}
	for name, change := range map[string]func(*snapshot.Instance){
		"they have stopped asking":       func(pod *snapshot.Instance) { pod.Redis.RedirectedAt = now.Add(-quiet) },
		"they go on for a minute":        func(pod *snapshot.Instance) { pod.RemovedFromEndpointsAt = now.Add(-mostQuiet) },
		"nobody was led there by a gate": func(pod *snapshot.Instance) { pod.HasReadinessGate = false },
	} {
		d, s := situation()
		s.Find(2, 1).HasReadinessGate, s.Find(1, 1).RemovedFromEndpointsAt = false, now.Add(-endpointsLag)
		change(s.Find(1, 1))
		if step := remove(ShapeOf(d, s, now).in); step != nil {
			t.Errorf("%s: %+v", name, step)
		}
	}
}
