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
	asked := cluster.Spec.Hibernate
	if len(p.Decision.Hibernated) == 0 && !asked {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionHibernated)
		return
	}
	holds, why := Asleep(p), needed(p.Decision.Step).Why()
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

// Asleep reports whether a cluster is hibernated, whatever is to be done about it, and also while it is paused.
func Asleep(p Reconciliation) bool { return len(p.Decision.Hibernated) > 0 && nothingRuns(p) }

// dormant reports whether instances are not there because they are not to be, or not yet again.
func dormant(p Reconciliation) bool {
	s := p.Decision.Situation
	return s == plan.Hibernating || s == plan.Hibernated || s == plan.Waking || Asleep(p)
}

// archiveSleeps is the condition Archiving of a cluster of which nothing is written, since nothing runs.
func archiveSleeps() metav1.Condition {
	return conditions.Condition(v1alpha1.ConditionArchiving, metav1.ConditionFalse, v1alpha1.ReasonArchiveHibernated,
		"nothing is written while the cluster is hibernated; the archive goes on when it is awake")
}
