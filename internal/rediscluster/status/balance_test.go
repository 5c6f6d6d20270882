// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"math"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/balance"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What moves is written down with the step that moves it, for an hour, whatever masters say that it takes.
func TestBalanced(t *testing.T) {
	now := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	moves := plan.RecordGoal{ByLoad: &snapshot.Goal{}}
	for name, tt := range map[string]struct {
		step      plan.Step
		err       error
		bytes     float64
		moved     int
		megabytes int64
	}{
		"moves":          {moves, nil, 1.5 * (1 << 20), 2, 2},
		"not done":       {moves, errors.New("no"), 1, 1, 0},
		"paused":         {plan.Hold{Next: moves}, nil, 1, 1, 0},
		"of the spec":    {plan.RecordGoal{}, nil, 1, 1, 0},
		"something else": {plan.None{}, nil, 1, 1, 0},
		"nonsense":       {moves, nil, math.Inf(1), 2, 1 << 53},
	} {
		t.Run(name, func(t *testing.T) {
			moved := func(before time.Duration) v1alpha1.BalanceMoved {
				return v1alpha1.BalanceMoved{Time: metav1.NewTime(now.Add(-before)), Slots: 5, Megabytes: 3}
			}
			cluster := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Balance: &v1alpha1.BalanceStatus{
				Moved: []v1alpha1.BalanceMoved{moved(time.Hour), moved(59 * time.Minute)}}}}
			is := balanced(cluster, Reconciliation{Decision: plan.Decision{Step: tt.step}, Err: tt.err, Balancing: &balance.Outcome{Known: true,
				Measure: balance.Memory, Shard: 1, Percent: 150, Since: now, Slots: []balance.Slot{{Slot: 7, Shard: 1, Measure: balance.Memory}},
				Count: 9, Bytes: tt.bytes, Reason: "a lot"}}, now)
			if len(is.Moved) != tt.moved || *is.HottestShard != 1 || is.Percent != 150 || is.HotSlots[0].Slot != 7 || is.Reason != "a lot" {
				t.Fatalf("%+v", is)
			}
			if last := is.Moved[len(is.Moved)-1]; tt.moved == 2 && (last.Slots != 9 || last.Megabytes != tt.megabytes || is.Since != nil) {
				t.Errorf("%+v", last)
			}
		})
	}
	was := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{Balance: &v1alpha1.BalanceStatus{}}}
	if balanced(was, Reconciliation{}, now) != nil {
		t.Error("it stays without spec.balance")
	}
}
