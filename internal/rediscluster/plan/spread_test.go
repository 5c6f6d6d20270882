// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// placed is a formed cluster of shards of 2, with instances on these nodes (a node may be followed by @ and its zone): the
// masters, then the replicas.
func placed(nodes ...string) *snapshot.Snapshot {
	shards := len(nodes) / 2
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Formed: true, Seen: map[string]bool{}}
	for shard, part := range slots.All().Split(shards) {
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: 2})
		for ordinal := range 2 {
			in := snapshot.Instance{Name: fmt.Sprintf("c-%d-%d", shard, ordinal), Shard: shard, Ordinal: ordinal, IP: podIP(shard, ordinal),
				Ready: true,
				Redis: &snapshot.Redis{NodeID: nodeID(shard, ordinal), ClusterOK: true, Peers: map[string]snapshot.Peer{}}}
			in.NodeName, in.Zone, _ = strings.Cut(nodes[ordinal*shards+shard], "@")
			if in.Redis.Master = ordinal == 0; in.Redis.Master {
				in.Redis.Slots = part
			} else {
				in.Redis.MasterID, in.Redis.MasterLinkUp = nodeID(shard, 0), true
			}
			s.Instances = append(s.Instances, in)
		}
	}
	introduce(s)
	return s
}

// spreading asks for a cluster of shards of 2 with its masters spread.
func spreading(shards int) Desired {
	d := desired()
	d.SpreadMasters, d.Topology = true, make(v1alpha1.Topology, shards)
	for i := range d.Topology {
		d.Topology[i] = 2
	}
	return d
}

func TestSpread(t *testing.T) {
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		step     string
		why      string
	}{
		"masters on three nodes stay":     {placed("a", "b", "c", "b", "c", "a"), "None", ""},
		"two masters on one node part":    {placed("a", "a", "c", "b", "b", "a"), "Switchover", "c-0-1 takes over"},
		"not to a node that is no better": {placed("a", "a", "c", "c", "c", "a"), "None", ""},
		"another master makes room first": {placed("b", "b", "c", "b", "c", "a"), "Switchover", "c-2-1 takes over"},
		"a majority parts":                {placed("a", "a", "a", "b", "c", "b", "d", "e", "f", "g"), "Switchover", "c-0-1 takes over"},
		"a majority parts as otherwise when a rollout has just come to its end": {changed(func() *snapshot.Snapshot {
			return placed("a", "a", "a", "b", "c", "b", "d", "e", "f", "g")
		}, func(s *snapshot.Snapshot) { s.Rolling = true })(), "Switchover", "c-0-1 takes over"},
		"zones count when nodes do not": {placed("a@x", "b@x", "c@y", "d@z", "e@z", "f@y"), "Switchover",
			"(a in x): c-0-1 takes over"},
		"a zone that is not known is none":          {placed("a", "b", "c@y", "d@z", "e@z", "f@y"), "None", ""},
		"a zone that is not known is no better one": {placed("a@x", "b@x", "c@y", "d", "e", "f@y"), "None", ""},
		"an only zone is no better than it is":      {placed("a@x", "b@x", "c@x", "b@x", "c@x", "a@x"), "None", ""},
		"most masters before evenness": {placed("a", "a", "a", "b", "b", "c", "d", "e", "e", "f"), "Switchover",
			"c-0-1 takes over"},
		"evenness without a majority at stake": {placed("a", "a", "b", "c", "d", "c", "e", "b", "f", "f"), "Switchover",
			"c-1-1 takes over"},
		"nobody switches over to a replica that is not there": {lose(placed("a", "a", "c", "b", "a", "a"), 0, 1), "Wait", ""},
		"nor while another instance is stopping": {changed(func() *snapshot.Snapshot { return placed("a", "a", "c", "b", "b", "a") },
			func(s *snapshot.Snapshot) { s.Find(2, 0).Terminating = true })(), "None", ""},
		"a replica that is left alone takes over from nobody": {changed(func() *snapshot.Snapshot { return placed("a", "a", "c", "b", "b", "a") },
			func(s *snapshot.Snapshot) { s.Find(0, 1).Fenced = true })(), "Switchover", "c-1-1 takes over"},
		"zones are evened out without a majority at stake": {
			placed("a@x", "b@x", "c@y", "d@z", "e@w", "g@x", "f@v", "h@y", "i@z", "j@w"), "Switchover", "c-1-1 takes over"},
		"the replica that has received most takes over": {changed(func() *snapshot.Snapshot { return placed("a", "a", "c", "b", "b", "a") },
			func(s *snapshot.Snapshot) {
				more := *s.Find(0, 1)
				redis := *more.Redis
				more.Name, more.Ordinal, more.IP, more.NodeName, more.Redis = "c-0-2", 2, podIP(0, 2), "d", &redis
				more.Redis.NodeID, more.Redis.Offset, more.Redis.Peers = nodeID(0, 2), 7, map[string]snapshot.Peer{nodeID(0, 1): {}}
				s.Instances, s.Shards[0].Replicas = append(s.Instances, more), 3
				introduce(s)
			})(), "Switchover", "c-0-2 takes over"},
	} {
		t.Run(name, func(t *testing.T) {
			d := spreading(len(tt.snapshot.Shards))
			d.Topology[0] = tt.snapshot.Shards[0].Replicas
			got := decide(d, tt.snapshot, now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s: %s\nwant %s: %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
		})
	}
}

// lost is a cluster whose node n is lost: nobody hears of the instance that was there, and all count it as failed. Node a has
// two of three masters, and d has a replica of one of them.
func lost() *snapshot.Snapshot {
	s := placed("a", "a", "c", "n", "d", "e")
	fail(s, nodeID(0, 1))
	return lose(s, 0, 1)
}

// A majority is parted while instances are away: nobody says that they come back before the next node is lost.
func TestMajorityPartsWhileInstancesAreAway(t *testing.T) {
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		step     string
	}{
		"a lost node": {lost(), "Switchover"},
		"a lost pod": {
			changed(lost, func(s *snapshot.Snapshot) { s.Instances = append(s.Instances[:1], s.Instances[2:]...) })(), "Switchover"},
		"a pod that is to go with its node": {changed(lost, func(s *snapshot.Snapshot) { s.Find(0, 1).Terminating, s.Find(0, 1).StopBy = true, now })(), "Switchover"},
		"an exporter that does not start": {changed(func() *snapshot.Snapshot { return placed("a", "a", "c", "a", "d", "e") },
			func(s *snapshot.Snapshot) {
				s.Find(2, 0).Ready, s.Find(2, 0).SidecarFailure = false, "container exporter: ErrImagePull"
			})(), "Switchover"},
		"a new shard that owns nothing yet": {changed(lost, func(s *snapshot.Snapshot) {
			more := joined(4)
			s.Shards, s.Instances = append(s.Shards, more.Shards[3]), append(s.Instances, more.Instances[6:]...)
			introduce(s)
			fail(s, nodeID(0, 1))
		})(), "Switchover"},
		"most are in one zone, and the first would crowd a node": {func() *snapshot.Snapshot {
			s := placed("a@x", "b@x", "c", "c@z", "d@z", "n")
			fail(s, nodeID(2, 1))
			return lose(s, 2, 1)
		}(), "Switchover"},
		"not before it has formed": {changed(lost, func(s *snapshot.Snapshot) { s.Formed = false })(), "Wait"},
		"not while a slot has no owner": {changed(lost, func(s *snapshot.Snapshot) {
			s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Subtract(slots.Of(16383))
			introduce(s)
		})(), "Wait"},
		"not when only the operator does not hear of it": {lose(placed("a", "a", "c", "n", "d", "e"), 0, 1), "Wait"},
		"not while it is only suspected": {changed(lost, func(s *snapshot.Snapshot) {
			peer := s.Find(2, 0).Redis.Peers[nodeID(0, 1)]
			peer.Failed, peer.Suspected = false, true
			s.Find(2, 0).Redis.Peers[nodeID(0, 1)] = peer
		})(), "Wait"},
		"not while another is suspected": {changed(lost, func(s *snapshot.Snapshot) {
			peer := s.Find(2, 0).Redis.Peers[nodeID(1, 1)]
			peer.Suspected = true
			s.Find(2, 0).Redis.Peers[nodeID(1, 1)] = peer
		})(), "Wait"},
		"not to a replica that is not in sync": {changed(lost, func(s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkUp = false })(),
			"Wait"},
		"not to a replica that is not ready":     {changed(lost, func(s *snapshot.Snapshot) { s.Find(1, 1).Ready = false })(), "Wait"},
		"not while slots are not served":         {changed(lost, func(s *snapshot.Snapshot) { fail(s, nodeID(2, 0)); lose(s, 2, 0) })(), "Wait"},
		"not while another instance is stopping": {changed(lost, func(s *snapshot.Snapshot) { s.Find(2, 1).Terminating = true })(), "Wait"},
		"not in a rollout":                       {changed(lost, func(s *snapshot.Snapshot) { s.Rolling = true })(), "Wait"},
		"not while slots move": {
			changed(lost, func(s *snapshot.Snapshot) { s.Goal = &snapshot.Goal{For: "3 shards", From: 3} })(), "Wait"},
		"not while a slot is half migrated": {changed(lost, func(s *snapshot.Snapshot) { s.Find(2, 0).Redis.Jobs = []snapshot.Job{{}} })(),
			"Wait"},
		"not to a replica that just did not take over": {changed(lost, func(s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.SwitchoverAt = now.Add(-time.Minute)
		})(), "Wait"},
		"again after a while": {changed(lost, func(s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.SwitchoverAt = now.Add(-time.Hour)
		})(), "Switchover"},
		"not while voters do not vote about the master again": {changed(lost, func(s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.NodeTimeout, s.Find(1, 0).Redis.DemotedAt = 15*time.Second, now.Add(-25*time.Second)
		})(), "Wait"},
		"nor about the one that is to be it": {changed(lost, func(s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.NodeTimeout, s.Find(1, 1).Redis.DemotedAt = 15*time.Second, now.Add(-25*time.Second)
		})(), "Wait"},
		"when they do": {changed(lost, func(s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.NodeTimeout, s.Find(1, 1).Redis.DemotedAt = 15*time.Second, now.Add(-35*time.Second)
		})(), "Switchover"},
		"not for mere evenness": {func() *snapshot.Snapshot {
			s := placed("a", "a", "b", "c", "d", "n", "e", "f", "g", "h")
			fail(s, nodeID(0, 1))
			return lose(s, 0, 1)
		}(), "Wait"},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(spreading(len(tt.snapshot.Shards)), tt.snapshot, now)
			switchover, is := got.Step.(Switchover)
			if got.Step.Name() != tt.step || is && switchover.Replica.Pod != "c-1-1" {
				t.Errorf("got %s: %s, want %s", got.Step.Name(), got.Step.Why(), tt.step)
			}
		})
	}
	d := spreading(3)
	d.SpreadMasters = false
	if step := decide(d, lost(), now).Step; step.Name() != "Wait" {
		t.Errorf("although that is switched off: %s: %s", step.Name(), step.Why())
	}
}

// Whoever may take over is a replica of its shard's master, and stays: of each shard those first that have received most.
func TestExchanges(t *testing.T) {
	s := joined(4) // the last shard owns nothing
	s.Find(2, 0).Redis.Offset = 9
	in := ShapeOf(with(v1alpha1.Topology{2, 1, 2, 2}), s, now).in
	var got []string
	for _, e := range in.exchanges(in.snap.Masters()) {
		got = append(got, e.master.Name+" > "+e.replica.Name)
	}
	if diff := cmp.Diff([]string{"c-0-0 > c-0-1", "c-2-0 > c-2-1"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A template that the user rolls out is no reason to leave a majority on one node, and no reason to switch over to a version that the
// former master may not be able to follow.
func TestMajorityPartsWithinOneTemplate(t *testing.T) {
	d := spreading(3)
	d.OnDelete = true
	for name, tt := range map[string]struct {
		revisions [2]string // of the master and the replica
		step      string
	}{
		"both old":          {[2]string{"old", "old"}, "Switchover"},
		"a newer replica":   {[2]string{"old", "new"}, "Rollout"},
		"a replica that is": {[2]string{"new", "old"}, "Rollout"},
	} {
		t.Run(name, func(t *testing.T) {
			s := placed("a", "a", "c", "a", "b", "d")
			for i := range s.Shards {
				s.Shards[i].UpdateRevision = "new"
			}
			for i := range s.Instances {
				s.Instances[i].Revision = "old"
			}
			s.Find(1, 0).Revision, s.Find(1, 1).Revision = tt.revisions[0], tt.revisions[1]
			if got := decide(d, s, now); got.Step.Name() != tt.step {
				t.Errorf("got %s: %s, want %s", got.Step.Name(), got.Step.Why(), tt.step)
			}
		})
	}
}

// spreadOut switches over until nothing is left to do, and fails if that does not end.
func spreadOut(t rapid.TB, s *snapshot.Snapshot) {
	for step := 0; ; step++ {
		switchover, more := decide(spreading(len(s.Shards)), s, now).Step.(Switchover)
		if !more {
			return
		}
		if step == 3*len(s.Shards) {
			t.Fatalf("still switching over after %d steps", step)
		}
		promote(s, switchover.Replica.Pod)
	}
}

// However instances are placed and whoever masters are, spreading comes to an end, and then no choice of masters would survive the
// loss of a node better; nor, of three, that of a zone.
func TestSpreadReachesTheBest(t *testing.T) {
	check := func(t rapid.TB, nodes []string) {
		s := placed(nodes...)
		shards := len(nodes) / 2
		spreadOut(t, s)
		got, best := concentrationOf(s.Masters()), concentrationOf(s.Masters())
		for choice := range 1 << shards {
			masters := map[int]*snapshot.Instance{}
			for shard := range shards {
				masters[shard] = s.Find(shard, choice>>shard&1)
			}
			if other := concentrationOf(masters); other.less(best) {
				best = other
			}
		}
		if best.nodeExcess < got.nodeExcess || shards == 3 && best.zoneExcess < got.zoneExcess {
			t.Fatalf("%v: masters are concentrated as %+v, and could be as %+v", nodes, got, best)
		}
	}
	for arrangement := range 3 * 3 * 3 * 3 * 3 * 3 {
		nodes, rest := make([]string, 6), arrangement
		for i := range nodes {
			nodes[i], rest = fmt.Sprint(rest%3), rest/3
		}
		check(t, nodes)
	}
	rapid.Check(t, func(t *rapid.T) {
		nodes := make([]string, 2*rapid.IntRange(3, 6).Draw(t, "shards"))
		for i := range nodes {
			n := rapid.IntRange(0, 5).Draw(t, "node")
			nodes[i] = fmt.Sprintf("%d@%d", n, n/2)
		}
		check(t, nodes)
	})
}

// promote makes a replica of the cluster the master of its shard.
func promote(s *snapshot.Snapshot, name string) {
	for i := range s.Instances {
		in := &s.Instances[i]
		if in.Name != name {
			continue
		}
		other := s.Find(in.Shard, 1-in.Ordinal)
		in.Redis.Slots, other.Redis.Slots = other.Redis.Slots, in.Redis.Slots
		in.Redis.Master, in.Redis.MasterID = true, ""
		other.Redis.Master, other.Redis.MasterID, other.Redis.MasterLinkUp = false, in.Redis.NodeID, true
	}
	introduce(s)
}

// What is reported of the masters: where a majority is, and what it would take.
func TestSpreadReport(t *testing.T) {
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		want     Spread
	}{
		"spread": {placed("a", "b", "c", "b", "c", "a"), Spread{Known: true, Wanted: true}},
		"concentrated": {
			placed("a", "a", "c", "b", "b", "a"),
			Spread{Known: true, Wanted: true, Majority: &Majority{Place: "a", Masters: 2, All: 3, Places: 3, Needed: 3, Replicas: true}}},
		"too few nodes": {
			placed("a", "a", "b", "b", "b", "a"),
			Spread{Known: true, Wanted: true, Majority: &Majority{Place: "a", Masters: 2, All: 3, Places: 2, Needed: 3}}},
		"nowhere to go": {
			placed("a", "a", "b", "a", "a", "c"),
			Spread{Known: true, Wanted: true, Majority: &Majority{Place: "a", Masters: 2, All: 3, Places: 3, Needed: 3}}},
		"half is too few": {placed("a", "a", "b", "c", "c", "b", "c", "a"),
			Spread{Known: true, Wanted: true, Majority: &Majority{Place: "a", Masters: 2, All: 4, Places: 3, Needed: 4, Replicas: false}}},
		"two of five may share":    {placed("a", "a", "b", "b", "c", "b", "c", "c", "a", "a"), Spread{Known: true, Wanted: true}},
		"the only zone is no news": {placed("a@x", "b@x", "c@x", "b@x", "c@x", "a@x"), Spread{Known: true, Wanted: true}},
		"two zones are too few": {placed("a@x", "b@x", "c@y", "d@y", "e@y", "f@x"),
			Spread{Known: true, Wanted: true, Majority: &Majority{Zone: true, Place: "x", Masters: 2, All: 3, Places: 2, Needed: 3}}},
		"zones that are not known":      {placed("a", "b", "c", "d@y", "e@z", "f"), Spread{Known: true, Wanted: true}},
		"a master that does not answer": {lose(placed("a", "b", "c", "b", "c", "a"), 0, 0), Spread{Wanted: true}},
		"a master that is nowhere yet":  {placed("", "b", "c", "b", "c", "a"), Spread{Wanted: true}},
		"its node is away": {
			lost(), Spread{Known: true, Wanted: true, Majority: &Majority{Place: "a", Masters: 2, All: 3, Places: 4, Needed: 3, Replicas: true}}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, decide(spreading(len(tt.snapshot.Shards)), tt.snapshot, now).Spread); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A place is told by its node, and by its zone where there are zones.
func TestPlacesAreNamed(t *testing.T) {
	for want, pod := range map[string]snapshot.Instance{"a": {NodeName: "a"}, "a in z": {NodeName: "a", Zone: "z"}} {
		if got := place(&pod); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
