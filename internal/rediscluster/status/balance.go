// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"math"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/balance"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// mostMoved bounds how many moves of an hour are written down: there are no more than six, each after ten minutes.
const mostMoved = 12

// balanced is how evenly shards bear the load, and what has moved because of it; nil without spec.balance.
func balanced(cluster *v1alpha1.RedisCluster, p Reconciliation, now time.Time) *v1alpha1.BalanceStatus {
	o := p.Balancing
	if o == nil {
		return nil
	}
	is := &v1alpha1.BalanceStatus{Measure: string(o.Measure), Percent: int32(o.Percent), //nolint:gosec // bounded by balance.percent
		Since: at(o.Since), NotBefore: at(o.NotBefore), Reason: cut(o.Reason)}
	if o.Measure != "" {
		is.HottestShard = new(number(o.Shard))
	}
	for _, slot := range o.Slots {
		is.HotSlots = append(is.HotSlots, v1alpha1.HotSlot{Slot: int32(slot.Slot), Shard: number(slot.Shard), Measure: string(slot.Measure),
			Percent: int32(slot.Percent)}) //nolint:gosec // bounded by balance.percent
	}
	if was := cluster.Status.Balance; was != nil {
		is.Moved = slices.DeleteFunc(slices.Clone(was.Moved), func(m v1alpha1.BalanceMoved) bool {
			return len(balance.Within([]balance.Moved{{At: m.Time.Time}}, now)) == 0
		})
	}
	if step, records := p.Decision.Step.(plan.RecordGoal); records && step.ByLoad != nil && p.Err == nil {
		is.Moved = append(is.Moved, v1alpha1.BalanceMoved{Time: metav1.NewTime(now.Truncate(timeUnit)), Slots: number(o.Count),
			Megabytes: int64(math.Ceil(min(o.Bytes/(1<<20), mostPercent)))})
		is.Moved = is.Moved[max(0, len(is.Moved)-mostMoved):]
		is.Since, is.NotBefore = nil, nil
	}
	if len(is.Moved) == 0 {
		is.Moved = nil
	}
	return is
}
