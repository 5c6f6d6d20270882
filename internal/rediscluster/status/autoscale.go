// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"math"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/autoscale"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// mostPercent is as much as is written down of what masters bore; what they say may be anything.
const mostPercent = 1 << 53

// Autoscaling is how the number of shards follows the load.
type Autoscaling struct {
	// Shards is how many there were to be in this reconciliation, Bounds how many there may be, Outcome what the load asks for.
	Shards  int
	Bounds  autoscale.Bounds
	Outcome autoscale.Outcome
}

// autoscaled writes what the load asks for, and how many shards there are to be from now on. Without spec.autoscale the number stays until
// the spec has one.
func autoscaled(cluster *v1alpha1.RedisCluster, status *v1alpha1.RedisClusterStatus, p Reconciliation, now time.Time) {
	a := p.Autoscaling
	if a == nil {
		if cluster.Spec.Autoscale == nil && cluster.Spec.Shards != nil {
			status.Autoscale = nil
			meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionAutoscalingLimited)
		}
		return
	}
	o := a.Outcome
	is := &v1alpha1.AutoscaleStatus{Shards: number(a.Shards), Measure: string(o.Measure), Since: at(o.Since), NotBefore: at(o.NotBefore),
		Reason: cut(o.Reason)}
	if b := a.Bounds; b.Window != "" {
		is.Window, is.MinShards, is.MaxShards = b.Window, b.Least, b.Most
	}
	if was := cluster.Status.Autoscale; was != nil {
		is.ScaledAt, is.Outgrown = was.ScaledAt, was.Outgrown.DeepCopy()
		if plan.Is[plan.Hold](p.Decision.Step) || Asleep(p) { // a window that is over before anything is done did nothing
			is.Shards = was.Shards
		}
	}
	if o.Known {
		is.Wanted = new(number(o.Wanted))
	}
	if o.Measure != "" {
		is.BusiestShard = new(number(o.Shard))
	}
	if step, sets := p.Decision.Step.(plan.SetShards); sets && p.Err == nil {
		is.Shards, is.ScaledAt, is.Since, is.NotBefore = number(step.To), at(now), nil, nil
		if out := o.Outgrown; out != nil {
			is.Outgrown = &v1alpha1.Outgrown{Shards: number(out.Shards), Measure: string(out.Measure),
				Percent: int64(min(math.Floor(100*out.Demand), mostPercent))}
		}
	}
	status.Autoscale = is
	reason, limited := v1alpha1.ReasonAutoscaleUnknown, metav1.ConditionUnknown
	switch was := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionAutoscalingLimited); {
	case o.Known:
		reason = pick(o.Limited, v1alpha1.ReasonAutoscaleTooMany, v1alpha1.ReasonAutoscaleWithin)
		limited = conditions.Status(o.Limited)
	case was != nil && WasLimited(was.Reason):
		reason = v1alpha1.ReasonAutoscaleTooManyBefore
	}
	status.Conditions = conditions.Set(status.Conditions, now, cluster.Generation, conditions.Condition(
		v1alpha1.ConditionAutoscalingLimited, limited, reason, pick(o.Limited || !o.Known, cut(o.Reason), "")))
}

// WasLimited reports whether the load asked for more shards than are allowed when it was known last, by the reason of the condition.
func WasLimited(reason string) bool {
	return reason == v1alpha1.ReasonAutoscaleTooMany || reason == v1alpha1.ReasonAutoscaleTooManyBefore
}

func number(shards int) int32 { return int32(shards) } //nolint:gosec // at most 500 shards

func at(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewTime(t.Truncate(timeUnit)))
}
