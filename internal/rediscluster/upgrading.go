// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// Waves are how a change that only the operator made reaches RedisClusters.
type Waves struct {
	Fleet *fleet.Fleet
	// Revision identifies what of the operator pod templates depend on.
	Revision string
}

// wavesFor are those that the options ask for; nil: none.
func wavesFor(mgr ctrl.Manager, o Options) (*Waves, error) {
	if o.Waves.Canaries <= 0 {
		return nil, nil
	}
	revision, err := RevisionOf(o.Chart, o.Version)
	if err != nil {
		return nil, err
	}
	logger := mgr.GetLogger().WithName("fleet")
	kind := v1alpha1.GroupVersion.WithKind("RedisCluster").GroupKind().String()
	var ledger fleet.Ledger
	if o.Turns != nil {
		ledger = o.Turns(kind, revision)
	}
	return &Waves{Revision: revision, Fleet: &fleet.Fleet{Options: o.Waves, Now: time.Now, Ledger: ledger,
		Load: func() ([]fleet.Member, error) { return members(mgr.GetCache(), revision) },
		Told: func(v fleet.Verdict) {
			logger.Info("RedisClusters take what is new in the operator", "fleet", v.String())
			metrics.Fleet{Kind: kind, Waiting: v.Waiting, Upgrading: v.Upgrading, Done: v.Done, Failed: v.Failed}.Set()
		}}}, nil
}

// forget drops a cluster that is gone.
func (w *Waves) forget(uid types.UID) {
	if w != nil {
		w.Fleet.Forget(uid)
	}
}

// upgrade is what this operator makes the instances by; nil: clusters are not upgraded in waves.
func (l *Loop) upgrade(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) *status.Upgrade {
	if l.Waves == nil {
		return nil
	}
	makes := v1alpha1.Applied{Revision: l.Waves.Revision, Generation: cluster.Generation}
	if len(s.Config.Settings) > 0 {
		makes.Config = digestOf(s.Config.Settings)
	}
	return &status.Upgrade{Makes: makes}
}

// digestOf identifies what can be written as JSON, whose maps are in order.
func digestOf(of any) string {
	text, err := json.Marshal(of)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// RevisionOf identifies what of the operator the pod templates of clusters depend on: its version, the chart and the default images.
func RevisionOf(c *chart.Chart, version string) (string, error) {
	cluster := &v1alpha1.RedisCluster{}
	cluster.Name, cluster.Namespace = "any", "any"
	admission.Default(cluster)
	v := values.Build(cluster, cluster.Spec.Topology(), nil, redisconf.TLS{})
	release := chart.Release{Name: cluster.Name, Namespace: cluster.Namespace, Revision: 1, IsInstall: true}
	of, err := c.DigestFor(v, release, chart.Capabilities{})
	if err != nil {
		return "", fmt.Errorf("identify the chart of RedisClusters: %w", err)
	}
	return digestOf([]string{version, of}), nil
}

// turn asks whether it is the turn of a cluster.
func (l *Loop) turn(cluster *v1alpha1.RedisCluster, m *Memory) (*plan.Turn, error) {
	wave, has, verdict, err := l.Waves.Fleet.Ask(MemberOf(cluster, l.Waves.Revision))
	if err != nil {
		return nil, err
	}
	told := m.told.Next(verdict, cluster.Namespace, l.Now())
	if m.told = told; has {
		m.told = fleet.Told{}
	}
	return &plan.Turn{Wave: wave, Stopped: told.Stopped, Why: told.Why}, nil
}

// Report tells the fleet how far a cluster is by its status, which has been written.
func (l *Loop) Report(cluster *v1alpha1.RedisCluster) {
	if l.Waves != nil {
		l.Waves.Fleet.Report(MemberOf(cluster, l.Waves.Revision))
	}
}

// MemberOf is how far a cluster is with what an operator of a revision makes instances by, as its status says. A cluster whose spec has
// changed since it was its turn is no member: what becomes of it is its author's.
func MemberOf(cluster *v1alpha1.RedisCluster, revision string) fleet.Member {
	m := fleet.Member{Namespace: cluster.Namespace, Name: cluster.Name, UID: cluster.UID}
	is := cluster.Status.Upgrade
	made, known := is.Made()
	if !known || made.Generation != cluster.Generation || cluster.DeletionTimestamp != nil {
		return m
	}
	upgraded := condition(cluster, v1alpha1.ConditionUpgraded)
	switch {
	case is.Target == revision && is.TurnTime != nil:
		m.State, m.Wave, m.TurnAt = fleet.Upgrading, int(is.Wave), is.TurnTime.UTC()
		if r := cluster.Status.Rollout; r != nil {
			m.ProgressAt = r.LastProgressTime.UTC()
		}
		if made.Revision == revision && upgraded.Status == metav1.ConditionTrue {
			m.State, m.DoneAt = fleet.Done, upgraded.LastTransitionTime.UTC()
			if ready := condition(cluster, v1alpha1.ConditionReady); ready.Status != metav1.ConditionTrue {
				m.UnwellSince = ready.LastTransitionTime.UTC()
			}
		}
	case made.Revision != revision && upgraded.Status == metav1.ConditionFalse:
		m.State = fleet.Waiting
	}
	return m
}

func condition(cluster *v1alpha1.RedisCluster, name string) metav1.Condition {
	if c := meta.FindStatusCondition(cluster.Status.Conditions, name); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// members reads those of a revision from the cache.
func members(from client.Reader, revision string) ([]fleet.Member, error) {
	var list v1alpha1.RedisClusterList
	if err := from.List(context.Background(), &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list RedisClusters: %w", err)
	}
	var members []fleet.Member
	for i := range list.Items {
		if m := MemberOf(&list.Items[i], revision); m.State != "" {
			members = append(members, m)
		}
	}
	return members, nil
}

// holding are the StatefulSets that only the operator would change, and that wait for the cluster's turn. One that is to have another
// number of instances does not wait: its pods do, in planRollout.
func holding(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, shape plan.Shape, template string, pending []apply.Ref,
	objects []*unstructured.Unstructured) []string {
	made, known := cluster.Status.Upgrade.Made()
	if !shape.Held || !known || made.Template == "" || made.Template == template {
		return nil
	}
	var names []string
	for _, object := range objects {
		replicas, _, err := unstructured.NestedInt64(object.Object, "spec", "replicas")
		if object.GetKind() == statefulSet && err == nil && isPending(pending, statefulSet, object.GetName()) &&
			slices.ContainsFunc(s.Shards, func(shard snapshot.Shard) bool {
				return shard.Name == object.GetName() && !shard.Terminating && int64(shard.Replicas) == replicas
			}) {
			names = append(names, object.GetName())
		}
	}
	return names
}

// templateOf identifies the pod template that instances are made from; empty: none is rendered. All shards have the same, but for names.
func templateOf(objects []*unstructured.Unstructured) string {
	for _, object := range objects {
		if object.GetKind() == statefulSet {
			template, _, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template")
			return digestOf(template)
		}
	}
	return ""
}
