// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func TestCanSucceed(t *testing.T) {
	proven(t, healthy, func(in input) bool { return canSucceed(in.snap.Find(1, 1), in.snap.Find(1, 0)) }, changes{
		"it is a master itself": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Master = true },
		"it follows another":    func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterID = nodeID(0, 0) },
		"its link is down":      func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 1, 1) },
		"it stops":              func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"it thinks of other slots": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-1-0", func(p *snapshot.Peer) { p.Slots = slots.Of(0) })
		},
	}, nil)
}

func TestStale(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) { return desired(), outmoded() }
	proven(t, situation, func(in input) bool { return in.stale(in.snap.Find(1, 1)) }, changes{
		"it has the template asked for":  func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Revision = "new" },
		"its template is not known":      func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Revision = "" },
		"what is asked for is not known": func(_ *Desired, s *snapshot.Snapshot) { s.Shards[1].UpdateRevision = "" },
		"it is to go":                    func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 1, 2} },
		"its StatefulSet is gone":        func(_ *Desired, s *snapshot.Snapshot) { s.Shards = s.Shards[:1] },
	}, nil)
}

func TestSkewed(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := unsynced(outmoded(), 1, 1)
		s.Find(1, 1).Redis.MasterLinkDownFor = 6 * time.Second
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return in.skewed(in.snap.Find(1, 1)) }, changes{
		"users restart instances":         func(d *Desired, _ *snapshot.Snapshot) { d.OnDelete = true },
		"it has the template asked for":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Revision = "new" },
		"it is a master":                  func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Master = true },
		"it is linked":                    func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkUp = true },
		"the link is down since a moment": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkDownFor = 5 * time.Second },
	}, nil)
}

// A pod that does not run is replaced only if no data goes with it.
func TestRepairKeepsData(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := broken(outmoded(), 1, 1, "old")
		return desired(), s
	}
	alone := func(s *snapshot.Snapshot) { lose(s, 1, 0) }
	proven(t, situation, func(in input) bool { return planRepair(in) != nil }, changes{
		"users restart instances":          func(d *Desired, _ *snapshot.Snapshot) { d.OnDelete = true },
		"it answers":                       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis = fresh().Find(1, 1).Redis },
		"it stops":                         func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"it may run":                       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Failing = false },
		"it has the template asked for":    func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Revision = "new" },
		"nobody else of its shard answers": func(_ *Desired, s *snapshot.Snapshot) { alone(s) },
		"and another one's claim is no use": func(_ *Desired, s *snapshot.Snapshot) {
			alone(s)
			s.Claims = []snapshot.Claim{{Name: "data-c-1-0"}}
		},
		"and its claim is being deleted": func(_ *Desired, s *snapshot.Snapshot) {
			alone(s)
			s.Claims = []snapshot.Claim{{Name: "data-c-1-1", Terminating: true}}
		},
	}, changes{
		"nobody else answers, and a claim keeps its data": func(_ *Desired, s *snapshot.Snapshot) {
			alone(s)
			s.Claims = []snapshot.Claim{{Name: "data-c-1-1"}}
		},
		"nobody else answers, and there is no data yet": func(_ *Desired, s *snapshot.Snapshot) { alone(s); s.Formed = false },
	})
}

// What is restarted next, and what comes before.
func TestRestartIsPrepared(t *testing.T) {
	master := func() *snapshot.Snapshot { return outmoded(replicas...) }
	gone := func(asked time.Duration) func() *snapshot.Snapshot {
		return func() *snapshot.Snapshot {
			return removedFromEndpoints(outmoded(replicas...), 1, 0, 10*time.Second, asked)
		}
	}
	for name, tt := range map[string]struct {
		situation func() *snapshot.Snapshot
		topology  []int32
		change    func(*Desired, *snapshot.Snapshot)
		step, why string
	}{
		"a replica restarts": {situation: func() *snapshot.Snapshot { return outmoded() }, step: "Restart", why: "c-0-1 runs"},
		"a replica that stops is waited for": {situation: func() *snapshot.Snapshot { return outmoded() }, step: "Wait", why: "c-0-1 is stopping",
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Terminating = true }},
		"a replica that clients ask leaves the endpoints": {situation: func() *snapshot.Snapshot { return outmoded() },
			step: "RemoveFromEndpoints", why: "clients still ask it",
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.RedirectedAt = now.Add(-2 * time.Second) }},
		"but not one that has no gate": {situation: func() *snapshot.Snapshot { return outmoded() }, step: "Restart", why: "c-0-1 runs",
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Find(0, 1).Redis.RedirectedAt, s.Find(0, 1).HasReadinessGate = now.Add(-2*time.Second), false
			}},
		"nor one that was never opened to them": {situation: func() *snapshot.Snapshot { return outmoded() }, step: "Restart", why: "c-0-1 runs",
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Find(0, 1).Redis.RedirectedAt, s.Find(0, 1).InEndpoints = now.Add(-2*time.Second), false
			}},
		"nor one that they stopped asking": {situation: func() *snapshot.Snapshot { return outmoded() }, step: "Restart", why: "c-0-1 runs",
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.RedirectedAt = now.Add(-quietBeforeRestart) }},
		"a master leaves the endpoints first": {situation: master, step: "RemoveFromEndpoints", why: "c-0-0 is about to be restarted"},
		"one without a gate switches over at once": {situation: master, step: "Switchover", why: "c-0-1 takes over",
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).HasReadinessGate = false }},
		"one that left them goes first, and switches over": {situation: gone(time.Hour), step: "Switchover", why: "c-1-1 takes over"},
		"nobody takes over from it who is not in sync": {situation: gone(time.Hour), step: "Wait", why: "no other instance is in sync",
			change: func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 1, 1) }},
		"nor who leaves": {situation: gone(time.Hour), topology: []int32{2, 2, 2}, step: "Wait", why: "no other instance is in sync",
			change: func(d *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Ordinal = 5 }},
		"nor who is to be restarted next": {situation: gone(time.Hour), step: "Wait", why: "no other instance is in sync",
			change: func(_ *Desired, s *snapshot.Snapshot) {
				removedFromEndpoints(s, 1, 1, 10*time.Second, time.Hour).Find(1, 1).Revision = "old"
			}},
		"the only one of its shard just restarts": {situation: master, topology: []int32{1, 1, 1}, step: "Restart", why: "c-0-0 runs",
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Instances = []snapshot.Instance{*s.Find(0, 0), *s.Find(1, 0), *s.Find(2, 0)}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := desired(), tt.situation()
			if tt.topology != nil {
				d.Topology = tt.topology
			}
			if tt.change != nil {
				tt.change(&d, s)
			}
			if step := planRollout(ShapeOf(d, s, now).in); step == nil || step.Name() != tt.step || !containsWhy(step, tt.why) {
				t.Errorf("got %+v, want %s: %s", step, tt.step, tt.why)
			}
		})
	}
}

// While the clients of a former master learn who has taken over, the next master switches over, if that is safe.
func TestNextMasterDoesNotWait(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := switchedOver(outmoded(replicas...), 0)
		return desired(), removedFromEndpoints(s, 0, 0, 10*time.Second, time.Second)
	}
	switches := func(in input) bool {
		step, is := planRollout(in).(Switchover)
		return is && step.Master.Pod == "c-1-0" && step.Replica.Pod == "c-1-1"
	}
	proven(t, situation, switches, changes{
		"its replica has the old template": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Revision, s.Find(2, 1).Revision = "old", "old"
		},
		"its replica is not in sync": func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 1, 1) },
		"no client asks the first one any more": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 0).Redis.RedirectedAt = now.Add(-time.Hour)
		},
	}, nil)
}

// Of two replicas the one with the new template takes over, and of two that have it, the one with more data.
func TestBestSuccessor(t *testing.T) {
	situation := func(revisions [3]string, offsets [3]int64) input {
		s := outmoded()
		for ordinal := 1; ordinal < 3; ordinal++ {
			if ordinal == 2 {
				pod, redis := *s.Find(0, 1), *s.Find(0, 1).Redis
				redis.NodeID, redis.Peers, pod.Redis = nodeID(0, 2), map[string]snapshot.Peer{}, &redis
				pod.Name, pod.Ordinal, pod.IP = "c-0-2", 2, podIP(0, 2)
				s.Instances = append(s.Instances, pod)
			}
			s.Find(0, ordinal).Revision, s.Find(0, ordinal).Redis.Offset = revisions[ordinal], offsets[ordinal]
		}
		introduce(s)
		return ShapeOf(with([]int32{3, 2, 2}), s, now).in
	}
	for name, tt := range map[string]struct {
		revisions [3]string
		offsets   [3]int64
		want      string
	}{
		"the new template, first":  {[3]string{"", "new", "old"}, [3]int64{0, 1, 2}, "c-0-1"},
		"the new template, second": {[3]string{"", "old", "new"}, [3]int64{0, 2, 1}, "c-0-2"},
		"more data, first":         {[3]string{"", "new", "new"}, [3]int64{0, 2, 1}, "c-0-1"},
		"more data, second":        {[3]string{"", "new", "new"}, [3]int64{0, 1, 2}, "c-0-2"},
		"the same":                 {[3]string{"", "new", "new"}, [3]int64{0, 1, 1}, "c-0-1"},
	} {
		in := situation(tt.revisions, tt.offsets)
		if step, ok := switchOver(in, in.snap.Find(0, 0)).(Switchover); !ok || step.Replica.Pod != tt.want {
			t.Errorf("%s: got %+v, want %s", name, step, tt.want)
		}
	}
}
