// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A template that only the operator changed restarts nothing before it is the cluster's turn, and holds up nothing else.
func TestTurn(t *testing.T) {
	unobserved := formed()
	unobserved.Shards[1].Unobserved = true
	crashing := broken(outmoded(), 1, 1, "old")
	homeless := broken(outmoded(), 1, 1, "old")
	homeless.Find(1, 1).NodeName = ""
	waits := Pending{Held: []string{"c-0"}}
	outrun := outmoded("c-0-0")
	lag := outrun.Find(0, 1).Redis
	lag.MasterLinkUp, lag.MasterLinkDownFor = false, time.Minute
	fences := outmoded()
	fences.Find(0, 1).InEndpoints, fences.Find(0, 1).Ready = false, false
	lagging := func(updated ...string) *snapshot.Snapshot {
		s := unsynced(outmoded(updated...), 0, 1)
		s.Find(0, 1).Redis.MasterLinkDownFor = 6 * time.Second
		return s
	}
	for name, tt := range map[string]struct {
		change    func(*Desired)
		snapshot  *snapshot.Snapshot
		pending   Pending
		situation Situation
		step, why string
		held      bool
	}{
		"pods of an older template stay": {snapshot: outmoded(), situation: Steady, step: "TakeTurn", why: "waits for the turn", held: true},
		"StatefulSets are not written":   {snapshot: formed(), pending: waits, situation: Steady, step: "TakeTurn", why: "waits for", held: true},
		"it is said how far the others are": {snapshot: outmoded(), pending: Pending{Turn: &Turn{Why: "3 of 40 upgraded", Stopped: true}},
			situation: Steady, step: "TakeTurn", why: "waits for its turn: 3 of 40 upgraded", held: true},
		"its turn": {snapshot: outmoded(), pending: Pending{Turn: &Turn{Wave: 2}}, situation: Steady, step: "TakeTurn",
			why: "it is the turn of the cluster", held: true},
		"nothing is another": {snapshot: formed(), situation: Steady, step: "None", held: true},
		"which pods are older is not known": {snapshot: unobserved, situation: Steady, step: "TakeTurn", why: "waits for the turn",
			held: true},
		"healing goes on": {snapshot: lose(outmoded(), 0, 1), situation: Healing, step: "Wait", why: "c-0-1 does not answer", held: true},
		"other children are applied": {snapshot: outmoded(), pending: Pending{Children: []string{"Service c"}}, situation: Healing,
			step: "ApplyChildren", held: true},
		"a person's request is carried out": {snapshot: outmoded(), change: func(d *Desired) { d.Switchover = "c-0-1" },
			situation: Healing, step: "Switchover", held: true},
		"what does not start takes the new template": {snapshot: crashing, situation: RollingOut, step: "Restart",
			why: "c-1-1 does not run"},
		"what cannot follow a master of a newer template does": {snapshot: outrun, situation: RollingOut, step: "Restart", why: "c-0-1"},
		"but not one that no node has room for": {snapshot: homeless, situation: Healing, step: "Restart", held: true,
			why: "c-1-1 does not run"},
		"a cluster that has not formed does not wait": {snapshot: changed(func() *snapshot.Snapshot { return outmoded() },
			func(s *snapshot.Snapshot) { s.Formed = false })(), situation: Forming, step: "Restart"},
		"paused": {snapshot: outmoded(), change: func(d *Desired) { d.Paused = true }, situation: Paused, step: "Hold", held: true,
			why: "spec.pause is true"},
		"a person restarts them": {snapshot: outmoded(), change: func(d *Desired) { d.OnDelete = true }, situation: Steady, step: "TakeTurn",
			held: true, why: "waits for the turn"},
		"a replica that has lost its master is waited for": {snapshot: lagging(), situation: Healing, step: "Wait", held: true,
			why: "c-0-1 is not in sync with its master yet"},
		"so is a master that does not answer": {snapshot: lose(lagging("c-0-0"), 0, 0), situation: Healing, step: "Wait", held: true},
		"what fails and answers waits for its turn": {snapshot: changed(func() *snapshot.Snapshot { return outmoded() },
			func(s *snapshot.Snapshot) { s.Find(1, 1).Failing = true })(), situation: Steady, step: "TakeTurn", held: true},
		"what does not start and is being deleted comes back as it was": {
			snapshot: changed(func() *snapshot.Snapshot { return broken(outmoded(), 1, 1, "old") },
				func(s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true })(), situation: Healing, step: "Wait", held: true},
		"an instance is fenced": {snapshot: fences, change: func(d *Desired) { d.Fenced = []string{"c-0-1"} }, situation: Healing, step: "Wait",
			held: true, why: "the turn of the cluster, which it could not use, waits for c-0-1, which is fenced"},
		"a cluster that has not formed has no turn": {snapshot: changed(formed, func(s *snapshot.Snapshot) { s.Formed = false })(),
			pending: waits, situation: Steady, step: "None"},
		"a cluster that goes has no turn": {snapshot: outmoded(), change: func(d *Desired) { d.Deleting = true }, situation: Deleting,
			step: "DeleteChildren"},
		"the load is followed": {snapshot: outmoded(), change: func(d *Desired) { d.ScaleTo, d.ScaleMost = 4, 5 }, situation: Steady,
			step: "SetShards", held: true},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			d.Held = true
			if tt.change != nil {
				tt.change(&d)
			}
			shape := ShapeOf(d, tt.snapshot, now)
			got := shape.Next(tt.pending)
			if got.Step.Name() != tt.step || got.Situation != tt.situation || !strings.Contains(got.Step.Why(), tt.why) || shape.Held != tt.held {
				t.Errorf("%s, %s: %s (held: %t), want %s, %s: %s (%t)", got.Situation, got.Step.Name(), got.Step.Why(), shape.Held,
					tt.situation, tt.step, tt.why, tt.held)
			}
			if turn, is := got.Step.(TakeTurn); is && tt.pending.Turn != nil && (turn.Wave != tt.pending.Turn.Wave ||
				turn.Stopped != tt.pending.Turn.Stopped) {
				t.Errorf("the step has wave %d, stopped: %t", turn.Wave, turn.Stopped)
			}
		})
	}
}

// A cluster of which nothing runs does not wait.
func TestNobodyWaitsAsleep(t *testing.T) {
	s := formed()
	s.Instances, s.Hibernated = nil, desired().Topology
	for i := range s.Shards {
		s.Shards[i].Replicas = 0
	}
	d := desired()
	d.Held, d.Hibernate = true, true
	if ShapeOf(d, s, now).Held {
		t.Error("the template of a hibernated cluster waits")
	}
}
