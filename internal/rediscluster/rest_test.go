// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
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

// How rarely instances are asked is as the flag says, but for figures and files that something follows from.
func TestLongestRest(t *testing.T) {
	scaled := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Autoscale: &v1alpha1.AutoscaleStatus{}}}
	balanced := &v1alpha1.RedisCluster{Spec: v1alpha1.RedisClusterSpec{Balance: &v1alpha1.Balance{}}}
	growing := &v1alpha1.RedisCluster{Spec: v1alpha1.RedisClusterSpec{Storage: &v1alpha1.Storage{MaxSize: &resource.Quantity{}}}}
	loading := &v1alpha1.RedisCluster{}
	meta.SetStatusCondition(&loading.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionCertificateInUse, Status: metav1.ConditionFalse})
	loaded := &v1alpha1.RedisCluster{}
	meta.SetStatusCondition(&loaded.Status.Conditions,
		metav1.Condition{Type: v1alpha1.ConditionCertificateInUse, Status: metav1.ConditionTrue})
	for name, tt := range map[string]struct {
		cluster          *v1alpha1.RedisCluster
		seconds, minutes time.Duration // of an interval of ten seconds, and of one of a minute
	}{
		"as most are":             {&v1alpha1.RedisCluster{}, time.Minute, 6 * time.Minute},
		"its certificates loaded": {loaded, time.Minute, 6 * time.Minute},
		"they are not":            {loading, time.Minute, time.Minute},
		"sizes itself":            {scaled, time.Minute, time.Minute},
		"slots follow the load":   {balanced, time.Minute, time.Minute},
		"claims grow":             {growing, time.Minute, time.Minute},
	} {
		if seconds, minutes := longest(tt.cluster, 10*time.Second), longest(tt.cluster, time.Minute); seconds != tt.seconds ||
			minutes != tt.minutes {
			t.Errorf("%s: %s and %s, want %s and %s", name, seconds, minutes, tt.seconds, tt.minutes)
		}
	}
}

// However long there would be to wait, the operator is back when the bounds of autoscaling may have changed.
func TestSooner(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	for name, tt := range map[string]struct {
		changes time.Time
		wait    time.Duration
		want    time.Duration
	}{
		"they never change":   {time.Time{}, time.Minute, time.Minute},
		"later":               {now.Add(time.Hour), time.Minute, time.Minute},
		"before":              {now.Add(20 * time.Second), time.Minute, 20 * time.Second},
		"just now":            {now, time.Minute, goOn},
		"long ago":            {now.Add(-time.Hour), time.Minute, goOn},
		"sooner anyway":       {now.Add(time.Second), goOn, goOn},
		"nothing to wait for": {now.Add(time.Second), 0, 0},
	} {
		if got := (rest{changes: tt.changes}).sooner(tt.wait, now); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
	cluster := &v1alpha1.RedisCluster{}
	if after := (rest{}).after(cluster, Report{Until: now, Reconciliation: status.Reconciliation{Decision: plan.Decision{Step: plan.Wait{}}}},
		now); !after.changes.Equal(now) || after.seen != nil {
		t.Errorf("of a cluster that is not at rest: %+v", after)
	}
}

// A cluster at rest is looked at when the bounds of autoscaling may have changed, before its time.
func TestRestEndsWithTheBounds(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	r := &Reconciler{now: func() time.Time { return now }, loop: &Loop{Observer: &observe.Observer{}}}
	m := &Memory{rest: rest{until: now.Add(time.Hour), seen: &observe.Rest{}, changes: now}}
	if r.rests(t.Context(), &v1alpha1.RedisCluster{}, m, nil) {
		t.Error("it rests")
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

// What woke the operator still counts when the cluster could not be read; of one that is gone nothing is kept.
func TestWokenInVain(t *testing.T) {
	name := types.NamespacedName{Namespace: "n", Name: "c"}
	for what, tt := range map[string]struct {
		err  error
		want bool
	}{
		"not read": {errors.New("the API server is away"), true},
		"gone":     {apierrors.NewNotFound(schema.GroupResource{}, "c"), false},
	} {
		r := &Reconciler{now: time.Now, client: fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return tt.err
			},
		}).Build()}
		r.woken.note(name)
		_, _ = r.reconcile(t.Context(), reconcile.Request{NamespacedName: name}, nil) // how it is tried again is not asked here
		if got := r.woken.take(name); got != tt.want {
			t.Errorf("%s: woken %t, want %t", what, got, tt.want)
		}
	}
}
