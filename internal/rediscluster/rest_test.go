// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

// A cluster is at rest only if nothing is to be done and events tell of all that may have to be.
func TestAtRest(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*v1alpha1.RedisCluster, *Report)
		want   bool
	}{
		"healthy": {func(*v1alpha1.RedisCluster, *Report) {}, true},
		"a step":  {func(_ *v1alpha1.RedisCluster, r *Report) { r.Decision.Step = plan.Wait{} }, false},
		"held":    {func(_ *v1alpha1.RedisCluster, r *Report) { r.Decision.Step = plan.Hold{Next: plan.None{}} }, false},
		"failed":  {func(_ *v1alpha1.RedisCluster, r *Report) { r.Err = errors.New("no") }, false},
		"not Ready": {func(c *v1alpha1.RedisCluster, _ *Report) {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse})
		}, false},
		"being deleted": {func(c *v1alpha1.RedisCluster, _ *Report) { c.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, false},
		"an archive": {func(c *v1alpha1.RedisCluster, _ *Report) {
			c.Spec.Backup = &v1alpha1.ClusterBackup{Archive: &v1alpha1.Archive{}}
		}, false},
		"clients outside": {func(c *v1alpha1.RedisCluster, _ *Report) { c.Spec.External = &v1alpha1.External{} }, false},
		"a bootstrap":     {func(c *v1alpha1.RedisCluster, _ *Report) { c.Spec.Bootstrap = &v1alpha1.Bootstrap{} }, false},
		"an unknown instance": {func(_ *v1alpha1.RedisCluster, r *Report) {
			r.Snapshot.Instances = append(r.Snapshot.Instances, snapshot.Instance{Name: "b"})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
			meta.SetStatusCondition(&cluster.Status.Conditions, metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue})
			report := Report{Reconciliation: status.Reconciliation{Decision: plan.Decision{Step: plan.None{}},
				Snapshot: &snapshot.Snapshot{Instances: []snapshot.Instance{{Name: "a", Redis: &snapshot.Redis{Master: true}}}}}}
			tt.change(cluster, &report)
			if got := (rest{}).after(cluster, report, time.Now()).seen != nil; got != tt.want {
				t.Errorf("at rest: %t, want %t", got, tt.want)
			}
		})
	}
}

// An event that comes while a cluster is reconciled counts for the next reconciliation.
func TestWoken(t *testing.T) {
	var w woken
	name := types.NamespacedName{Namespace: "n", Name: "c"}
	if w.take(name) {
		t.Error("woken by nothing")
	}
	w.note(name)
	if !w.take(name) || w.take(name) {
		t.Error("an event counts once")
	}
}
