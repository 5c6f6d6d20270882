// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeable

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What of a status holds an upgrade of the operator up, for every phase.
func TestActivityOf(t *testing.T) {
	moving := &v1alpha1.MigrationStatus{FromShards: 3, ToShards: 4, SlotsLeft: 4096}
	tests := map[string]struct {
		status  v1alpha1.RedisClusterStatus
		paused  bool
		deleted bool
		want    Work
		says    string
	}{
		"new":          {want: NoWork, says: "shop/cache is at rest"},
		"none":         {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseNone}, want: NoWork, says: "shop/cache is at rest"},
		"being formed": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseCreating}, want: NoWork, says: "shop/cache is at rest"},
		"running":      {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseRunning}, want: NoWork, says: "shop/cache is at rest"},
		"scaling": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseScaling}, want: Scaling,
			says: "shop/cache adds or removes instances"},
		"moving slots": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseScaling, Migration: moving}, want: MovingSlots,
			says: "shop/cache moves slots (from 3 to 4 shards)"},
		"rolling": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseUpgrading}, want: RollingOut,
			says: "shop/cache replaces instances by ones of a new template"},
		"failed": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseFailed}, want: NoWork, says: "shop/cache is at rest"},
		"failed while moving": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseFailed, Migration: moving}, want: NoWork,
			says: "shop/cache is at rest"},
		"paused while moving": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhasePaused, Migration: moving}, want: NoWork,
			says: "shop/cache is at rest"},
		"about to be paused": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseScaling, Migration: moving}, paused: true, want: NoWork,
			says: "shop/cache is at rest"},
		"deleted while moving": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseScaling, Migration: moving}, deleted: true,
			want: NoWork, says: "shop/cache is at rest"},
		"being deleted": {status: v1alpha1.RedisClusterStatus{Phase: v1alpha1.PhaseDeleting}, deleted: true, want: NoWork,
			says: "shop/cache is at rest"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}, Status: test.status}
			cluster.Spec.Pause = test.paused
			if test.deleted {
				cluster.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
			}
			got := ActivityOf(cluster)
			if got.Work != test.want || got.String() != test.says {
				t.Errorf("got  %q: %s\nwant %q: %s", got.Work, got, test.want, test.says)
			}
		})
	}
}

// Only what nears the end of the work is progress, and what the message says does not change with it.
func TestProgress(t *testing.T) {
	scaling := func(change func(*v1alpha1.RedisClusterStatus)) Activity {
		cluster := &v1alpha1.RedisCluster{Status: v1alpha1.RedisClusterStatus{
			Phase: v1alpha1.PhaseScaling, Replicas: 8, Instances: "7/8",
			Migration: &v1alpha1.MigrationStatus{FromShards: 3, ToShards: 4, SlotsLeft: 4096},
			Plan:      &v1alpha1.PlanStatus{Step: "MoveSlots", Reason: "4096 slots are to move"},
		}}
		change(&cluster.Status)
		return ActivityOf(cluster)
	}
	before := scaling(func(*v1alpha1.RedisClusterStatus) {})
	tests := map[string]struct {
		change func(*v1alpha1.RedisClusterStatus)
		want   bool
	}{
		"fewer slots left":   {func(s *v1alpha1.RedisClusterStatus) { s.Migration.SlotsLeft = 4095 }, true},
		"more keys moved":    {func(s *v1alpha1.RedisClusterStatus) { s.Migration.KeysMoved = 100 }, true},
		"another instance":   {func(s *v1alpha1.RedisClusterStatus) { s.Replicas = 9 }, true},
		"an instance ready":  {func(s *v1alpha1.RedisClusterStatus) { s.Instances = "8/8" }, false},
		"another error":      {func(s *v1alpha1.RedisClusterStatus) { s.Reason, s.Plan.Reason = "timeout", "timeout" }, false},
		"a later prediction": {func(s *v1alpha1.RedisClusterStatus) { s.Migration.EstimatedEndTime = &metav1.Time{} }, false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			after := scaling(test.change)
			if got := after != before; got != test.want {
				t.Errorf("it is progress: %v, want %v", got, test.want)
			}
			if before.String() != after.String() {
				t.Errorf("the message changed from %q to %q", before, after)
			}
		})
	}
}
