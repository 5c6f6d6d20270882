// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

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
			asked: "c-1-1", step: "Wait", blockedBy: WritesAccepted},
		"it was asked for a moment ago": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.SwitchoverAt = now.Add(-time.Minute) }),
			asked: "c-1-1", step: "Wait", blockedBy: MasterElected},
		"its master has just taken over": {snapshot: with(func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.DemotedAt = now.Add(-time.Second) }),
			asked: "c-1-1", step: "Wait", blockedBy: MasterElected},
		"slots are not covered":     {snapshot: lose(apart(), 2, 0), asked: "c-1-1", step: "Wait", blockedBy: SnapshotComplete},
		"a template rolls out":      {snapshot: outmoded(), asked: "c-1-1", step: "Restart"},
		"a rollout is not yet told": {snapshot: with(func(s *snapshot.Snapshot) { s.Rolling = true }), asked: "c-1-1", step: "None"},
		"the user restarts instances": {snapshot: outmoded(), asked: "c-1-1", desired: func(d *Desired) { d.OnDelete = true },
			step: "Switchover"},
		"paused":                  {snapshot: apart(), asked: "c-1-1", desired: func(d *Desired) { d.Paused = true }, step: "Hold"},
		"before it is hibernated": {snapshot: apart(), asked: "c-1-1", desired: func(d *Desired) { d.Hibernate = true }, step: "Switchover"},
		"nobody asks":             {snapshot: apart(), step: "None"},
	} {
		t.Run(name, func(t *testing.T) {
			d := spreading(len(tt.snapshot.Shards))
			d.SpreadMasters, d.Switchover = false, tt.asked
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := decide(d, tt.snapshot, now).Step
			wait, _ := got.(Wait)
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

// No switchover that is carried out is one that spreading masters takes back: the operator would do and undo it for ever.
func TestNoSwitchoverIsUndone(t *testing.T) {
	for _, nodes := range [][]string{{"a", "b", "c", "b", "c", "a"}, {"a", "a", "c", "b", "b", "a"},
		{"a@x", "b@x", "c@y", "d@z", "e@z", "f@y"},
		{"a", "b", "c", "d", "e", "f"}, {"b", "b", "c", "b", "c", "a"}} {
		for shard := range 3 {
			s := placed(nodes...)
			d := spreading(3)
			d.Switchover = s.Find(shard, 1).Name
			if decide(d, s, now).Step.Name() != "Switchover" {
				continue
			}
			d.Switchover = ""
			if step, is := decide(d, swapped(s, shard), now).Step.(Switchover); is && step.Replica.Pod == s.Find(shard, 0).Name {
				t.Errorf("%v: %s takes over again", nodes, step.Replica.Pod)
			}
		}
	}
}
