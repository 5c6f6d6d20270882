// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"math"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/autoscale"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// The number changes with the step, when that was carried out, and not before; what masters bore is written down whatever they say.
func TestAutoscaled(t *testing.T) {
	now := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	outgrown := func(demand float64) *autoscale.Outgrown {
		return &autoscale.Outgrown{Shards: 3, Measure: autoscale.Memory, Demand: demand}
	}
	was := &v1alpha1.Outgrown{Shards: 2, Measure: "Network", Percent: 250}
	for name, tt := range map[string]struct {
		step    plan.Step
		err     error
		demand  float64
		shards  int32
		percent int64
	}{
		"done":           {plan.SetShards{From: 3, To: 5}, nil, 3.456, 5, 345},
		"not done":       {plan.SetShards{From: 3, To: 5}, errors.New("no"), 3.456, 3, 250},
		"paused":         {plan.Hold{Next: plan.SetShards{From: 3, To: 5}}, nil, 3.456, 3, 250},
		"something else": {plan.None{}, nil, 3.456, 3, 250},
		"nonsense":       {plan.SetShards{From: 3, To: 5}, nil, math.Inf(1), 5, 1 << 53},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Autoscale: &v1alpha1.AutoscaleStatus{Shards: 3, Outgrown: was}}}
			status := cluster.Status.DeepCopy()
			autoscaled(cluster, status, Reconciliation{Decision: plan.Decision{Step: tt.step}, Err: tt.err, Autoscaling: &Autoscaling{Shards: 3,
				Outcome: autoscale.Outcome{Known: true, Wanted: 5, Limited: true, Reason: "it is a lot", Outgrown: outgrown(tt.demand)}}}, now)
			is := status.Autoscale
			if is.Shards != tt.shards || is.Outgrown.Percent != tt.percent || (is.ScaledAt != nil) != (tt.shards == 5) || *is.Wanted != 5 ||
				!meta.IsStatusConditionTrue(status.Conditions, v1alpha1.ConditionAutoscalingLimited) {
				t.Errorf("%+v, %+v, %+v", is, is.Outgrown, status.Conditions)
			}
		})
	}
}

// What there are to be stays until the spec says it.
func TestAutoscaleIsOver(t *testing.T) {
	for name, tt := range map[string]struct {
		spec  v1alpha1.RedisClusterSpec
		stays bool
	}{
		"shards are set":       {v1alpha1.RedisClusterSpec{Shards: ptr.To[int32](4)}, false},
		"nothing is":           {v1alpha1.RedisClusterSpec{}, true},
		"a spec that is wrong": {v1alpha1.RedisClusterSpec{Shards: ptr.To[int32](4), Autoscale: &v1alpha1.Autoscale{}}, true},
	} {
		cluster := &v1alpha1.RedisCluster{Spec: tt.spec, Status: v1alpha1.RedisClusterStatus{Autoscale: &v1alpha1.AutoscaleStatus{Shards: 4},
			Conditions: []metav1.Condition{{Type: v1alpha1.ConditionAutoscalingLimited}}}}
		status := cluster.Status.DeepCopy()
		autoscaled(cluster, status, Reconciliation{}, time.Time{})
		if (status.Autoscale != nil) != tt.stays || (len(status.Conditions) > 0) != tt.stays {
			t.Errorf("%s: %+v", name, status)
		}
	}
}

// The bounds in force are told while a window is open, and what there are to be is no other number before something is done for it.
func TestAutoscaleWindow(t *testing.T) {
	for name, tt := range map[string]struct {
		window string
		step   plan.Step
		shards int32
	}{
		"open":            {"peak", plan.ApplyChildren{}, 5},
		"paused":          {"peak", plan.Hold{Next: plan.ApplyChildren{}}, 3},
		"nothing is open": {"", plan.None{}, 5},
	} {
		cluster := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Autoscale: &v1alpha1.AutoscaleStatus{Shards: 3, Window: "day"}}}
		status := cluster.Status.DeepCopy()
		autoscaled(cluster, status, Reconciliation{Decision: plan.Decision{Step: tt.step}, Autoscaling: &Autoscaling{Shards: 5,
			Bounds: autoscale.Bounds{Least: 5, Most: 9, Window: tt.window}, Outcome: autoscale.Outcome{Known: true, Wanted: 5}}}, time.Time{})
		is := status.Autoscale
		if is.Shards != tt.shards || is.Window != tt.window || (is.MinShards == 5 && is.MaxShards == 9) != (tt.window != "") {
			t.Errorf("%s: %+v", name, is)
		}
	}
}

// Whether the load asks for too much is not known while the load is not; whether it did before is kept, however long that lasts.
func TestAutoscaleUnknown(t *testing.T) {
	known := func(limited bool) autoscale.Outcome {
		return autoscale.Outcome{Known: true, Limited: limited, Reason: "it is a lot"}
	}
	unknown := autoscale.Outcome{Reason: "an instance does not answer"}
	cluster := &v1alpha1.RedisCluster{}
	for i, look := range []struct {
		outcome autoscale.Outcome
		is      metav1.ConditionStatus
		reason  string
		message string
	}{
		{unknown, metav1.ConditionUnknown, v1alpha1.ReasonAutoscaleUnknown, "an instance does not answer"},
		{known(true), metav1.ConditionTrue, v1alpha1.ReasonAutoscaleTooMany, "it is a lot"},
		{unknown, metav1.ConditionUnknown, v1alpha1.ReasonAutoscaleTooManyBefore, "an instance does not answer"},
		{unknown, metav1.ConditionUnknown, v1alpha1.ReasonAutoscaleTooManyBefore, "an instance does not answer"},
		{known(true), metav1.ConditionTrue, v1alpha1.ReasonAutoscaleTooMany, "it is a lot"},
		{unknown, metav1.ConditionUnknown, v1alpha1.ReasonAutoscaleTooManyBefore, "an instance does not answer"},
		{known(false), metav1.ConditionFalse, v1alpha1.ReasonAutoscaleWithin, ""},
		{unknown, metav1.ConditionUnknown, v1alpha1.ReasonAutoscaleUnknown, "an instance does not answer"},
	} {
		status := cluster.Status.DeepCopy()
		autoscaled(cluster, status, Reconciliation{Decision: plan.Decision{Step: plan.None{}}, Autoscaling: &Autoscaling{
			Shards: 3, Outcome: look.outcome}}, time.Time{})
		cluster.Status = *status
		c := meta.FindStatusCondition(status.Conditions, v1alpha1.ConditionAutoscalingLimited)
		if c == nil || c.Status != look.is || c.Reason != look.reason || c.Message != look.message {
			t.Errorf("look %d: %+v", i, c)
		}
	}
}
