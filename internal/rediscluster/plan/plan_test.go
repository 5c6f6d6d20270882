// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// desired is a cluster of 3 shards of 2 instances.
func desired() Desired {
	return Desired{Topology: v1alpha1.Topology{2, 2, 2}, Policy: v1alpha1.DeletionForeground, HasFinalizer: true}
}

func nodeID(shard, ordinal int) string {
	return strings.Repeat(fmt.Sprintf("%d%d", shard, ordinal), 20)
}

func podIP(shard, ordinal int) string { return fmt.Sprintf("10.0.%d.%d", shard, ordinal+1) }

// fresh is the snapshot of pods that just came up: Redis answers, and nobody knows anybody.
func fresh() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}}
	for shard := range 3 {
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: 2, CreatedAt: now.Add(-time.Second)})
		for ordinal := range 2 {
			s.Instances = append(s.Instances, snapshot.Instance{
				Name: fmt.Sprintf("c-%d-%d", shard, ordinal), Shard: shard, Ordinal: ordinal,
				IP: podIP(shard, ordinal), NodeName: fmt.Sprintf("node%d", ordinal), Ready: true,
				Redis: &snapshot.Redis{NodeID: nodeID(shard, ordinal), Master: true, Peers: map[string]snapshot.Peer{}},
			})
		}
	}
	return s
}

// formed is the snapshot of a cluster that is healthy.
func formed() *snapshot.Snapshot {
	s := fresh()
	s.Formed = true
	parts := slots.All().Split(3)
	for i := range s.Instances {
		in := &s.Instances[i]
		in.Redis.ClusterOK = true
		if in.Ordinal == 0 {
			in.Redis.Slots = parts[in.Shard]
		} else {
			in.Redis.Master, in.Redis.MasterID, in.Redis.MasterLinkUp = false, nodeID(in.Shard, 0), true
		}
	}
	introduce(s)
	return s
}

// introduce makes every reachable instance know every other one as it is. What they know
// of others stays.
func introduce(s *snapshot.Snapshot) {
	for _, a := range s.Reachable() {
		for _, b := range s.Reachable() {
			if a != b {
				a.Redis.Peers[b.Redis.NodeID] = snapshot.Peer{ID: b.Redis.NodeID, IP: b.IP, Master: b.Redis.Master,
					MasterID: b.Redis.MasterID, Connected: true, Slots: b.Redis.Slots}
			}
		}
	}
}

// kill takes an instance's pod away; the others notice.
func kill(s *snapshot.Snapshot, shard, ordinal int) {
	id := s.Find(shard, ordinal).Redis.NodeID
	for i := range s.Instances {
		if s.Instances[i].Shard == shard && s.Instances[i].Ordinal == ordinal {
			s.Instances = append(s.Instances[:i], s.Instances[i+1:]...)
			break
		}
	}
	fail(s, id)
}

// fail makes every instance see a node as failed.
func fail(s *snapshot.Snapshot, id string) {
	for _, in := range s.Reachable() {
		if peer, ok := in.Redis.Peers[id]; ok {
			peer.Failed, peer.Connected = true, false
			in.Redis.Peers[id] = peer
		}
		if in.Redis.MasterID == id {
			in.Redis.MasterLinkUp, in.Redis.MasterLinkDownFor = false, 3*time.Second
		}
	}
}

// comeBackEmpty replaces an instance by one whose data is gone: a new node ID.
func comeBackEmpty(s *snapshot.Snapshot, shard, ordinal int) {
	in := s.Find(shard, ordinal)
	old := in.Redis.NodeID
	in.IP = fmt.Sprintf("10.9.%d.%d", shard, ordinal+1)
	in.Redis = &snapshot.Redis{NodeID: strings.Repeat(fmt.Sprintf("e%d", shard), 20), Master: true, Peers: map[string]snapshot.Peer{}}
	fail(s, old)
}

// decide is the decision where no child is to be changed.
func decide(d Desired, s *snapshot.Snapshot, now time.Time) Decision {
	decision := ShapeOf(d, s, now).Next(Pending{})
	if wait, waits := decision.Step.(Wait); waits && (wait.BlockedBy == "" || wait.Reason == "") {
		panic(fmt.Sprintf("a wait does not say what blocks it: %+v", wait))
	}
	return decision
}

func TestNext(t *testing.T) {
	for name, tt := range map[string]struct {
		desired   func(*Desired)
		snapshot  func() *snapshot.Snapshot
		pending   Pending
		situation Situation
		step      string
		why       string // part of the reason
		blockedBy Predicate
	}{
		"a new object gets its finalizer first": {
			desired: func(d *Desired) { d.HasFinalizer = false }, snapshot: func() *snapshot.Snapshot { return &snapshot.Snapshot{} },
			situation: Absent, step: "AddFinalizer"},
		"an invalid spec changes nothing and says why": {
			desired: func(d *Desired) { d.Problems = []string{"spec.replicas: Invalid value: 2", "b"} }, snapshot: fresh,
			situation: Failed, step: "Stall", why: "spec.replicas: Invalid value: 2 (and 1 more)"},
		"a password comes before pods that need it": {
			snapshot:  func() *snapshot.Snapshot { return &snapshot.Snapshot{Auth: snapshot.Auth{Absent: true}} },
			situation: Absent, step: "CreateAuth"},
		"a password that cannot be read stalls with the remedy": {
			snapshot: func() *snapshot.Snapshot {
				return &snapshot.Snapshot{Auth: snapshot.Auth{Problem: "allow it with: kubectl create rolebinding"}}
			},
			situation: Failed, step: "Stall", why: "kubectl create rolebinding"},
		"children that are not as rendered are applied": {
			snapshot: fresh, pending: Pending{Children: []string{"StatefulSet c-0"}},
			situation: Forming, step: "ApplyChildren", why: "StatefulSet c-0"},
		"a StatefulSet whose Secret may not be mounted is not made, and the reason is told": {
			snapshot: func() *snapshot.Snapshot {
				return &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, TLS: snapshot.TLS{Enabled: true, Known: true}}
			},
			pending:   Pending{Withheld: &snapshot.Withheld{Cause: "CertificateUnavailable", Message: "label it"}},
			situation: Failed, step: "Stall", why: "label it"},
		"a shard that may not be made is not waited for in silence": {
			desired:  func(d *Desired) { d.Topology = v1alpha1.Topology{2, 2, 2, 2} },
			snapshot: formed, pending: Pending{Withheld: &snapshot.Withheld{Message: "label it"}},
			situation: Failed, step: "Stall", why: "label it"},
		"a StatefulSet that is held back holds no promotion back": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				comeBackEmpty(s, 1, 0)
				introduce(s)
				s.Find(1, 1).Redis.MasterLinkDownFor = electionTimeout + time.Second
			}),
			pending:   Pending{Withheld: &snapshot.Withheld{Message: "label it"}},
			situation: Healing, step: "Promote"},
		"a pod that is missing is waited for": {
			snapshot:  changed(formed, func(s *snapshot.Snapshot) { kill(s, 1, 0) }),
			situation: Healing, step: "Wait", why: "instance 0 of shard 1 has no pod yet", blockedBy: SnapshotComplete},
		"a pod that cannot run is named with its reason": {
			snapshot: changed(fresh, func(s *snapshot.Snapshot) {
				s.Instances[2].Redis, s.Instances[2].Waiting = nil, "container redis: ImagePullBackOff"
				introduce(s)
			}),
			situation: Forming, step: "Wait", why: "c-1-0: container redis: ImagePullBackOff", blockedBy: SnapshotComplete},
		"fresh instances are given slots once all answer": {
			snapshot: fresh, situation: Forming, step: "AssignSlots"},
		"a new cluster forms with a short node timeout": {
			desired:   func(d *Desired) { d.NodeTimeout = 5 * time.Second },
			snapshot:  withTimeout(fresh, 5*time.Second),
			situation: Forming, step: "SetNodeTimeout", why: "6 instances is not 1s"},
		"a node timeout shorter than that stays": {
			desired:   func(d *Desired) { d.NodeTimeout = 900 * time.Millisecond },
			snapshot:  withTimeout(fresh, 900*time.Millisecond),
			situation: Forming, step: "AssignSlots"},
		"a cluster that formed gets its own node timeout, before it is called ready": {
			desired: func(d *Desired) { d.NodeTimeout = 5 * time.Second },
			snapshot: changed(withTimeout(formed, time.Second), func(s *snapshot.Snapshot) {
				s.Formed = false
			}),
			situation: Forming, step: "SetNodeTimeout", why: "6 instances is not 5s"},
		"a short node timeout that a crash left behind is put right in the middle of healing": {
			desired: func(d *Desired) { d.NodeTimeout = 5 * time.Second },
			snapshot: changed(withTimeout(formed, time.Second), func(s *snapshot.Snapshot) {
				kill(s, 1, 0)
			}),
			situation: Healing, step: "SetNodeTimeout", why: "5 instances is not 5s"},
		"a settled cluster needs nothing": {
			snapshot: formed, situation: Steady, step: "None"},
		"an address that changed is told by the instance itself": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Find(2, 1).IP = "10.8.0.1"
				s.Find(0, 0).Redis.Peers[nodeID(2, 1)] = snapshot.Peer{ID: nodeID(2, 1), IP: podIP(2, 1)}
			}),
			situation: Healing, step: "Wait", why: "c-0-0 has not heard yet that c-2-1 is at 10.8.0.1", blockedBy: Converged},
		"when all addresses changed everyone is introduced again": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].IP = fmt.Sprintf("10.8.0.%d", i)
				}
			}),
			situation: Healing, step: "Meet", why: "15 pairs"},
		"slots that another instance has not heard of are waited for": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				peer := s.Find(1, 1).Redis.Peers[nodeID(2, 0)]
				peer.Slots = slots.Set{}
				s.Find(1, 1).Redis.Peers[nodeID(2, 0)] = peer
			}),
			situation: Healing, step: "Wait", why: "c-1-1 has not heard yet what c-2-0 is and owns", blockedBy: Converged},
		"a replica out of sync is waited for": {
			snapshot:  changed(formed, func(s *snapshot.Snapshot) { s.Find(2, 1).Redis.MasterLinkUp = false }),
			situation: Healing, step: "Wait", why: "c-2-1 is not in sync", blockedBy: Converged},
		"a pod of another's is in the way": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				kill(s, 1, 0)
				s.Taken = []snapshot.Instance{{Name: "c-1-0", Shard: 1}}
			}),
			situation: Healing, step: "Wait", why: "pod c-1-0 exists and does not belong to its StatefulSet: delete it",
			blockedBy: SnapshotComplete},
		"a wandered replica returns to its shard": {
			snapshot:  changed(formed, func(s *snapshot.Snapshot) { s.Find(2, 1).Redis.MasterID = nodeID(0, 0) }),
			situation: Healing, step: "Replicate"},
		"a master whose data is gone is replaced by election": {
			snapshot:  changed(formed, func(s *snapshot.Snapshot) { comeBackEmpty(s, 1, 0); introduce(s) }),
			situation: Healing, step: "Wait", why: "c-1-1 is to be elected", blockedBy: MasterElected},
		"an election that does not end is forced": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				comeBackEmpty(s, 1, 0)
				introduce(s)
				s.Find(1, 1).Redis.MasterLinkDownFor = electionTimeout + time.Second
			}),
			situation: Healing, step: "Promote", why: "no replica was elected within"},
		"with most masters gone for good a replica takes over": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				comeBackEmpty(s, 1, 0)
				comeBackEmpty(s, 2, 0)
				introduce(s)
			}),
			situation: Healing, step: "Promote", why: "nobody is left to elect"},
		"with most masters merely unreachable nothing is taken over": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				for _, shard := range []int{1, 2} {
					fail(s, nodeID(shard, 0))
					s.Find(shard, 0).Redis, s.Find(shard, 0).Error = nil, "i/o timeout"
				}
			}),
			situation: Healing, step: "Wait", why: "c-1-0 does not answer: i/o timeout", blockedBy: SnapshotComplete},
		"a stranger that owns nothing is sent away": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Peers["f"] = snapshot.Peer{ID: "f", IP: "10.77.0.1", Connected: true, Master: true}
			}),
			situation: Healing, step: "Forget"},
		"a stranger is sent away only when all pods were asked": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Peers["f"] = snapshot.Peer{ID: "f", IP: "10.77.0.1", Connected: true, Master: true}
				s.Find(1, 1).Redis, s.Find(1, 1).Error = nil, "i/o timeout"
			}),
			situation: Healing, step: "Wait", why: "c-1-1 does not answer", blockedBy: SnapshotComplete},
		"a stranger that owns a slot stops everything": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Peers["f"] = snapshot.Peer{ID: "f", IP: "10.77.0.1", Connected: true, Master: true, Slots: slots.Of(7)}
			}),
			situation: Failed, step: "Stall", why: "no pod of this cluster", blockedBy: NoForeignNode},
		"a node that is gone for good is forgotten": {
			snapshot:  changed(formed, func(s *snapshot.Snapshot) { comeBackEmpty(s, 1, 1); introduce(s) }),
			situation: Healing, step: "Forget"},
		"a node that may still exist is not forgotten": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				fail(s, nodeID(1, 1))
				s.Find(1, 1).Redis, s.Find(1, 1).Error = nil, "i/o timeout"
			}),
			situation: Healing, step: "Wait", why: "c-1-1 does not answer", blockedBy: SnapshotComplete},
		"an instance with keys and no slots is not overwritten": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				comeBackEmpty(s, 1, 1)
				s.Find(1, 1).Redis.Keys = 7
				introduce(s)
				forgetAll(s, nodeID(1, 1))
			}),
			situation: Failed, step: "Stall", why: "holds 7 keys", blockedBy: NoUnownedKeys},
		"two clusters are never merged": {
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Peers["f"] = snapshot.Peer{ID: "f", IP: "10.77.0.1", Connected: true}
			}),
			situation: Failed, step: "Stall", why: "no pod of this cluster", blockedBy: NoForeignNode},
		"slots owned twice by strangers stop everything": {
			snapshot: changed(fresh, func(s *snapshot.Snapshot) {
				s.Instances[0].Redis.Slots, s.Instances[2].Redis.Slots = slots.Range(0, 10), slots.Range(5, 20)
			}),
			situation: Failed, step: "Stall", blockedBy: SlotsDisjoint},
		"a paused cluster holds, and shows what is next": {
			desired: func(d *Desired) { d.Paused = true }, snapshot: fresh, situation: Paused, step: "Hold"},
		"claims that are too small are expanded": {
			desired: func(d *Desired) { d.ClaimBytes = 2 << 30 },
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Claims = []snapshot.Claim{{Name: "data-c-0-0", Requested: 1 << 30}, {Name: "data-c-0-1", Requested: 2 << 30}}
			}),
			situation: Healing, step: "ExpandPVCs", why: "spec.storage.size: data-c-0-0"},
		"claims grow with the data": {
			desired: func(d *Desired) { d.ClaimBytes, d.MostClaimBytes = 1<<30, 10<<30 },
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				s.Claims = claims(1<<30, 1<<30)
				s.Find(0, 1).Redis.AppendOnlySize, s.Find(0, 1).Redis.UsedMemory = 700<<20, 400<<20 // 1.46 Gi
			}),
			situation: Healing, step: "ExpandPVCs",
			why: "the files of c-0-1 may take 1500.0 MiB of 1024.0 MiB, and claims grow up to spec.storage.maxSize: data-c-0-0, data-c-0-1"},
		"claims grow although an instance is away: its volume may be full": {
			desired: func(d *Desired) { d.ClaimBytes = 2 << 30 },
			snapshot: changed(formed, func(s *snapshot.Snapshot) {
				kill(s, 1, 0)
				s.Claims = []snapshot.Claim{{Name: "data-c-0-0", Requested: 1 << 30}}
			}),
			situation: Healing, step: "ExpandPVCs", why: "spec.storage.size: data-c-0-0"},
		"forming that takes too long is called failed, and goes on": {
			desired: func(d *Desired) { d.CreateTimeout = time.Minute },
			snapshot: changed(fresh, func(s *snapshot.Snapshot) {
				s.Shards[0].CreatedAt = now.Add(-2 * time.Minute)
			}),
			situation: Failed, step: "AssignSlots"},
		"forming is not late before its time": {
			desired: func(d *Desired) { d.CreateTimeout = time.Minute },
			snapshot: changed(fresh, func(s *snapshot.Snapshot) {
				s.Shards[0].CreatedAt = now.Add(-time.Minute)
			}), situation: Forming, step: "AssignSlots"},
		"forming is as old as its oldest child": {
			desired: func(d *Desired) { d.CreateTimeout = time.Minute },
			snapshot: changed(fresh, func(s *snapshot.Snapshot) {
				s.Shards[1].CreatedAt = now.Add(-2 * time.Minute)
			}), situation: Failed, step: "AssignSlots"},
		"forming without a child is not late": {
			desired:  func(d *Desired) { d.CreateTimeout = time.Minute },
			snapshot: changed(fresh, func(s *snapshot.Snapshot) { s.Shards[0].CreatedAt = time.Time{} }), situation: Forming, step: "AssignSlots"},
		"foreground deletion deletes, then waits, then lets go": {
			desired: func(d *Desired) { d.Deleting = true }, snapshot: formed, situation: Deleting, step: "DeleteChildren"},
		"background deletion lets go at once": {
			desired:  func(d *Desired) { d.Deleting, d.Policy = true, v1alpha1.DeletionBackground },
			snapshot: formed, situation: Deleting, step: "RemoveFinalizer"},
		"orphaning deletion leaves the children": {
			desired:   func(d *Desired) { d.Deleting, d.Policy = true, v1alpha1.DeletionOrphan },
			snapshot:  changed(formed, func(s *snapshot.Snapshot) { s.HasOwnedChildren = true }),
			situation: Deleting, step: "OrphanChildren"},
		"a paused cluster can be deleted": {
			desired:  func(d *Desired) { d.Deleting, d.Paused = true, true },
			snapshot: func() *snapshot.Snapshot { return &snapshot.Snapshot{} }, situation: Deleting, step: "RemoveFinalizer"},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := ShapeOf(d, tt.snapshot(), now).Next(tt.pending)
			if got.Situation != tt.situation || got.Step.Name() != tt.step {
				t.Errorf("got %s in %s (%s), want %s in %s", got.Step.Name(), got.Situation, got.Step.Why(), tt.step, tt.situation)
			}
			if !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("reason %q does not contain %q", got.Step.Why(), tt.why)
			}
			if by := blockedBy(got.Step); by != tt.blockedBy {
				t.Errorf("blocked by %q, want %q", by, tt.blockedBy)
			}
		})
	}
}

func blockedBy(step Step) Predicate {
	switch step := step.(type) {
	case Wait:
		return step.BlockedBy
	case Stall:
		return step.BlockedBy
	default:
		return ""
	}
}

func changed(base func() *snapshot.Snapshot, change func(*snapshot.Snapshot)) func() *snapshot.Snapshot {
	return func() *snapshot.Snapshot {
		s := base()
		change(s)
		return s
	}
}

func withTimeout(base func() *snapshot.Snapshot, timeout time.Duration) func() *snapshot.Snapshot {
	return changed(base, func(s *snapshot.Snapshot) {
		for _, in := range s.Reachable() {
			in.Redis.NodeTimeout = timeout
		}
	})
}

func forgetAll(s *snapshot.Snapshot, id string) {
	for _, in := range s.Reachable() {
		delete(in.Redis.Peers, id)
	}
}

// Nothing that is decided depends on the order of a map.
func TestDecideIsDeterministic(t *testing.T) {
	for range 20 {
		s := formed()
		comeBackEmpty(s, 1, 0)
		comeBackEmpty(s, 2, 0)
		introduce(s)
		first := decide(desired(), s, now)
		if diff := cmp.Diff(first, decide(desired(), s, now), cmp.AllowUnexported(base{}, Promote{})); diff != "" {
			t.Fatal(diff)
		}
		if p := first.Step.(Promote); p.Replica.Pod != "c-1-1" || !p.Takeover {
			t.Fatalf("promotes %+v", p)
		}
	}
}
