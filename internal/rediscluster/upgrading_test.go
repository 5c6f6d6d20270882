// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// How far a cluster is stands in its status: whoever begins knows it.
func TestMemberOf(t *testing.T) {
	at := func(minutes int) metav1.Time {
		return metav1.NewTime(time.Date(2026, 11, 27, 12, minutes, 0, 0, time.UTC))
	}
	old, made := v1alpha1.Applied{Revision: "r1", Generation: 2}.String(), v1alpha1.Applied{Revision: "r2", Generation: 2}.String()
	condition := func(name string, status metav1.ConditionStatus, minute int) metav1.Condition {
		return metav1.Condition{Type: name, Status: status, LastTransitionTime: at(minute)}
	}
	waits, done := condition(v1alpha1.ConditionUpgraded, "False", 1), condition(v1alpha1.ConditionUpgraded, "True", 5)
	ready, unready := condition(v1alpha1.ConditionReady, "True", 2), condition(v1alpha1.ConditionReady, "False", 6)
	turn := v1alpha1.UpgradeStatus{Applied: old, Target: "r2", Wave: 2, TurnTime: new(at(3))}
	upgraded := v1alpha1.UpgradeStatus{Applied: made, Target: "r2", Wave: 2, TurnTime: new(at(3))}
	for name, tt := range map[string]struct {
		status  v1alpha1.RedisClusterStatus
		changed bool
		want    fleet.Member
	}{
		"nothing is known": {},
		"it waits": {status: v1alpha1.RedisClusterStatus{Upgrade: &v1alpha1.UpgradeStatus{Applied: old},
			Conditions: []metav1.Condition{waits}}, want: fleet.Member{State: fleet.Waiting}},
		"it has nothing to take yet": {status: v1alpha1.RedisClusterStatus{Upgrade: &v1alpha1.UpgradeStatus{Applied: old},
			Conditions: []metav1.Condition{done}}},
		"the spec has changed": {status: v1alpha1.RedisClusterStatus{Upgrade: &turn}, changed: true},
		"its turn has come": {status: v1alpha1.RedisClusterStatus{Upgrade: &turn, Conditions: []metav1.Condition{waits, unready}},
			want: fleet.Member{State: fleet.Upgrading, Wave: 2, TurnAt: at(3).Time}},
		"it makes progress": {status: v1alpha1.RedisClusterStatus{Upgrade: &turn, Rollout: &v1alpha1.RolloutStatus{LastProgressTime: at(4)}},
			want: fleet.Member{State: fleet.Upgrading, Wave: 2, TurnAt: at(3).Time, ProgressAt: at(4).Time}},
		"it is done": {status: v1alpha1.RedisClusterStatus{Upgrade: &upgraded, Conditions: []metav1.Condition{done, ready}},
			want: fleet.Member{State: fleet.Done, Wave: 2, TurnAt: at(3).Time, DoneAt: at(5).Time}},
		"and not well since": {status: v1alpha1.RedisClusterStatus{Upgrade: &upgraded, Conditions: []metav1.Condition{done, unready}},
			want: fleet.Member{State: fleet.Done, Wave: 2, TurnAt: at(3).Time, DoneAt: at(5).Time, UnwellSince: at(6).Time}},
		"it took no turn": {status: v1alpha1.RedisClusterStatus{Upgrade: &v1alpha1.UpgradeStatus{Applied: made},
			Conditions: []metav1.Condition{done, unready}}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u", Generation: 2}, Status: tt.status}
			if tt.changed {
				cluster.Generation++
			}
			tt.want.Namespace, tt.want.Name, tt.want.UID = "n", "c", "u"
			if diff := cmp.Diff(tt.want, MemberOf(cluster, "r2"), cmpopts.IgnoreUnexported(fleet.Member{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A template that only the operator changed is written to no StatefulSet that stays as it is otherwise; new ones are made, others scaled.
func TestStatefulSetsWait(t *testing.T) {
	c := newChildren(t, nil)
	cluster := sized("c", 3, 6, v1alpha1.PodTemplate{})
	objects := renderAll(t, c, &Memory{}, cluster)
	var pending []apply.Ref
	for _, o := range objects {
		pending = append(pending, apply.Ref{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName()})
	}
	template := templateOf(objects)
	if template == "" {
		t.Fatal("the template is not known")
	}
	shards := func(replicas ...int32) *snapshot.Snapshot {
		s := &snapshot.Snapshot{}
		for i, n := range replicas {
			s.Shards = append(s.Shards, snapshot.Shard{Index: i, Name: cluster.ShardName(i), Replicas: n})
		}
		return s
	}
	leaving := shards(2, 2, 2)
	leaving.Shards[1].Terminating = true
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		template string
		goes     bool
		applied  bool
		want     []string
	}{
		"all wait":                      {snapshot: shards(2, 2, 2), template: "other", want: []string{"c-0", "c-1", "c-2"}},
		"one is new":                    {snapshot: shards(2, 2), template: "other", want: []string{"c-0", "c-1"}},
		"one is scaled":                 {snapshot: shards(2, 1, 2), template: "other", want: []string{"c-0", "c-2"}},
		"one is on its way out":         {snapshot: leaving, template: "other", want: []string{"c-0", "c-2"}},
		"the template is the same":      {snapshot: shards(2, 2, 2), template: template},
		"what it was is not known":      {snapshot: shards(2, 2, 2)},
		"it is the turn of the cluster": {snapshot: shards(2, 2, 2), template: "other", goes: true},
		"they are as they are to be":    {snapshot: shards(2, 2, 2), template: "other", applied: true},
	} {
		t.Run(name, func(t *testing.T) {
			cluster.Status.Upgrade = &v1alpha1.UpgradeStatus{Applied: v1alpha1.Applied{Revision: "r1", Template: tt.template}.String()}
			are := pending
			if tt.applied {
				are = nil
			}
			got := holding(cluster, tt.snapshot, plan.Shape{Held: !tt.goes}, template, are, objects)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Another version of the operator is another revision; the same one is the same after a restart.
func TestRevision(t *testing.T) {
	c := newChildren(t, nil)
	of := func(version string) string {
		revision, err := RevisionOf(c.chart, version)
		if err != nil {
			t.Fatal(err)
		}
		return revision
	}
	first, again, next := of("1.0.0"), of("1.0.0"), of("1.0.1")
	if first != again || first == next || first == "" {
		t.Errorf("%q, %q, %q", first, again, next)
	}
}

// What is told to one that waits changes once a minute at most, unless all stop: each telling is a write.
func TestTurnIsToldSeldom(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	members := func() (all []fleet.Member, _ error) {
		return []fleet.Member{{Namespace: "other", Name: "canary", UID: "u1", State: fleet.Upgrading, Wave: 1, TurnAt: now}}, nil
	}
	f := &fleet.Fleet{Options: fleet.Options{Canaries: 1, Wave: 1, Stuck: 10 * time.Minute}, Load: members,
		Now: func() time.Time { return now }}
	l := &Loop{Waves: &Waves{Fleet: f, Revision: "r2"}, Now: func() time.Time { return now }}
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "u"}}
	m := &Memory{}
	tell := func() string {
		turn, err := l.turn(cluster, m)
		if err != nil || turn.Wave != 0 {
			t.Fatal(turn, err)
		}
		return turn.Why
	}
	first := tell()
	if first != "0 of 2 upgraded, 1 being upgraded" {
		t.Errorf("told %q", first)
	}
	f.Report(fleet.Member{Namespace: "other", Name: "third", UID: "u3", State: fleet.Waiting})
	if now = now.Add(30 * time.Second); tell() != first {
		t.Error("told anew after 30 s")
	}
	if now = now.Add(30 * time.Second); tell() == first {
		t.Error("not told anew after a minute")
	}
	f.Report(fleet.Member{Namespace: "other", Name: "canary", UID: "u1", State: fleet.Upgrading, Wave: 1, TurnAt: now.Add(-15 * time.Minute)})
	if why := tell(); why != "0 of 3 upgraded, 1 not well since then, and none of the others is upgraded before" {
		t.Errorf("told %q", why)
	}
}
