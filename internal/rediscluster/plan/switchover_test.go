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

// A person's request is carried out when no write can be lost by it, waits until then, and is taken away when it is carried out, or
// cannot be.
func TestSwitchoverThatAPersonAsksFor(t *testing.T) {
	apart := func() *snapshot.Snapshot { return placed("a", "b", "c", "b", "c", "a") }
	with := func(change func(*snapshot.Snapshot)) *snapshot.Snapshot { return changed(apart, change)() }
	for name, tt := range map[string]struct {
		snapshot  *snapshot.Snapshot
		asked     string
		desired   func(*Desired)
		step, why string
		blockedBy Predicate
	}{
		"a replica takes over": {snapshot: apart(), asked: "c-1-1", step: "Switchover", why: "c-1-1 takes over from c-1-0 as the master"},
		"it has":               {snapshot: swapped(apart(), 1), asked: "c-1-1", step: "EndSwitchover", why: "c-1-1 is the master of shard 1"},
		"no instance":          {snapshot: apart(), asked: "c-9-9\x1b[2J", step: "EndSwitchover", why: "it names no instance"},
		"one that is to go": {snapshot: apart(), asked: "c-1-1", desired: func(d *Desired) { d.Topology[1] = 1 }, step: "Forget",
			why: ""},
		"masters would be closer together": {snapshot: apart(), asked: "c-1-1", desired: func(d *Desired) { d.SpreadMasters = true },
			step: "EndSwitchover", why: "more masters would be where c-1-1 is (c), and spec.spreadMasters would have them part again"},
		"masters would be no closer together": {snapshot: placed("a", "b", "c", "d", "e", "f"), asked: "c-1-1",
			desired: func(d *Desired) { d.SpreadMasters = true }, step: "Switchover"},
		"not in sync": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkUp = false }), asked: "c-1-1", step: "Wait",
			why: "c-1-1 is not in sync"},
		"not ready": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Ready = false }), asked: "c-1-1", step: "Wait",
			blockedBy: PodsReady},
		"another instance stops": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(2, 0).Terminating = true }), asked: "c-1-1", step: "Wait",
			blockedBy: PodsGone},
		"its disk is full": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.PersistenceError = "aof_last_write_status:err" }),
			asked: "c-1-1", step: "EndSwitchover", why: "could not write its data to disk (aof_last_write_status:err of INFO)"},
		"it was told a moment ago": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.SwitchoverAt = now.Add(-time.Second) }),
			asked: "c-1-1", step: "Wait", blockedBy: MasterElected},
		"it was told, and has not": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.SwitchoverAt = now.Add(-time.Minute) }),
			asked: "c-1-1", step: "EndSwitchover", why: "was told to take over a moment ago, and has not"},
		"it was told, and has not, with a long node timeout": {snapshot: with(func(s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.SwitchoverAt, s.Find(1, 1).Redis.NodeTimeout = now.Add(-11*time.Minute), 5*time.Minute
		}), asked: "c-1-1", step: "EndSwitchover", why: "was told to take over a moment ago, and has not"},
		"it was told long ago": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.SwitchoverAt = now.Add(-time.Hour) }),
			asked: "c-1-1", step: "Switchover"},
		"a backup is taken": {snapshot: with(func(s *snapshot.Snapshot) { s.Backup.UID, s.Backup.Name = "uid", "monday" }), asked: "c-1-1",
			step: "Wait", why: "when RedisBackup monday has ended", blockedBy: NoBackup},
		"its master has just taken over": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.DemotedAt = now.Add(-time.Second) }),
			asked: "c-1-1", step: "Wait", blockedBy: MasterElected},
		"slots are not covered":     {snapshot: lose(apart(), 2, 0), asked: "c-1-1", step: "Wait", blockedBy: SnapshotComplete},
		"a template rolls out":      {snapshot: outmoded(), asked: "c-1-1", step: "Restart"},
		"a rollout is not yet told": {snapshot: with(func(s *snapshot.Snapshot) { s.Rolling = true }), asked: "c-1-1", step: "None"},
		"the user restarts instances": {snapshot: outmoded(), asked: "c-1-1", desired: func(d *Desired) { d.OnDelete = true },
			step: "Switchover"},
		"paused": {snapshot: apart(), asked: "c-1-1", desired: func(d *Desired) { d.Paused = true }, step: "Hold"},
		"before it is hibernated": {snapshot: apart(), asked: "c-1-1", desired: func(d *Desired) { d.Hibernate = true },
			step: "EndSwitchover", why: "the cluster is hibernated, or is to be"},
		"hibernated": {snapshot: with(func(s *snapshot.Snapshot) {
			s.Instances, s.Hibernated = nil, v1alpha1.Topology{2, 2, 2}
			for i := range s.Shards {
				s.Shards[i].Replicas, s.Shards[i].Hibernated = 0, 2
			}
		}), asked: "c-1-1", desired: func(d *Desired) { d.Hibernate = true }, step: "EndSwitchover", why: "the cluster is hibernated"},
		"it has, and another instance is not ready": {snapshot: swapped(with(func(s *snapshot.Snapshot) { s.Find(2, 1).Ready = false }), 1),
			asked: "c-1-1", step: "EndSwitchover", why: "c-1-1 is the master of shard 1"},
		"it has, and another instance does not answer": {
			snapshot: changed(func() *snapshot.Snapshot { return swapped(apart(), 1) }, func(s *snapshot.Snapshot) { s.Find(2, 1).Redis = nil })(),
			asked:    "c-1-1", step: "EndSwitchover"},
		"it has, and the spec is not valid": {snapshot: swapped(apart(), 1), asked: "c-1-1",
			desired: func(d *Desired) { d.Problems = []string{"spec.shards: too many"} }, step: "EndSwitchover"},
		"asked for while the spec is not valid": {snapshot: apart(), asked: "c-1-1",
			desired: func(d *Desired) { d.Problems = []string{"spec.shards: too many"} }, step: "Stall"},
		"it has, and a template rolls out": {snapshot: swapped(outmoded(), 1), asked: "c-1-1", step: "EndSwitchover"},
		"masters part first": {snapshot: placed("a", "a", "c", "b", "c", "b"), asked: "c-2-1",
			desired: func(d *Desired) { d.SpreadMasters = true }, step: "Switchover", why: "too many masters are where"},
		"it waits, and masters part": {snapshot: changed(func() *snapshot.Snapshot { return placed("a", "a", "c", "b", "c", "b") },
			func(s *snapshot.Snapshot) { s.Find(2, 1).Redis.DemotedAt = now.Add(-time.Second) })(), asked: "c-2-1",
			desired: func(d *Desired) { d.SpreadMasters = true }, step: "Switchover", why: "too many masters are where"},
		"it waits, and the user is to restart instances": {snapshot: changed(func() *snapshot.Snapshot { return outmoded() },
			func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.DemotedAt = now.Add(-time.Second) })(), asked: "c-1-1",
			desired: func(d *Desired) { d.OnDelete = true }, step: "Rollout"},
		"the first instance of all takes over": {snapshot: swapped(apart(), 0), asked: "c-0-0", step: "Switchover",
			why: "c-0-0 takes over from c-0-1 as the master"},
		"it was told, and its time is just over": {snapshot: with(func(s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.SwitchoverAt = now.Add(-reluctance)
		}), asked: "c-1-1", step: "Switchover"},
		"the cluster wakes": {snapshot: with(func(s *snapshot.Snapshot) {
			s.Hibernated, s.Find(2, 1).Ready = v1alpha1.Topology{2, 2, 2}, false
		}), asked: "c-1-1", step: "EndSwitchover", why: "the cluster is hibernated"},
		"the cluster has not formed": {snapshot: with(func(s *snapshot.Snapshot) { s.Formed = false }), asked: "c-1-1", step: "None"},
		"of a shard that owns nothing": {snapshot: joined(4), asked: "c-3-1", desired: func(d *Desired) { d.AssignReceive = true },
			step: "EndSwitchover", why: "shard 3 owns no slot, and nobody is elected in it"},
		"the master of a shard that owns nothing": {snapshot: joined(4), asked: "c-3-0", desired: func(d *Desired) { d.AssignReceive = true },
			step: "EndSwitchover", why: "c-3-0 is the master of shard 3"},
		"it does not answer, and something is stalled": {snapshot: with(func(s *snapshot.Snapshot) {
			lose(s, 1, 1).Stalled = "OverCapacity"
		}), asked: "c-1-1", step: "Wait", blockedBy: SnapshotComplete},
		"masters are to part when the user has restarted instances": {snapshot: changed(func() *snapshot.Snapshot {
			return placed("a", "a", "b", "c", "d", "c", "e", "b", "f", "f")
		}, func(s *snapshot.Snapshot) {
			for i := range s.Shards {
				s.Shards[i].UpdateRevision = "new"
			}
			for i := range s.Instances {
				s.Instances[i].Revision = "old"
			}
		})(), asked: "c-4-1", desired: func(d *Desired) { d.OnDelete, d.SpreadMasters = true, true }, step: "Switchover",
			why: "c-4-1 takes over from c-4-0 as the master"},
		"nobody asks": {snapshot: apart(), step: "None"},
	} {
		t.Run(name, func(t *testing.T) {
			d := spreading(len(tt.snapshot.Shards))
			d.SpreadMasters, d.Switchover = false, tt.asked
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := decide(d, tt.snapshot, now).Step
			wait, _ := got.(Wait)
			if wait.Requested != (wait.BlockedBy != "" && wait.BlockedBy != PodsReady && wait.BlockedBy != SnapshotComplete &&
				strings.Contains(wait.Why(), "is to take over")) {
				t.Errorf("requested: %+v", wait)
			}
			if switchover, is := got.(Switchover); is && switchover.Requested != strings.Contains(switchover.Why(), "the annotation") {
				t.Errorf("requested: %+v", switchover)
			}
			if got.Name() != tt.step || !strings.Contains(got.Why(), tt.why) || tt.blockedBy != "" && wait.BlockedBy != tt.blockedBy {
				t.Errorf("got %s (%s): %s\nwant %s (%s): %s", got.Name(), wait.BlockedBy, got.Why(), tt.step, tt.blockedBy, tt.why)
			}
			if end, ends := got.(EndSwitchover); ends && (end.Instance != tt.asked || strings.Contains(end.Why(), "\x1b") ||
				end.Refused == strings.Contains(end.Why(), "is the master of shard")) {
				t.Errorf("got %+v", end)
			}
		})
	}
}

// A request says for itself what it waits for: no rule before it need have found that.
func TestSwitchoverWaitsForItsInstance(t *testing.T) {
	for why, tt := range map[string]struct {
		change    func(*snapshot.Snapshot)
		blockedBy Predicate
	}{
		"c-1-1 is to take over, and does not answer: timeout": {func(s *snapshot.Snapshot) { lose(s, 1, 1) }, SnapshotComplete},
		"c-1-1 is to take over from c-1-0, and its pod is not ready": {func(s *snapshot.Snapshot) { s.Find(1, 1).Ready = false },
			PodsReady},
		"c-1-1 is to take over from c-1-0, and is not in sync with it": {func(s *snapshot.Snapshot) { unsynced(s, 1, 1) },
			ReplicaInSync},
	} {
		d, s := desired(), changed(formed, tt.change)()
		d.Switchover = "c-1-1"
		in := ShapeOf(d, s, now).in
		wait, waits := planAwaitSwitchover(in).(Wait)
		if !waits || !wait.Requested || wait.BlockedBy != tt.blockedBy || wait.Why() != why {
			t.Errorf("waits: %t: %+v, want %s (%s)", waits, wait, why, tt.blockedBy)
		}
		if step := planSwitchover(in); step != nil {
			t.Errorf("%s, and yet: %s", why, step.Why())
		}
	}
}

// No switchover that is carried out is one that spreading masters takes back, at once or after others: the operator would do and undo it.
func TestNoSwitchoverIsUndone(t *testing.T) {
	for _, places := range [][]string{{"a", "b", "c"}, {"a@x", "b@x", "c@y"}, {"a@x", "b@y", ""}} {
		carriedOut := 0
		for n := range 3 * 3 * 3 * 3 * 3 * 3 {
			var nodes []string
			for ; len(nodes) < 6; n /= 3 {
				nodes = append(nodes, places[n%3])
			}
			for shard := range 3 {
				if staysSwitchedOver(t, nodes, shard) {
					carriedOut++
				}
			}
		}
		if carriedOut < 100 {
			t.Errorf("on %v only %d were carried out", places, carriedOut)
		}
	}
}

// staysSwitchedOver reports whether the switchover of a shard is carried out. It fails if that is taken back.
func staysSwitchedOver(t *testing.T, nodes []string, shard int) bool {
	t.Helper()
	s, d := placed(nodes...), spreading(3)
	asked := s.Find(shard, 1).Name
	d.Switchover = asked
	done := false
	for range 12 {
		step := decide(d, s, now).Step
		if end, is := step.(EndSwitchover); is {
			d.Switchover, done = "", !end.Refused
			continue
		}
		switchover, is := step.(Switchover)
		if !is {
			break
		}
		at := s.ByNodeID(switchover.Master.NodeID).Shard
		if done && at == shard {
			t.Errorf("%v: %s takes over again", nodes, switchover.Replica.Pod)
		}
		was, with := s.ByNodeID(switchover.Master.NodeID), s.ByNodeID(switchover.Replica.NodeID)
		with.Redis.Slots, with.Redis.Master, with.Redis.MasterID = was.Redis.Slots, true, ""
		was.Redis.Slots, was.Redis.Master, was.Redis.MasterID, was.Redis.MasterLinkUp = slots.Set{}, false, with.Redis.NodeID, true
		introduce(s)
	}
	return done
}
