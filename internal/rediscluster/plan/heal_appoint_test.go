// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// small is a healthy cluster of one or two shards of three instances.
func small(shards int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Formed: true}
	parts := slots.All().Split(shards)
	for shard := range shards {
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: string(rune('c')) + "-" + string(rune('0'+shard)), Replicas: 3})
		for ordinal := range 3 {
			in := snapshot.Instance{Name: "c-" + string(rune('0'+shard)) + "-" + string(rune('0'+ordinal)), Shard: shard, Ordinal: ordinal,
				IP: podIP(shard, ordinal), NodeName: "node" + string(rune('0'+ordinal)), Ready: true,
				Redis: &snapshot.Redis{NodeID: nodeID(shard, ordinal), Master: true, ClusterOK: true, NodeTimeout: 5 * time.Second,
					Offset: 100, Peers: map[string]snapshot.Peer{}}}
			if ordinal == 0 {
				in.Redis.Slots = parts[shard]
			} else {
				in.Redis.Master, in.Redis.MasterID, in.Redis.MasterLinkUp = false, nodeID(shard, 0), true
			}
			s.Instances = append(s.Instances, in)
		}
	}
	introduce(s)
	return s
}

func smallDesired(shards int) Desired {
	d := desired()
	d.Topology = v1alpha1.Topology{3, 3}[:shards]
	return d
}

// crashedAlone is a small cluster whose first master's container has ended a moment ago, and does not run again.
func crashedAlone(shards int) *snapshot.Snapshot {
	s := small(shards)
	gone := s.Find(0, 0)
	gone.Redis, gone.Waiting, gone.Failing, gone.Stopped, gone.Refuses = nil, "container redis: CrashLoopBackOff", true, true, true
	gone.StoppedAt, gone.Error = now.Add(-1500*time.Millisecond), gone.Waiting
	for _, ordinal := range []int{1, 2} {
		r := s.Find(0, ordinal).Redis
		r.MasterLinkUp, r.MasterLinkLost, r.MasterLinkDownFor = false, true, time.Second
	}
	return s
}

// longAway makes the crash one of before the node timeout.
func longAway(s *snapshot.Snapshot) {
	s.Find(0, 0).StoppedAt = now.Add(-20 * time.Second)
	s.Answered = map[string]snapshot.Answered{nodeID(0, 0): {At: now.Add(-20 * time.Second), Master: true}}
	for _, in := range s.Reachable() {
		peer := in.Redis.Peers[nodeID(0, 0)]
		peer.Suspected, peer.Connected, peer.LastPong = true, false, now.Add(-20*time.Second)
		in.Redis.Peers[nodeID(0, 0)] = peer
		if !in.Redis.Master {
			in.Redis.MasterLinkDownFor = 19 * time.Second
		}
	}
}

// One master, or two, elect nobody: the operator appoints a successor when it is proven that the master cannot be writing.
func TestSuccessorIsAppointed(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(s *snapshot.Snapshot)
		step   string
		why    string
	}{
		"at once":               {func(*snapshot.Snapshot) {}, "Promote", "has crashed, and fewer than three masters elect nobody"},
		"who has received most": {func(s *snapshot.Snapshot) { s.Find(0, 2).Redis.Offset = 99 }, "Promote", "c-0-1 is appointed"},
		"not while its address may lead to it": {func(s *snapshot.Snapshot) { s.Find(0, 0).Refuses = false }, "Wait",
			"c-0-0 is said not to run, and its address does not refuse connections: it may run again; if the machine of node node0 is off"},
		"not while a replica has a link": {func(s *snapshot.Snapshot) { s.Find(0, 2).Redis.MasterLinkUp = true }, "Wait", "c-0-2 has a link"},
		"not while a replica copies":     {func(s *snapshot.Snapshot) { s.Find(0, 2).Redis.Syncing = true }, "Wait", "c-0-2 has a link"},
		"not while a replica is about to stop": {func(s *snapshot.Snapshot) { s.Find(0, 2).Terminating = true }, "Wait",
			"c-0-2 is about to stop"},
		"not while a replica may have more": {func(s *snapshot.Snapshot) {
			in := s.Find(0, 2)
			in.Redis, in.Error, in.NodeName = nil, "timeout", "lost"
		}, "Wait", "c-0-2 may run and does not answer"},
		"not before the kubelet says that it has stopped": {func(s *snapshot.Snapshot) { s.Find(0, 0).Stopped = false }, "Wait",
			"c-0-0 may run and does not answer; if the machine of node node0 is off for certain, say so: delete the Node"},
		"nor when its pod is being deleted on a lost node": {func(s *snapshot.Snapshot) {
			longAway(s)
			s.Find(0, 0).Stopped, s.Find(0, 0).Terminating, s.Find(0, 0).StopBy = false, true, now.Add(-time.Hour)
		}, "Wait", "c-0-0 may run and does not answer"},
		"nor when its pod has not been made again": {func(s *snapshot.Snapshot) { longAway(s); s.Instances = s.Instances[1:] }, "Wait",
			"instance 0 of shard 0 has no pod yet"},
		"when its pod waits for a node": {func(s *snapshot.Snapshot) {
			longAway(s)
			in := s.Find(0, 0)
			in.IP, in.NodeName, in.Waiting, in.StoppedAt, in.Refuses = "", "", "not scheduled", time.Time{}, false
		}, "Promote", "does not run, and fewer than three masters"},
		"when its pod has come to its end": {func(s *snapshot.Snapshot) {
			longAway(s)
			s.Find(0, 0).Ended, s.Find(0, 0).Refuses = true, false
		}, "Promote", "fewer than three masters"},
		"not a replica that was cut off long before": {func(s *snapshot.Snapshot) {
			longAway(s)
			cutOff(s)
		}, "Wait", "c-0-1 may lack what node 00000000 wrote last; CLUSTER FAILOVER TAKEOVER at it gives that up"},
		"not one of a master that was succeeded": {func(s *snapshot.Snapshot) {
			longAway(s)
			s.Answered[nodeID(0, 0)] = snapshot.Answered{At: now.Add(-20 * time.Second)}
		}, "Wait", "node 00000000 was succeeded by another one"},
		"not while something listens": {func(s *snapshot.Snapshot) { s.Find(0, 0).Refuses, s.Find(0, 0).Accepts = false, true }, "Wait",
			"c-0-0 is said not to run, and something accepts connections at its address: it may run again"},
		"not one that has more of another history": {func(s *snapshot.Snapshot) {
			s.Find(0, 2).Redis.Offset, s.Find(0, 2).Redis.MasterLinkDownFor = 5000, time.Hour
		}, "Promote", "c-0-1 is appointed"},
		"nor one that never followed": {func(s *snapshot.Snapshot) {
			s.Find(0, 2).Redis.Offset, s.Find(0, 2).Redis.MasterLinkLost = 5000, false
		}, "Promote", "c-0-1 is appointed"},
		"when an instance of another shard may run again": {func(s *snapshot.Snapshot) {
			if other := s.Find(1, 2); other != nil {
				other.Redis, other.Error, other.Stopped = nil, "refused", true
			}
		}, "Promote", "c-0-1 is appointed"},
		"when a replica that answers is said not to run": {func(s *snapshot.Snapshot) { s.Find(0, 2).Stopped = true }, "Promote",
			"c-0-1 is appointed"},
		"when its pod has come to its end, and somebody else has its address": {func(s *snapshot.Snapshot) {
			longAway(s)
			s.Find(0, 0).Ended, s.Find(0, 0).Refuses, s.Find(0, 0).Accepts = true, false, true
		}, "Promote", "c-0-1 is appointed"},
		"when one that does not follow it is about to stop": {func(s *snapshot.Snapshot) {
			in := s.Find(0, 2)
			in.Redis.Master, in.Redis.MasterID, in.Terminating = true, "", true
		}, "Promote", "c-0-1 is appointed"},
		"not at once when nobody saw it end, and nobody is asked for help": {func(s *snapshot.Snapshot) {
			longAway(s)
			in := s.Find(0, 0)
			in.IP, in.NodeName, in.Waiting, in.StoppedAt, in.Refuses = "", "", "not scheduled", time.Time{}, false
			for _, ordinal := range []int{1, 2} {
				s.Find(0, ordinal).Redis.MasterLinkDownFor = 3 * time.Second
			}
		}, "Wait", "c-0-0: not scheduled"},
		"when its data is lost, as its successor has another ID": {func(s *snapshot.Snapshot) {
			longAway(s)
			s.Instances[0] = renewed(s)
			introduce(s)
		}, "Promote", "is gone, and fewer than three masters"},
	} {
		for shards := 1; shards <= 2; shards++ {
			t.Run(name, func(t *testing.T) {
				s := crashedAlone(shards)
				tt.change(s)
				got := decide(smallDesired(shards), s, now)
				if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
					t.Errorf("%d shards: got %s: %s\nwant %s: %s", shards, got.Step.Name(), got.Step.Why(), tt.step, tt.why)
				}
				if promote, ok := got.Step.(Promote); ok &&
					(!promote.Takeover || promote.Replica.Pod != "c-0-1" || promote.Lost != nodeID(0, 0)) {
					t.Errorf("promotes %+v", promote)
				}
				if wait, ok := got.Step.(Wait); ok && wait.BlockedBy == "" {
					t.Errorf("it does not say what it waits for")
				}
			})
		}
	}
}

// cutOff has the replicas of the first shard lose their master long before it stopped: nobody but the operator reached it since.
func cutOff(s *snapshot.Snapshot) {
	for _, in := range s.Reachable() {
		peer := in.Redis.Peers[nodeID(0, 0)]
		peer.LastPong = now.Add(-time.Minute)
		in.Redis.Peers[nodeID(0, 0)] = peer
		if !in.Redis.Master {
			in.Redis.MasterLinkDownFor = time.Minute
		}
	}
}

// A replica that is cut off does not know that its master went on. Where nobody else saw it, and the operator has been started since,
// nothing says so.
func TestReplicasAloneAreNoWitnesses(t *testing.T) {
	for shards, want := range map[int]string{1: "Wait", 2: "Promote"} {
		s := crashedAlone(shards)
		longAway(s)
		s.Answered = nil
		in := s.Find(0, 0) // its pod was made again
		in.IP, in.NodeName, in.Waiting, in.StoppedAt, in.Refuses = "", "", "not scheduled", time.Time{}, false
		got := decide(smallDesired(shards), s, now)
		if got.Step.Name() != want || want == "Wait" && !strings.Contains(got.Step.Why(), "only its replicas know when it was last there") {
			t.Errorf("%d shards: %s: %s", shards, got.Step.Name(), got.Step.Why())
		}
	}
}

// A replica that still follows a master which was succeeded takes nothing from the successor when another shard loses its master.
func TestSuccessorIsNotSucceeded(t *testing.T) {
	s := crashedAlone(2)
	longAway(s)
	successor := s.Find(0, 1).Redis
	successor.Master, successor.MasterID, successor.Slots, successor.MasterLinkLost = true, "", slots.All().Split(2)[0], false
	for _, ordinal := range []int{1, 2} {
		r := s.Find(1, ordinal).Redis
		r.MasterLinkUp, r.MasterLinkLost, r.MasterLinkDownFor = false, true, 40*time.Second
	}
	s.Find(0, 2).Redis.MasterLinkDownFor = 40 * time.Second
	gone := s.Find(1, 0)
	gone.Redis, gone.Waiting, gone.Failing, gone.Stopped, gone.Refuses = nil, "container redis: CrashLoopBackOff", true, true, true
	gone.StoppedAt, gone.Error = now.Add(-41*time.Second), gone.Waiting
	s.Find(0, 0).StoppedAt = gone.StoppedAt
	for _, in := range s.Reachable() {
		for _, shard := range []int{0, 1} {
			peer := in.Redis.Peers[nodeID(shard, 0)]
			peer.Suspected, peer.LastPong = true, now.Add(-40*time.Second)
			in.Redis.Peers[nodeID(shard, 0)] = peer
		}
	}
	s.Answered = map[string]snapshot.Answered{nodeID(1, 0): {At: now.Add(-40 * time.Second), Master: true}}
	promote, ok := decide(smallDesired(2), s, now).Step.(Promote)
	if !ok || promote.Replica.Pod != "c-1-1" || promote.Lost != nodeID(1, 0) || len(promote.Others) != 1 || promote.Others[0].Pod != "c-1-2" ||
		!strings.Contains(promote.Reason, "fewer than three masters elect nobody") { // although one table has a third
		t.Errorf("promotes %+v", promote)
	}
	// Nor when only others of another shard say that they own what it was.
	successor.Slots = slots.Set{}
	s.Find(1, 1).Redis.Slots = slots.All().Split(2)[0]
	if !succeeded(s.Indexed(), nodeID(0, 0), s.Find(0, 2)) {
		t.Error("it takes what others own")
	}
	// A shard that has a master again needs no other, whatever its replicas have heard of the one before.
	successor.Slots, s.Find(1, 1).Redis.Slots = slots.All().Split(2)[0], slots.Set{}
	peer := s.Find(0, 2).Redis.Peers[nodeID(0, 0)]
	peer.Slots = slots.Set{}
	s.Find(0, 2).Redis.Peers[nodeID(0, 0)] = peer
	if !succeeded(s.Indexed(), nodeID(0, 0), s.Find(0, 2)) {
		t.Error("the shard has a master that serves")
	}
	// A replica owns nothing, whatever it says.
	successor.Master, successor.Slots = false, slots.Of(16000)
	if succeeded(s.Indexed(), nodeID(0, 0), s.Find(0, 2)) {
		t.Error("a replica is taken for the successor")
	}
}

// A shard more that owns nothing yet elects nobody, and that is what is told.
func TestWhoOwnsNothingElectsNobody(t *testing.T) {
	s := crashedAlone(2)
	s.Shards = append(s.Shards, snapshot.Shard{Index: 2, Name: "c-2", Replicas: 1})
	s.Instances = append(s.Instances, snapshot.Instance{Name: "c-2-0", Shard: 2, IP: podIP(2, 0), NodeName: "node0", Ready: true,
		Redis: &snapshot.Redis{NodeID: nodeID(2, 0), Master: true, ClusterOK: true, Peers: map[string]snapshot.Peer{}}})
	introduce(s)
	step, ok := decide(with(v1alpha1.Topology{3, 3, 1}), s, now).Step.(Promote)
	if !ok || !step.Takeover || !containsWhy(step, "has crashed, and fewer than three masters elect nobody: c-0-1 is appointed") {
		t.Errorf("got %+v", step)
	}
}

// Nobody is appointed in the place of a master that nobody would miss at an election: the others elect, when none sees it alive any more.
func TestWhoOwnedNothingIsSucceededByElection(t *testing.T) {
	s := small(2)
	s.Find(0, 0).Redis.Slots = s.Find(0, 0).Redis.Slots.Subtract(slots.Of(0))
	s.Shards = append(s.Shards, snapshot.Shard{Index: 2, Name: "c-2", Replicas: 2})
	s.Instances = append(s.Instances, snapshot.Instance{Name: "c-2-0", Shard: 2, IP: podIP(2, 0), Waiting: "crashed", Stopped: true,
		StoppedAt: now.Add(-20 * time.Second), Refuses: true},
		snapshot.Instance{Name: "c-2-1", Shard: 2, Ordinal: 1, IP: podIP(2, 1), NodeName: "node1", Ready: true,
			Redis: &snapshot.Redis{NodeID: nodeID(2, 1), MasterID: nodeID(2, 0), MasterLinkLost: true, MasterLinkDownFor: 19 * time.Second,
				NodeTimeout: 5 * time.Second, ClusterOK: true, Peers: map[string]snapshot.Peer{}}})
	introduce(s)
	for name, suspected := range map[string]bool{"": false, "Promote": true} {
		for _, pod := range s.Reachable() {
			pod.Redis.Peers[nodeID(2, 0)] = snapshot.Peer{ID: nodeID(2, 0), IP: podIP(2, 0), Master: true, Suspected: suspected,
				LastPong: now.Add(-20 * time.Second)}
		}
		got := ""
		in := ShapeOf(with(v1alpha1.Topology{3, 3, 2}), s, now).in
		step := planPromote(in)
		if step != nil {
			got = step.Name()
		}
		if promote, _ := step.(Promote); got != name || promote.Takeover {
			t.Errorf("suspected: %t: got %q, %+v", suspected, got, step)
		}
		if wait := planAwaitProof(in); wait != nil {
			t.Errorf("suspected: %t: waits to appoint somebody: %s", suspected, wait.Why())
		}
	}
}

// What keeps a successor from being appointed is told where somebody is to be appointed, and only there.
func TestProofIsAwaited(t *testing.T) {
	doubted := func() (Desired, *snapshot.Snapshot) {
		s := crashedAlone(2)
		s.Find(0, 0).Refuses = false
		return smallDesired(2), s
	}
	proven(t, doubted, func(in input) bool { return planAwaitProof(in) != nil }, changes{
		"the cluster has not formed": func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"no replica stays": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 1).Terminating, s.Find(0, 2).Terminating = true, true
		},
		"others own what it had": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.Slots = s.Find(1, 0).Redis.Slots.Union(slots.Of(0))
		},
		"others own all, and its replicas know": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).Redis.Slots = slots.All()
			for _, ordinal := range []int{1, 2} {
				r := s.Find(0, ordinal).Redis
				gone := r.Peers[nodeID(0, 0)]
				gone.Slots = slots.Set{}
				r.Peers[nodeID(0, 0)] = gone
			}
		},
	}, nil)
}

// What a person can do is told of the node whose pod is in doubt, be it another shard's.
func TestRemedyNamesWhatIsInDoubt(t *testing.T) {
	s := crashedAlone(2)
	s.Find(0, 0).NodeName = "this"
	in := s.Find(1, 2)
	in.Redis, in.Error, in.NodeName = nil, "timeout", "that"
	why := decide(smallDesired(2), s, now).Step.Why()
	if !strings.Contains(why, "c-1-2 may run and does not answer; if the machine of node that is off") {
		t.Error(why)
	}
}

// renewed is the first instance without its data.
func renewed(s *snapshot.Snapshot) snapshot.Instance {
	in := *s.Find(0, 0)
	in.IP, in.Stopped, in.Refuses, in.Waiting, in.Error = "10.9.0.1", false, false, "", ""
	in.Redis = &snapshot.Redis{NodeID: strings.Repeat("e0", 20), Master: true, Peers: map[string]snapshot.Peer{}}
	return in
}

// What is to be quiet when a successor is appointed goes with the step: whoever may start again, of that shard.
func TestAppointmentSaysWhoMustBeSilent(t *testing.T) {
	s := crashedAlone(2)
	s.Find(0, 0).HasCertificate = true
	other := s.Find(1, 2)
	other.Redis, other.Error, other.Stopped, other.Refuses = nil, "refused", true, true
	promote, _ := planPromote(ShapeOf(smallDesired(2), s, now).in).(Promote)
	if diff := cmp.Diff([]string{podIP(0, 0) + ":6379", podIP(0, 0) + ":6380"}, promote.Silent); diff != "" {
		t.Error(diff)
	}
	// A pod that is being deleted does not start again.
	s = crashedAlone(1)
	longAway(s)
	s.Instances[0] = renewed(s)
	introduce(s)
	stops := s.Find(0, 2)
	stops.Redis, stops.Error, stops.Terminating, s.Shards[0].Replicas = nil, "timeout", true, 2
	promote, appoints := planPromote(ShapeOf(with(v1alpha1.Topology{2}), s, now).in).(Promote)
	if !appoints || !promote.Takeover || promote.Silent != nil {
		t.Errorf("%+v", promote)
	}
}

// Fewer than three masters elect nobody wherever they are: no place has too many of them, and two part all the same.
func TestFewMastersNeedNoMajority(t *testing.T) {
	for shards := 1; shards <= 2; shards++ {
		s := small(shards)
		d := smallDesired(shards)
		d.SpreadMasters = true
		for i := range s.Instances {
			s.Instances[i].Zone = "z"
		}
		got := decide(d, s, now)
		if !got.Spread.Few || got.Spread.Majority != nil {
			t.Errorf("%d shards: %+v", shards, got.Spread)
		}
		if is := got.Step.Name(); is != map[int]string{1: "None", 2: "Switchover"}[shards] {
			t.Errorf("%d shards: %s: %s", shards, is, got.Step.Why())
		}
	}
}
