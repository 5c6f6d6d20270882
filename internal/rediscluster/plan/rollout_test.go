// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// outmoded is a cluster healthy but for its template: instances named are of the new one.
func outmoded(updated ...string) *snapshot.Snapshot {
	s := formed()
	for i := range s.Shards {
		s.Shards[i].UpdateRevision = "new"
	}
	for i := range s.Instances {
		in := &s.Instances[i]
		in.UID, in.HasReadinessGate, in.InEndpoints, in.Revision = "uid-"+in.Name, true, true, "old"
		for _, name := range updated {
			if in.Name == name {
				in.Revision = "new"
			}
		}
	}
	return s
}

// removedFromEndpoints takes the Service away from an instance.
func removedFromEndpoints(s *snapshot.Snapshot, shard, ordinal int, ago, asked time.Duration) *snapshot.Snapshot {
	in := s.Find(shard, ordinal)
	in.InEndpoints, in.Ready, in.RemovedFromEndpointsAt = false, false, now.Add(-ago)
	in.Redis.RedirectedAt = now.Add(-asked)
	return s
}

// broken makes an instance not run.
func broken(s *snapshot.Snapshot, shard, ordinal int, revision string) *snapshot.Snapshot {
	in := s.Find(shard, ordinal)
	fail(s, in.Redis.NodeID)
	in.Redis, in.Ready, in.Failing, in.Revision, in.InEndpoints = nil, false, true, revision, false
	in.Waiting, in.Error = "container redis: ImagePullBackOff", "container redis: ImagePullBackOff"
	return s
}

// exporterless makes the container beside an instance's Redis not run.
func exporterless(s *snapshot.Snapshot, shard, ordinal int) *snapshot.Snapshot {
	in := s.Find(shard, ordinal)
	in.Ready, in.SidecarFailure = false, "container exporter: ImagePullBackOff"
	return s
}

// initializing makes an instance wait for an init container.
func initializing(s *snapshot.Snapshot, shard, ordinal int, revision string) *snapshot.Snapshot {
	in := broken(s, shard, ordinal, revision).Find(shard, ordinal)
	in.Failing, in.Waiting, in.Initializing = false, "", "proxy"
	return s
}

// switchedOver makes a replica the master of its shard.
func switchedOver(s *snapshot.Snapshot, shard int) *snapshot.Snapshot { return swapped(s, shard) }

// allSwitchedOver is outmoded after every shard has another master.
func allSwitchedOver(updated ...string) *snapshot.Snapshot {
	return switchedOver(switchedOver(switchedOver(outmoded(updated...), 0), 1), 2)
}

var replicas = []string{"c-0-1", "c-1-1", "c-2-1"}

func TestRollout(t *testing.T) {
	for name, tt := range map[string]struct {
		desired   func(*Desired)
		snapshot  *snapshot.Snapshot
		situation Situation
		step, why string
		blockedBy Predicate
	}{
		"a replica is first": {
			snapshot: outmoded(), situation: RollingOut, step: "Restart", why: "c-0-1 runs an older template, as 6 of 6"},
		"nothing else restarts before it is back": {
			snapshot: lose(outmoded("c-0-1"), 0, 1), situation: RollingOut, step: "Wait", why: "c-0-1 does not answer", blockedBy: SnapshotComplete},
		"nor before it is in sync": {
			snapshot: unsynced(outmoded("c-0-1"), 0, 1), situation: RollingOut, step: "Wait", why: "c-0-1 is not in sync"},
		"nor before it is ready": {
			snapshot:  changed(func() *snapshot.Snapshot { return outmoded("c-0-1") }, func(s *snapshot.Snapshot) { s.Find(0, 1).Ready = false })(),
			situation: RollingOut, step: "Wait", why: "pod c-0-1 is not ready"},
		"a new exporter that does not start takes one instance": {
			snapshot: exporterless(outmoded("c-1-1"), 1, 1), situation: RollingOut, step: "Wait",
			why: "pod c-1-1 is not ready yet: container exporter: ImagePullBackOff"},
		"an init container that does not end holds up nothing that mends it": {
			snapshot: initializing(outmoded("c-0-1"), 1, 1, "old"), situation: RollingOut, step: "Restart",
			why: "c-1-1 does not run (container proxy comes first, and still runs) and is of an older template"},
		"a new one that does not end takes one instance": {
			snapshot: initializing(outmoded("c-1-1"), 1, 1, "new"), situation: RollingOut, step: "Wait", why: "c-1-1",
			blockedBy: SnapshotComplete},
		"an instance whose old one does not start is first": {
			snapshot: exporterless(outmoded(), 1, 1), situation: RollingOut, step: "Restart", why: "c-1-1 runs an older template"},
		"a master switches over all the same": {
			snapshot: exporterless(outmoded(append(replicas, "c-0-0", "c-1-0")...), 2, 0), situation: RollingOut, step: "RemoveFromEndpoints",
			why: "c-2-0"},
		"no exporter holds up what mends it": {
			snapshot: exporterless(exporterless(exporterless(outmoded("c-0-1", "c-1-1"), 2, 1), 2, 0), 0, 0), situation: RollingOut, step: "Restart",
			why: "c-2-1"},
		"the replica of the next shard follows": {
			snapshot: outmoded("c-0-1"), situation: RollingOut, step: "Restart", why: "c-1-1"},
		"masters come last, and the Service leads clients elsewhere first": {
			snapshot: outmoded(replicas...), situation: RollingOut, step: "RemoveFromEndpoints", why: "c-0-0"},
		"a master switches over, without waiting for Kubernetes": {
			snapshot: removedFromEndpoints(outmoded(replicas...), 0, 0, 0, 0), situation: RollingOut, step: "Switchover",
			why: "c-0-0 is to be restarted and is the master of shard 0: c-0-1 takes over"},
		"all of Kubernetes hears of it": {
			snapshot:  removedFromEndpoints(allSwitchedOver(replicas...), 0, 0, time.Second, time.Hour),
			situation: RollingOut, step: "Wait", why: "all of Kubernetes is to hear"},
		"the next master switches over while the clients of the first learn of it": {
			snapshot:  removedFromEndpoints(switchedOver(outmoded(replicas...), 0), 0, 0, 3*time.Second, time.Second),
			situation: RollingOut, step: "Switchover", why: "c-1-0 is to be restarted and is the master of shard 1: c-1-1 takes over"},
		"but not to an instance that is to be restarted itself": {
			snapshot:  removedFromEndpoints(switchedOver(outmoded("c-0-1", "c-2-1"), 0), 0, 0, 3*time.Second, time.Second),
			situation: RollingOut, step: "Switchover", why: "c-2-0 is to be restarted and is the master of shard 2: c-2-1 takes over"},
		"a master that has switched over waits for clients": {
			snapshot:  removedFromEndpoints(allSwitchedOver(replicas...), 0, 0, 3*time.Second, time.Second),
			situation: RollingOut, step: "Wait", why: "clients still ask c-0-0"},
		"one that nobody takes for a master any more restarts at once": {
			snapshot: allSwitchedOver(append(replicas, "c-0-0")...), situation: RollingOut, step: "Restart", why: "c-1-0"},
		"one that is still asked is taken from the Service": {
			snapshot: changed(func() *snapshot.Snapshot { return allSwitchedOver(append(replicas, "c-0-0")...) }, func(s *snapshot.Snapshot) {
				s.Find(1, 0).Redis.RedirectedAt = now.Add(-time.Second)
			})(),
			situation: RollingOut, step: "RemoveFromEndpoints", why: "c-1-0"},
		"not for ever": {
			snapshot:  removedFromEndpoints(switchedOver(outmoded(replicas...), 0), 0, 0, 2*time.Minute, time.Second),
			situation: RollingOut, step: "Restart", why: "c-0-0"},
		"and restarts when they have gone": {
			snapshot:  removedFromEndpoints(switchedOver(outmoded(replicas...), 0), 0, 0, 4*time.Second, 4*time.Second),
			situation: RollingOut, step: "Restart", why: "c-0-0"},
		"a master whose only replica is not in sync stays": {
			snapshot:  unsynced(removedFromEndpoints(outmoded(replicas...), 0, 0, 0, 0), 0, 1),
			situation: RollingOut, step: "Wait", why: "c-0-1 is not in sync"},
		"no restart while slots move": {
			desired: func(d *Desired) { d.Topology = topologyOf(4) },
			snapshot: recorded(with(topologyOf(4)), changed(func() *snapshot.Snapshot { return joined(4) }, func(s *snapshot.Snapshot) {
				for i := range s.Shards {
					s.Shards[i].UpdateRevision = "new"
				}
				for i := range s.Instances {
					s.Instances[i].Revision = "old"
				}
			})()),
			situation: ScalingOut, step: "MoveSlots"},
		"a shard of one restarts without a successor": {
			desired: func(d *Desired) { d.Topology = v1alpha1.Topology{1, 1, 1} },
			snapshot: changed(func() *snapshot.Snapshot { return outmoded() }, func(s *snapshot.Snapshot) {
				var alone []snapshot.Instance
				for _, in := range s.Instances {
					if in.Ordinal == 0 {
						for _, shard := range []int{0, 1, 2} {
							delete(in.Redis.Peers, nodeID(shard, 1))
						}
						alone = append(alone, in)
					}
				}
				s.Instances = alone
				for i := range s.Shards {
					s.Shards[i].Replicas = 1
				}
				removedFromEndpoints(s, 0, 0, 3*time.Second, time.Hour)
			})(),
			situation: RollingOut, step: "Restart", why: "c-0-0"},
		"OnDelete names the instance that is not ready, too": {
			desired: func(d *Desired) { d.OnDelete = true }, snapshot: exporterless(outmoded("c-0-0", "c-1-0", "c-2-0", "c-0-1"), 2, 1),
			situation: RollingOut, step: "Rollout", why: "c-2-1, c-1-1"},
		"OnDelete waits for the user, and says for what": {
			desired: func(d *Desired) { d.OnDelete = true }, snapshot: outmoded(replicas...), situation: RollingOut, step: "Rollout",
			why: "c-0-0, c-1-0, c-2-0"},
		"a version that does not start halts the roll": {
			snapshot: broken(outmoded(), 0, 1, "new"), situation: RollingOut, step: "Wait", why: "ImagePullBackOff", blockedBy: SnapshotComplete},
		"and is called failed when it takes too long": {
			desired: func(d *Desired) { d.UpgradeTimeout = time.Minute },
			snapshot: changed(func() *snapshot.Snapshot { return broken(outmoded(), 0, 1, "new") }, func(s *snapshot.Snapshot) {
				s.RolledAt = now.Add(-2 * time.Minute)
			})(),
			situation: Failed, step: "Wait", why: "ImagePullBackOff"},
		"but not while the user restarts instances": {
			desired: func(d *Desired) { d.UpgradeTimeout, d.OnDelete = time.Minute, true },
			snapshot: changed(func() *snapshot.Snapshot { return outmoded() }, func(s *snapshot.Snapshot) {
				s.RolledAt = now.Add(-2 * time.Minute)
			})(),
			situation: RollingOut, step: "Rollout", why: "c-0-1"},
		"an instance that may not share a node and finds none of its own": {
			desired: func(d *Desired) { d.Apart = true },
			snapshot: changed(func() *snapshot.Snapshot { return broken(outmoded(), 0, 1, "new") }, func(s *snapshot.Snapshot) {
				s.Find(0, 1).Waiting = "not scheduled: 0/2 nodes are available: 2 node(s) didn't match pod topology spread constraints."
			})(),
			situation: RollingOut, step: "Wait",
			why: "spec.antiAffinity is Required, so the 2 instances of shard 0 need a node each: add nodes, or set it to Preferred"},
		"another reason not to find a node has another remedy": {
			desired: func(d *Desired) { d.Apart = true },
			snapshot: changed(func() *snapshot.Snapshot { return broken(outmoded(), 0, 1, "new") }, func(s *snapshot.Snapshot) {
				s.Find(0, 1).Waiting = "not scheduled: 0/2 nodes are available: 2 Insufficient memory."
			})(),
			situation: RollingOut, step: "Wait", why: "c-0-1: not scheduled: 0/2 nodes are available: 2 Insufficient memory."},
		"and is left behind when the template changes again": {
			snapshot:  broken(outmoded("c-0-0", "c-1-0", "c-1-1", "c-2-0", "c-2-1"), 0, 1, "broken"),
			situation: RollingOut, step: "Restart", why: "c-0-1 does not run (container redis: ImagePullBackOff)"},
		"but not if it may hold the only copy": {
			snapshot:  lose(broken(outmoded("c-0-0", "c-1-0", "c-1-1", "c-2-0", "c-2-1"), 0, 1, "broken"), 0, 0),
			situation: RollingOut, step: "Wait"},
		"an instance that was taken from the Service and keeps its template is led to again": {
			snapshot:  removedFromEndpoints(outmoded("c-0-0", "c-0-1", "c-1-0", "c-1-1", "c-2-0", "c-2-1"), 0, 1, time.Second, time.Second),
			situation: Healing, step: "AddToEndpoints", why: "c-0-1"},
		"a replica that cannot read its newer master's data is restarted all the same": {
			snapshot: changed(func() *snapshot.Snapshot {
				return removedFromEndpoints(switchedOver(outmoded(replicas...), 0), 0, 0, time.Minute, time.Minute)
			}, func(s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.MasterLinkUp, s.Find(0, 0).Redis.MasterLinkDownFor = false, 10*time.Second
			})(),
			situation: RollingOut, step: "Restart", why: "c-0-0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := decide(d, tt.snapshot, now)
			if got.Situation != tt.situation || got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s in %s: %s\nwant %s in %s: %s", got.Step.Name(), got.Situation, got.Step.Why(), tt.step, tt.situation, tt.why)
			}
			if tt.blockedBy != "" && blockedBy(got.Step) != tt.blockedBy {
				t.Errorf("blocked by %q, want %q", blockedBy(got.Step), tt.blockedBy)
			}
		})
	}
}

// Of several replicas the one that has the new template already takes over, so that the shard
// changes hands once.
func TestSuccessorHasTheNewTemplate(t *testing.T) {
	s := outmoded(replicas...)
	third := snapshot.Instance{Name: "c-0-2", Shard: 0, Ordinal: 2, IP: podIP(0, 2), Ready: true, Revision: "old", HasReadinessGate: true,
		InEndpoints: true,
		Redis: &snapshot.Redis{NodeID: nodeID(0, 2), MasterID: nodeID(0, 0), MasterLinkUp: true, Offset: 100, ClusterOK: true,
			Peers: map[string]snapshot.Peer{}}}
	s.Instances = append(s.Instances[:2], append([]snapshot.Instance{third}, s.Instances[2:]...)...)
	s.Shards[0].Replicas = 3
	introduce(s)
	removedFromEndpoints(s, 0, 0, 0, 0)
	d := desired()
	d.Topology = v1alpha1.Topology{3, 2, 2}
	in := input{desired: d, snap: s, topology: d.Topology, now: now}
	if step, ok := switchOver(in, s.Find(0, 0)).(Switchover); !ok || step.Replica.Pod != "c-0-1" {
		t.Errorf("got %+v, want a switchover to c-0-1", step)
	}
}

// Which instances have the new template counts, not which of them serve: a crash loop is no
// progress.
func TestRolloutProgress(t *testing.T) {
	unseen := outmoded("c-0-1", "c-1-1")
	unseen.Shards[1].UpdateRevision, unseen.Shards[1].Unobserved = "", true
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		want     *Rollout
	}{
		"none is to be restarted":           {formed(), nil},
		"none is yet":                       {outmoded(), &Rollout{Updated: 0, Total: 6}},
		"two are":                           {outmoded("c-0-1", "c-1-1"), &Rollout{Updated: 2, Total: 6}},
		"one of them crashes":               {broken(outmoded("c-0-1", "c-1-1"), 1, 1, "new"), &Rollout{Updated: 2, Total: 6}},
		"a shard's template is not known":   {unseen, &Rollout{Updated: 1, Total: 6}},
		"the last is on its way":            {rolling(broken(outmoded(allPods...), 2, 0, "new")), &Rollout{Updated: 6, Total: 6}},
		"an instance is lost for no reason": {broken(formed(), 2, 0, ""), nil},
	} {
		if diff := cmp.Diff(tt.want, decide(desired(), tt.snapshot, now).Rollout); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

var allPods = []string{"c-0-0", "c-0-1", "c-1-0", "c-1-1", "c-2-0", "c-2-1"}

func rolling(s *snapshot.Snapshot) *snapshot.Snapshot {
	s.Rolling = true
	return s
}

// A pod that is not ready because of its exporter takes nothing from a disruption budget, which would not let it go when many are
// so; and a cluster with such pods is not healthy.
func TestBrokenExporter(t *testing.T) {
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		broken   bool
	}{
		"all exporters run": {outmoded(), false},
		"one does not":      {exporterless(outmoded(), 1, 1), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := decide(desired(), tt.snapshot, now)
			if step, ok := d.Step.(Restart); !ok || step.Failing != tt.broken || d.Healthy == tt.broken {
				t.Errorf("%T %+v, healthy: %v", d.Step, d.Step, d.Healthy)
			}
		})
	}
}
