// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// hibernated writes the condition Hibernated, with what that, or the start of the cluster, waits for.
func hibernated(cluster *v1alpha1.RedisCluster, status *v1alpha1.RedisClusterStatus, p Reconciliation, now time.Time) {
	status.HibernatedInstances = p.Decision.Hibernated
	asked, none := cluster.Spec.Hibernate, len(p.Decision.Hibernated) == 0
	if none && !asked {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionHibernated)
		return
	}
	holds, why := !none && nothingRuns(p), needed(p.Decision.Step).Why()
	reason := pick(asked, pick(p.Decision.Situation == plan.Hibernating, "Stopping", "Waiting"), "Waking")
	status.Conditions = conditions.Set(status.Conditions, now, cluster.Generation, conditions.Condition(v1alpha1.ConditionHibernated,
		conditions.Status(holds), pick(holds, "Hibernated", reason), cut(why)))
}

// nothingRuns reports whether no StatefulSet asks for an instance, and none is there.
func nothingRuns(p Reconciliation) bool {
	for _, shard := range p.Snapshot.Shards {
		if shard.Replicas > 0 {
			return false
		}
	}
	return len(p.Snapshot.Instances) == 0
}

// dormant reports whether instances are not there because they are not to be, or not yet again.
func dormant(d plan.Decision) bool {
	return d.Situation == plan.Hibernating || d.Situation == plan.Hibernated || d.Situation == plan.Waking
}

// archiveSleeps is the condition Archiving of a cluster of which nothing is written, since nothing runs.
func archiveSleeps() metav1.Condition {
	return conditions.Condition(v1alpha1.ConditionArchiving, metav1.ConditionFalse, v1alpha1.ReasonArchiveHibernated,
		"nothing is written while the cluster is hibernated; the archive goes on when it is awake")
}
