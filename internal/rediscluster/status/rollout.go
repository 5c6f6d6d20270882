// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// rollout is how far the new template has come, and since when it has come no further; nil
// when no instance is to be restarted.
func rollout(cluster *v1alpha1.RedisCluster, r *plan.Rollout, now time.Time) *v1alpha1.RolloutStatus {
	if r == nil {
		return nil
	}
	status := &v1alpha1.RolloutStatus{Updated: r.Updated, Total: r.Total, LastProgressTime: metav1.NewTime(now.Truncate(timeUnit))}
	before := cluster.Status.Rollout
	if before != nil && status.Updated <= before.Updated && cluster.Status.ObservedGeneration == cluster.Generation {
		status.LastProgressTime = before.LastProgressTime
	}
	return status
}
