// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func cluster() *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "c", Namespace: "n", Generation: 3}}
}

// healthy is a cluster of three masters that is healthy.
func healthy() *snapshot.Snapshot {
	s := &snapshot.Snapshot{Formed: true, Auth: snapshot.Auth{Known: true}}
	for i, part := range slots.All().Split(3) {
		id := strings.Repeat(string(rune('a'+i)), 40)
		s.Shards = append(s.Shards, snapshot.Shard{Index: i, Replicas: 1})
		s.Instances = append(s.Instances, snapshot.Instance{Name: "c-" + string(rune('0'+i)) + "-0", Shard: i, IP: "10.0.0.1", Ready: true,
			Redis: &snapshot.Redis{NodeID: id, Master: true, Slots: part, ClusterOK: true, Version: "7.0.15", Engine: "redis"}})
	}
	for i := range s.Instances {
		in := &s.Instances[i]
		in.Redis.Peers = map[string]snapshot.Peer{}
		for j := range s.Instances {
			if other := s.Instances[j]; i != j {
				in.Redis.Peers[other.Redis.NodeID] = snapshot.Peer{ID: other.Redis.NodeID, IP: other.IP, Master: true, Connected: true,
					Slots: other.Redis.Slots}
			}
		}
	}
	return s
}

// asleep is a cluster of which no instance runs. Of c-0-0 the volume of that name had data.
func asleep(volumes ...string) *snapshot.Snapshot {
	s := healthy()
	s.Instances, s.Hibernated = nil, v1alpha1.Topology{1, 1, 1}
	for i := range s.Shards {
		s.Shards[i].Replicas = 0
	}
	for _, volume := range volumes {
		s.DataVolumes = map[string]string{"c-0-0": volume}
	}
	return s
}

func decide(s *snapshot.Snapshot, change func(*plan.Desired)) plan.Decision {
	d := plan.Desired{Topology: v1alpha1.Topology{1, 1, 1}, HasFinalizer: true}
	if change != nil {
		change(&d)
	}
	return plan.ShapeOf(d, s, now).Next(plan.Pending{})
}

// pending is what is decided when children are to be changed, or could not be.
func pending(s *snapshot.Snapshot, p plan.Pending) plan.Decision {
	return plan.ShapeOf(plan.Desired{Topology: v1alpha1.Topology{1, 1, 1}, HasFinalizer: true}, s, now).Next(p)
}

func TestCompute(t *testing.T) {
	lost := healthy()
	lost.Instances[1].Redis, lost.Instances[1].Error = nil, "i/o timeout"
	old := healthy()
	old.Shards[0].UpdateRevision, old.Instances[0].Revision = "new", "old"
	waiting := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Shards: healthy().Shards,
		Instances: []snapshot.Instance{{Name: "c-0-0", Waiting: "not scheduled: 0/3 nodes are available"}}}

	unborn := &snapshot.Snapshot{Auth: snapshot.Auth{Absent: true}}
	born := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}}

	for name, tt := range map[string]struct {
		pass   Reconciliation
		phase  v1alpha1.Phase
		ready  metav1.ConditionStatus
		reason string // of Ready
		says   string // part of status.reason
		others map[string]metav1.ConditionStatus
	}{
		"healthy": {
			Reconciliation{Snapshot: healthy(), Decision: decide(healthy(), nil)}, v1alpha1.PhaseRunning, metav1.ConditionTrue, "Serving", "",
			map[string]metav1.ConditionStatus{"SlotsCovered": "True", "Formed": "True", "Degraded": "False", "Stalled": "False",
				"Progressing": "False"}},
		"an older template still serves": {
			Reconciliation{Snapshot: old, Decision: decide(old, nil)}, v1alpha1.PhaseUpgrading, metav1.ConditionTrue, "Serving", "c-0-0",
			map[string]metav1.ConditionStatus{"Degraded": "False", "Progressing": "True"}},
		"a request for a switchover waits": {
			Reconciliation{Snapshot: healthy(), Decision: plan.Decision{Situation: plan.Healing, Healthy: true, Step: plan.Wait{Requested: true}}},
			v1alpha1.PhaseRunning, metav1.ConditionTrue, "Serving", "",
			map[string]metav1.ConditionStatus{"Degraded": "False", "Progressing": "True"}},
		"it waits while an instance is away": {
			Reconciliation{Snapshot: lost, Decision: plan.Decision{Situation: plan.Healing, Step: plan.Wait{Requested: true}}},
			v1alpha1.PhaseFailed, metav1.ConditionFalse, "Healing", "", map[string]metav1.ConditionStatus{"Degraded": "True"}},
		"a setting of instances that a scaling has added": {
			Reconciliation{
				Snapshot: healthy(),
				Decision: plan.Decision{Situation: plan.ScalingOut, Healthy: true, Step: plan.SetConfig{}},
			}, v1alpha1.PhaseScaling, metav1.ConditionFalse, "ScalingOut", "",
			map[string]metav1.ConditionStatus{"Degraded": "False", "Progressing": "True"}},
		"just created": {
			Reconciliation{Snapshot: &snapshot.Snapshot{}, Decision: decide(&snapshot.Snapshot{}, func(d *plan.Desired) { d.HasFinalizer = false })},
			v1alpha1.PhaseNone, metav1.ConditionFalse, "Absent", "deletion must be able to follow spec.finalizers",
			map[string]metav1.ConditionStatus{"Formed": "False", "Degraded": "False", "Progressing": "True"}},
		"before its first object": {
			Reconciliation{Snapshot: unborn, Decision: decide(unborn, nil)}, v1alpha1.PhaseNone, metav1.ConditionFalse, "Absent",
			"the Secret that holds the password does not exist",
			map[string]metav1.ConditionStatus{"Progressing": "True"}},
		"with its first objects": {
			Reconciliation{Snapshot: born, Decision: pending(born, plan.Pending{Children: []string{"StatefulSet c-0"}})}, v1alpha1.PhaseCreating,
			metav1.ConditionFalse, "Absent", "children to apply: StatefulSet c-0",
			map[string]metav1.ConditionStatus{"Progressing": "True"}},
		"pods that cannot be scheduled": {
			Reconciliation{Snapshot: waiting, Decision: decide(waiting, nil)}, v1alpha1.PhaseCreating, metav1.ConditionFalse, "Forming",
			"not scheduled: 0/3",
			map[string]metav1.ConditionStatus{"SlotsCovered": "False", "Formed": "False", "Degraded": "False", "Progressing": "True"}},
		"a master that does not answer": {
			Reconciliation{Snapshot: lost, Decision: decide(lost, nil)}, v1alpha1.PhaseFailed, metav1.ConditionFalse, "Healing",
			"c-1-0 does not answer: i/o timeout",
			map[string]metav1.ConditionStatus{"SlotsCovered": "False", "Formed": "True", "Degraded": "True"}},
		"an invalid spec": {
			Reconciliation{Snapshot: healthy(), Decision: decide(healthy(),
				func(d *plan.Desired) { d.Problems = []string{"spec.shards: too many"} })},
			v1alpha1.PhaseFailed, metav1.ConditionFalse, "InvalidSpec", "spec.shards: too many",
			map[string]metav1.ConditionStatus{"Stalled": "True", "Progressing": "False"}},
		"something else is done while it stalls": {
			Reconciliation{Snapshot: healthy(), Decision: plan.Decision{Situation: plan.Failed, Step: plan.Meet{},
				Stalled: &plan.Stall{Cause: "UnownedKeys"}}},
			v1alpha1.PhaseFailed, metav1.ConditionFalse, "UnownedKeys", "",
			map[string]metav1.ConditionStatus{"Stalled": "True", "Progressing": "True"}},
		"a step that cannot be done": {
			Reconciliation{Snapshot: healthy(),
				Decision: pending(healthy(),
					plan.Pending{Refused: &plan.Refused{Cause: "NameTaken", Message: "Service c is taken", Step: plan.ApplyChildren{}}})},
			v1alpha1.PhaseFailed, metav1.ConditionFalse, "NameTaken", "Service c is taken",
			map[string]metav1.ConditionStatus{"Stalled": "True"}},
		"a cluster that has formed with fewer shards than it is to have": {
			Reconciliation{Snapshot: healthy(), Decision: plan.Decision{Situation: plan.ScalingOut, Step: plan.None{}, Healthy: true}},
			v1alpha1.PhaseScaling, metav1.ConditionFalse, "ScalingOut", "", nil},
		"hibernated": {
			Reconciliation{Snapshot: asleep(), Decision: decide(asleep(), func(d *plan.Desired) { d.Hibernate = true })},
			v1alpha1.PhaseHibernated, metav1.ConditionFalse, "Hibernated", "the cluster is hibernated",
			map[string]metav1.ConditionStatus{"Progressing": "False", "Degraded": "False", "Stalled": "False", "Formed": "True",
				"Hibernated": "True", "SlotsCovered": "False"}},
		"hibernated, and a claim is gone": {
			Reconciliation{Snapshot: asleep("gone"),
				Decision: decide(asleep("gone"), func(d *plan.Desired) { d.Hibernate, d.ClaimBytes = true, 1 })},
			v1alpha1.PhaseHibernated, metav1.ConditionFalse, "Hibernated", "c-0-0",
			map[string]metav1.ConditionStatus{"Progressing": "False", "Stalled": "True", "Hibernated": "True"}},
		"waking": {
			Reconciliation{Snapshot: asleep(), Decision: pending(asleep(), plan.Pending{Children: []string{"StatefulSet c-0"}})},
			v1alpha1.PhaseWaking, metav1.ConditionFalse, "Waking", "start again",
			map[string]metav1.ConditionStatus{"Progressing": "True", "Degraded": "False", "Hibernated": "True"}},
		"hibernated and paused": {
			Reconciliation{Snapshot: asleep(), Decision: decide(asleep(), func(d *plan.Desired) { d.Hibernate, d.Paused = true, true })},
			v1alpha1.PhasePaused, metav1.ConditionFalse, "Paused", "spec.pause is true",
			map[string]metav1.ConditionStatus{"Hibernated": "True", "Degraded": "False"}},
		"paused": {
			Reconciliation{Snapshot: healthy(), Decision: decide(healthy(), func(d *plan.Desired) { d.Paused = true })},
			v1alpha1.PhasePaused, metav1.ConditionTrue, "Serving", "spec.pause is true",
			map[string]metav1.ConditionStatus{"Progressing": "False"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Compute(cluster(), tt.pass, now)
			if got.Phase != tt.phase || !strings.Contains(got.Reason, tt.says) || (tt.says == "") != (got.Reason == "") {
				t.Errorf("phase %s, reason %q; want %s and %q", got.Phase, got.Reason, tt.phase, tt.says)
			}
			ready := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Status != tt.ready || ready.Reason != tt.reason || ready.ObservedGeneration != 3 {
				t.Errorf("Ready is %+v, want %s because of %s", ready, tt.ready, tt.reason)
			}
			for conditionType, want := range tt.others {
				if c := meta.FindStatusCondition(got.Conditions, conditionType); c == nil || c.Status != want {
					t.Errorf("%s is %+v, want %s", conditionType, c, want)
				}
			}
		})
	}
}

// A reconciliation that saw what the last one saw writes nothing.
func TestComputeIsStable(t *testing.T) {
	c := cluster()
	reconciliation := Reconciliation{Snapshot: healthy(), Decision: decide(healthy(), nil)}
	c.Status = Compute(c, reconciliation, now)
	if diff := cmp.Diff(c.Status, Compute(c, reconciliation, now.Add(time.Hour))); diff != "" {
		t.Errorf("an hour later (-first +second):\n%s", diff)
	}
}

func TestNodesKeepTheirTransition(t *testing.T) {
	c := cluster()
	c.Status = Compute(c, Reconciliation{Snapshot: healthy(), Decision: decide(healthy(), nil)}, now)
	later := healthy()
	later.Instances[2].Redis, later.Instances[2].Error = nil, "connection refused"
	got := Compute(c, Reconciliation{Snapshot: later, Decision: decide(later, nil)}, now.Add(time.Minute)).Nodes
	if !got[0].LastTransitionTime.Time.Equal(now) || !got[2].LastTransitionTime.Time.Equal(now.Add(time.Minute)) {
		t.Errorf("transitions are %v and %v", got[0].LastTransitionTime, got[2].LastTransitionTime)
	}
	want := v1alpha1.NodeStatus{Name: "c-2-0", Instance: "10.0.0.1:6379", Shard: 2, Status: metav1.ConditionUnknown,
		Reason: "NotReached", Message: "connection refused", LastTransitionTime: metav1.NewTime(now.Add(time.Minute))}
	if diff := cmp.Diff(want, got[2]); diff != "" {
		t.Error(diff)
	}
}

// TestTargetVersion: what middlewareImage holds is what instances of that image say.
func TestTargetVersion(t *testing.T) {
	const image = "registry.example.com/db/cache:prod"
	for name, tt := range map[string]struct {
		image  string
		change func(*v1alpha1.RedisCluster, *snapshot.Snapshot)
		want   string
	}{
		"version":             {"", func(c *v1alpha1.RedisCluster, _ *snapshot.Snapshot) { c.Spec.Version = "9.1.2-alpine" }, "9.1.2-alpine"},
		"the default version": {"", nil, v1alpha1.DefaultVersion},
		"what the image runs": {image, func(_ *v1alpha1.RedisCluster, s *snapshot.Snapshot) { run(s, image, "7.0.15", "7.0.15", "7.0.15") },
			"7.0.15"},
		"while it rolls out": {image, func(_ *v1alpha1.RedisCluster, s *snapshot.Snapshot) {
			run(s, image, "8.0.6", "7.0.15", "7.0.15")
			s.Instances[1].Image, s.Instances[2].Image = "redis:7.0.15", "redis:7.0.15"
		}, "8.0.6"},
		"before any instance runs it": {image, nil, ""},
		"what the image before was": {image, func(c *v1alpha1.RedisCluster, _ *snapshot.Snapshot) {
			c.Status.TargetVersion, c.Status.ObservedGeneration = "7.0.15", 2
		}, ""},
		"what was said stays while nobody answers": {image, func(c *v1alpha1.RedisCluster, s *snapshot.Snapshot) {
			c.Status.TargetVersion, c.Status.ObservedGeneration = "8.0.6", 3
			for i := range s.Instances {
				s.Instances[i].Redis = nil
			}
		}, "8.0.6"},
		"a tag that has moved": {image, func(_ *v1alpha1.RedisCluster, s *snapshot.Snapshot) { run(s, image, "8.0.6", "8.0.10", "8.0.9") },
			"8.0.10"},
		"what is no version": {image, func(_ *v1alpha1.RedisCluster, s *snapshot.Snapshot) { run(s, image, "best", "", "v") }, ""},
		"an image by its digest": {"redis@sha256:aa", func(_ *v1alpha1.RedisCluster, s *snapshot.Snapshot) {
			run(s, "redis@sha256:aa", "8.0.6", "8.0.6", "8.0.6")
		}, "8.0.6"},
	} {
		c, s := cluster(), healthy()
		c.Spec.Pod = []v1alpha1.PodTemplate{{MiddlewareImage: tt.image}}
		if tt.change != nil {
			tt.change(c, s)
		}
		if got := Compute(c, Reconciliation{Snapshot: s, Decision: decide(s, nil)}, now).TargetVersion; got != tt.want {
			t.Errorf("%s: target %q, want %q", name, got, tt.want)
		}
	}
}

// run has the instances run an image whose server says these versions.
func run(s *snapshot.Snapshot, image string, versions ...string) {
	for i, version := range versions {
		s.Instances[i].Image, s.Instances[i].Redis.Version = image, version
	}
}

// TestDomainNames: in full where the cluster's domain is known.
func TestDomainNames(t *testing.T) {
	for domain, want := range map[string]string{"": "c-0-0.c-nodes.n.svc", "example.com": "c-0-0.c-nodes.n.svc.example.com"} {
		s := healthy()
		s.Instances[0].DomainName = "c-0-0.c-nodes.n.svc"
		got := Compute(cluster(), Reconciliation{Snapshot: s, Decision: decide(s, nil), ClusterDomain: domain}, now).Nodes
		if got[0].DomainName != want || got[1].DomainName != "" {
			t.Errorf("domain %q: names %q and %q, want %q", domain, got[0].DomainName, got[1].DomainName, want)
		}
	}
}

// Slots stay for a backup when they all have an owner, none of them moves, and no scaling has begun.
func TestHeldForBackup(t *testing.T) {
	for what, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		want   types.UID
	}{
		"a backup":             {func(*snapshot.Snapshot) {}, "b"},
		"none":                 {func(s *snapshot.Snapshot) { s.Backup = snapshot.Backup{} }, ""},
		"a scaling has begun":  {func(s *snapshot.Snapshot) { s.Goal = &snapshot.Goal{} }, ""},
		"a slot leaves":        {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Migrating = map[uint16]string{1: "x"} }, ""},
		"a slot arrives":       {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Importing = map[uint16]string{1: "x"} }, ""},
		"a job moves slots":    {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Jobs = []snapshot.Job{{}} }, ""},
		"a slot has no owner":  {func(s *snapshot.Snapshot) { s.Instances[0].Redis.Slots = slots.Range(0, 7) }, ""},
		"an owner is not seen": {func(s *snapshot.Snapshot) { s.Instances[0].Redis = nil }, ""},
	} {
		s := healthy()
		s.Backup = snapshot.Backup{Name: "monday", UID: "b"}
		tt.change(s)
		if got := heldForBackup("", s); got != tt.want {
			t.Errorf("%s: slots stay for %q, want %q", what, got, tt.want)
		}
		if got := heldForBackup("a", s); got != tt.want {
			t.Errorf("%s, after another one: slots stay for %q, want %q", what, got, tt.want)
		}
		if got := heldForBackup("b", s); got != types.UID(s.Backup.UID) {
			t.Errorf("%s: the turn is lost: slots stay for %q", what, got)
		}
	}
}
