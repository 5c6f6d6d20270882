// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// stuck is a cluster of which one instance has a new template and does not start with it.
func stuck(cluster *v1alpha1.RedisCluster) *snapshot.Snapshot {
	s := healthy()
	for i := range s.Instances {
		s.Shards[i].UpdateRevision, s.Instances[i].Revision = "new", "old"
	}
	in := &s.Instances[1]
	in.Revision, in.Redis, in.Failing, in.Ready, in.Waiting = "new", nil, true, false, "container redis: ImagePullBackOff"
	remembered(s, cluster)
	return s
}

// remembered is what observe takes from the status.
func remembered(s *snapshot.Snapshot, cluster *v1alpha1.RedisCluster) {
	if r := cluster.Status.Rollout; r != nil {
		s.Rolling = true
		if cluster.Status.ObservedGeneration == cluster.Generation {
			s.RolledAt = r.LastProgressTime.Time
		}
	}
}

// A rollout that makes no progress fails once, says so until it does, and a change of the spec gives it its time again.
func TestRolloutTimesOut(t *testing.T) {
	c := cluster()
	limit := func(d *plan.Desired) { d.UpgradeTimeout = 10 * time.Minute }
	reconciliation := func(at time.Duration, observe func(*v1alpha1.RedisCluster) *snapshot.Snapshot, phase v1alpha1.Phase, says string) {
		t.Helper()
		s, d := observe(c), plan.Desired{Topology: v1alpha1.Topology{1, 1, 1}, HasFinalizer: true}
		limit(&d)
		c.Status = Compute(c, Reconciliation{Snapshot: s, Decision: plan.ShapeOf(d, s, now.Add(at)).Next(plan.Pending{})}, now.Add(at))
		if c.Status.Phase != phase || !strings.Contains(c.Status.Reason, says) {
			t.Errorf("after %s: phase %s, reason %q; want %s and %q", at, c.Status.Phase, c.Status.Reason, phase, says)
		}
	}
	const overdue = "the rollout has made no progress for 10m0s: c-1-0: container redis: ImagePullBackOff"
	reconciliation(0, stuck, v1alpha1.PhaseUpgrading, "ImagePullBackOff")
	reconciliation(9*time.Minute, stuck, v1alpha1.PhaseUpgrading, "ImagePullBackOff")
	for _, at := range []time.Duration{11 * time.Minute, 12 * time.Minute, time.Hour} {
		reconciliation(at, stuck, v1alpha1.PhaseFailed, overdue)
	}
	progressing := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionProgressing)
	if progressing.Status != metav1.ConditionFalse || progressing.Reason != v1alpha1.ReasonTimedOut || progressing.Message != overdue {
		t.Errorf("Progressing is %+v", progressing)
	}

	c.Generation++
	reconciliation(61*time.Minute, stuck, v1alpha1.PhaseUpgrading, "ImagePullBackOff")
	reconciliation(70*time.Minute, stuck, v1alpha1.PhaseUpgrading, "ImagePullBackOff")
	reconciliation(72*time.Minute, func(c *v1alpha1.RedisCluster) *snapshot.Snapshot { s := healthy(); remembered(s, c); return s },
		v1alpha1.PhaseRunning,
		"")
	if c.Status.Rollout != nil {
		t.Errorf("rollout is %+v after the end", c.Status.Rollout)
	}
}

// Time counts from the last progress, not from the beginning: many instances take long.
func TestRolloutProgressCounts(t *testing.T) {
	c := cluster()
	for i, updated := range []int32{0, 0, 1, 1, 0, 0} {
		c.Status.Rollout = rollout(c, &plan.Rollout{Updated: updated, Total: 3}, now.Add(time.Duration(i)*time.Minute))
		c.Status.ObservedGeneration = c.Generation
	}
	if at := c.Status.Rollout.LastProgressTime; !at.Time.Equal(now.Add(2 * time.Minute)) {
		t.Errorf("the last progress was at %s", at)
	}
}
