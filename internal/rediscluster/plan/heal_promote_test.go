// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// away is the formed cluster of which the masters of some shards do not run any more since some time: their pods fit nowhere.
func away(since time.Duration, shards ...int) *snapshot.Snapshot {
	s := formed()
	lost := now.Add(-since)
	for _, shard := range shards {
		gone := s.Find(shard, 0)
		id := gone.Redis.NodeID
		gone.Redis, gone.IP, gone.Waiting, gone.Failing, gone.Stopped = nil, "", "not scheduled: 3 nodes were unschedulable", true, true
		gone.Error = gone.Waiting
		for _, in := range s.Reachable() {
			peer := in.Redis.Peers[id]
			peer.Connected, peer.Suspected, peer.LastPong = false, true, lost.Add(-time.Second)
			in.Redis.Peers[id] = peer
		}
		replica := s.Find(shard, 1).Redis
		replica.NodeTimeout, replica.MasterLinkUp, replica.MasterLinkLost, replica.MasterLinkDownFor = 2*time.Second, false, true, since
	}
	return s
}

// A master whose container has ended, as the kubelet says, is succeeded at once by the replica that followed it to its end.
func TestCrashedMaster(t *testing.T) {
	crash := func(change func(s *snapshot.Snapshot)) *snapshot.Snapshot {
		s := away(time.Second, 1)
		pod := s.Find(1, 0)
		pod.IP, pod.Waiting, pod.Error, pod.StoppedAt = podIP(1, 0), "container redis: CrashLoopBackOff", "container redis: CrashLoopBackOff",
			now.Add(-1500*time.Millisecond)
		change(s)
		return s
	}
	for name, tt := range map[string]struct {
		change func(s *snapshot.Snapshot)
		step   string
	}{
		"at once":                          {func(*snapshot.Snapshot) {}, "Promote"},
		"although others see it alive yet": {func(s *snapshot.Snapshot) { alive(s, 1) }, "Promote"},
		"not before the kubelet says so": {func(s *snapshot.Snapshot) { s.Find(1, 0).Stopped, s.Find(1, 0).StoppedAt = false, time.Time{} },
			"Wait"},
		"not a replica that was cut off":    {func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkDownFor = 5 * time.Second }, "Wait"},
		"not a replica that never followed": {func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkLost = false }, "Wait"},
		"not if another process ended":      {func(s *snapshot.Snapshot) { s.Find(1, 0).IP = "10.9.9.9" }, "Wait"},
		"not before all may vote again":     {func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.SwitchoverAt = now.Add(-5 * time.Second) }, "Wait"},
		"once more when all may":            {func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.SwitchoverAt = now.Add(-6 * time.Second) }, "Promote"},
		"nor of most masters that are silent: they may be back at once": {func(s *snapshot.Snapshot) {
			*s = *away(time.Second, 0, 1)
			for shard := range 2 {
				pod := s.Find(shard, 0)
				pod.IP, pod.StoppedAt, pod.Refuses = podIP(shard, 0), now.Add(-1500*time.Millisecond), true
			}
		}, "Wait"},
		"not without voters": {
			func(s *snapshot.Snapshot) { fail(s, nodeID(0, 0)); lose(s, 0, 0); lose(s, 2, 0); fail(s, nodeID(2, 0)) }, "Wait"},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(desired(), crash(tt.change), now)
			if promote, ok := got.Step.(Promote); got.Step.Name() != tt.step || ok && (promote.Takeover || promote.Replica.Pod != "c-1-1") {
				t.Errorf("got %s: %s %+v, want %s of c-1-1 by a vote", got.Step.Name(), got.Step.Why(), got.Step, tt.step)
			}
		})
	}
}

// alive makes every instance see the first instance of a shard alive.
func alive(s *snapshot.Snapshot, shard int) {
	for _, in := range s.Reachable() {
		peer := in.Redis.Peers[nodeID(shard, 0)]
		peer.Connected, peer.Suspected, peer.Failed = true, false, false
		in.Redis.Peers[nodeID(shard, 0)] = peer
	}
}

// A master whose pod does not run may come back with its claim. Its replica takes over only if it has what the master had, as an
// election would have made it.
func TestMastersThatStayAway(t *testing.T) {
	long := electionTimeout + time.Second
	edit := func(change func(s *snapshot.Snapshot)) func() *snapshot.Snapshot {
		return changed(func() *snapshot.Snapshot { return away(long, 0, 2) }, change)
	}
	for name, tt := range map[string]struct {
		snapshot  func() *snapshot.Snapshot
		step, why string
		takeover  bool
	}{
		"most masters: a replica takes over": {snapshot: edit(func(*snapshot.Snapshot) {}), step: "Promote",
			why: "does not run, and so are most masters: nobody is left to elect c-0-1", takeover: true},
		"not before an election would have its time": {snapshot: func() *snapshot.Snapshot { return away(electionTimeout, 0, 2) }, step: "Wait",
			why: "c-0-0: not scheduled"},
		"one master: the others vote": {snapshot: func() *snapshot.Snapshot { return away(long, 1) }, step: "Promote",
			why: "no replica was elected within"},
		"and one that has crashed so long ago: as after any other loss": {
			snapshot: changed(func() *snapshot.Snapshot { return away(long, 1) }, func(s *snapshot.Snapshot) {
				s.Find(1, 0).IP, s.Find(1, 0).StoppedAt = podIP(1, 0), now.Add(-long)
			}), step: "Promote", why: "no replica was elected within"},
		"they vote also if its address may lead to it": {
			snapshot: changed(func() *snapshot.Snapshot { return away(long, 1) }, func(s *snapshot.Snapshot) { s.Find(1, 0).IP = podIP(1, 0) }),
			step:     "Promote", why: "no replica was elected within"},
		"but not while another pod may be it": {
			snapshot: changed(func() *snapshot.Snapshot { return away(long, 1) }, func(s *snapshot.Snapshot) { lose(s, 2, 1) }),
			step:     "Wait", why: "c-1-0: not scheduled"},
		"nobody takes over from masters whose addresses may lead to them": {step: "Wait", why: "c-0-0: not scheduled",
			snapshot: edit(func(s *snapshot.Snapshot) { s.Find(0, 0).IP, s.Find(2, 0).IP = podIP(0, 0), podIP(2, 0) })},
		"who takes over does not wait until others may vote again": {step: "Promote", why: "nobody is left to elect c-0-1", takeover: true,
			snapshot: edit(func(s *snapshot.Snapshot) { s.Find(0, 1).Redis.SwitchoverAt = now.Add(-time.Second) })},
		"not while a pod may run": {step: "Wait", why: "c-0-0: not scheduled", snapshot: edit(func(s *snapshot.Snapshot) {
			s.Find(2, 0).Stopped = false
		})},
		"not while a pod is missing": {
			step: "Wait", why: "c-0-0: not scheduled",
			snapshot: edit(func(s *snapshot.Snapshot) { s.Instances = slices.Delete(s.Instances, 4, 5) })},
		"not while anybody sees the master alive": {step: "Wait", why: "c-0-0: not scheduled", snapshot: edit(func(s *snapshot.Snapshot) {
			for _, shard := range []int{0, 2} {
				peer := s.Find(1, 0).Redis.Peers[nodeID(shard, 0)]
				peer.Suspected = false
				s.Find(1, 0).Redis.Peers[nodeID(shard, 0)] = peer
			}
		})},
		"not a replica that was cut off before": {step: "Wait", why: "c-0-0: not scheduled", snapshot: edit(func(s *snapshot.Snapshot) {
			s.Find(0, 1).Redis.MasterLinkDownFor += 4 * time.Second
			s.Find(2, 1).Redis.MasterLinkDownFor += 4 * time.Second
		})},
		"but another shard's that was not": {step: "Promote", why: "nobody is left to elect c-2-1", takeover: true,
			snapshot: edit(func(s *snapshot.Snapshot) {
				s.Find(0, 1).Redis.MasterLinkDownFor += 4 * time.Second
			})},
		"not a replica that started since and never was in sync": {
			step: "Wait", why: "c-0-0: not scheduled", snapshot: edit(func(s *snapshot.Snapshot) {
				s.Find(0, 1).Redis.MasterLinkLost, s.Find(2, 1).Redis.MasterLinkLost = false, false
			})},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(desired(), tt.snapshot(), now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s: %s\nwant %s: %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
			if promote, ok := got.Step.(Promote); ok && promote.Takeover != tt.takeover {
				t.Errorf("without a vote: %v, want %v", promote.Takeover, tt.takeover)
			}
		})
	}
}

// Of two replicas the one succeeds that followed its master for longer, then the one that has received more.
func TestBestReplica(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(first, second *snapshot.Instance)
		want   string
	}{
		"who has received more": {func(_, second *snapshot.Instance) { second.Redis.Offset = 5 }, "c-0-2"},
		"who is linked to it": {func(first, second *snapshot.Instance) {
			first.Redis.MasterLinkUp, second.Redis.Offset = true, 5
		}, "c-0-1"},
		"who was when it was last seen": {func(_, second *snapshot.Instance) {
			second.Redis.Offset, second.Redis.MasterLinkDownFor = 5, time.Hour
		}, "c-0-1"},
		"who ever was": {func(first, second *snapshot.Instance) {
			first.Redis.MasterLinkDownFor, second.Redis.Offset, second.Redis.MasterLinkLost = time.Hour, 5, false
		}, "c-0-1"},
		"who is not left alone": {func(first, _ *snapshot.Instance) { first.Redis.Offset, first.Fenced = 5, true }, "c-0-2"},
	} {
		s := away(time.Minute, 0)
		second, redis := *s.Find(0, 1), *s.Find(0, 1).Redis
		second.Name, second.Ordinal, second.IP, second.Redis = "c-0-2", 2, podIP(0, 2), &redis
		redis.NodeID = nodeID(0, 2)
		s.Instances = append(s.Instances, second)
		tt.change(s.Find(0, 1), s.Find(0, 2))
		if got := bestReplica(ShapeOf(desired(), s, now).in, nodeID(0, 0)); got == nil || got.Name != tt.want {
			t.Errorf("%s: %+v, want %s", name, got, tt.want)
		}
	}
}

// Whose master has lost its nodes.conf takes over without a vote if most masters have, and says that this one runs under another node ID.
func TestInherits(t *testing.T) {
	one, most := follows(forgetful([2]int{0, 0}), 0, 1, true), follows(follows(forgetful([2]int{0, 0}, [2]int{1, 0}), 0, 1, true), 1, 1, true)
	if promote, ok := decide(desired(), one, now).Step.(Promote); !ok || promote.Takeover || promote.Lost != "" || promote.Inherited {
		t.Errorf("one of three: %+v", promote)
	}
	promote, ok := decide(desired(), most, now).Step.(Promote)
	if !ok || !promote.Takeover || promote.Lost != nodeID(0, 0) || !promote.Inherited || promote.Replica.Pod != "c-0-1" {
		t.Errorf("two of three: %+v", promote)
	}
}
