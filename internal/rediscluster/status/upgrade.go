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

// Upgrade is what this operator makes the instances by.
type Upgrade struct {
	// Makes has no Template where that is not known.
	Makes v1alpha1.Applied
}

// Held reports whether a change that only the operator made waits for the cluster's turn, if there is one: the spec and the ConfigMap are
// what the instances were made by, and the operator is another one, by which the cluster had no turn. Where nothing is recorded yet,
// that is of a cluster which was not being changed.
func (u *Upgrade) Held(cluster *v1alpha1.RedisCluster) bool {
	if u == nil {
		return false
	}
	was, known := cluster.Status.Upgrade.Made()
	if !known {
		return cluster.Status.ObservedGeneration == cluster.Generation && cluster.Status.Rollout == nil
	}
	return was.Revision != u.Makes.Revision && cluster.Status.Upgrade.Target != u.Makes.Revision && was.Generation == u.Makes.Generation &&
		was.Config == u.Makes.Config
}

// upgraded writes down what the instances are made by when a cluster is as it is to be, and its turn when that comes. What a person changed
// in between is recorded then, too.
func upgraded(cluster *v1alpha1.RedisCluster, status *v1alpha1.RedisClusterStatus, p Reconciliation, now time.Time) {
	if p.Upgrade == nil {
		status.Upgrade = nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionUpgraded)
		return
	}
	makes := p.Upgrade.Makes
	was, known := cluster.Status.Upgrade.Made()
	is := cluster.Status.Upgrade.DeepCopy()
	if is == nil {
		is = &v1alpha1.UpgradeStatus{}
	}
	step := p.Decision.Step
	turn, turns := step.(plan.TakeTurn)
	if turns && !known { // from here on a change of the spec is known as one
		was = v1alpha1.Applied{Generation: makes.Generation, Config: makes.Config}
		is.Applied = was.String()
	}
	done := plan.Is[plan.None](step) && p.Decision.Situation == plan.Steady || plan.Is[plan.RolloutWait](step)
	switch {
	case p.Err != nil:
	case done:
		if makes.Template == "" && was.Revision == makes.Revision {
			makes.Template = was.Template
		}
		if is.Applied = makes.String(); is.Target != makes.Revision {
			is.Target, is.Wave, is.TurnTime = "", 0, nil
		}
	case turns && turn.Wave > 0:
		is.Target, is.Wave, is.TurnTime = makes.Revision, int32(min(turn.Wave, 1<<30)), at(now)
	}
	if *is != (v1alpha1.UpgradeStatus{}) {
		status.Upgrade = is
	}
	if c := conditionUpgraded(status.Upgrade, p); c != nil {
		status.Conditions = conditions.Set(status.Conditions, now, cluster.Generation, *c)
	}
}

// conditionUpgraded is ConditionUpgraded; nil: it stays as it is.
func conditionUpgraded(is *v1alpha1.UpgradeStatus, p Reconciliation) *metav1.Condition {
	made, known := is.Made()
	if !known {
		return nil
	}
	revision := p.Upgrade.Makes.Revision
	turn, turns := p.Decision.Step.(plan.TakeTurn)
	c := metav1.Condition{}
	switch {
	case made.Revision == revision:
		c = conditions.Condition(v1alpha1.ConditionUpgraded, metav1.ConditionTrue, v1alpha1.ReasonUpgradeDone, "")
	case is.Target == revision:
		c = conditions.Condition(v1alpha1.ConditionUpgraded, metav1.ConditionFalse, v1alpha1.ReasonUpgradeUnderWay,
			"it is the turn of the cluster: instances restart one after the other")
	case turns:
		c = conditions.Condition(v1alpha1.ConditionUpgraded, metav1.ConditionFalse,
			pick(turn.Stopped, v1alpha1.ReasonUpgradeStopped, v1alpha1.ReasonUpgradeWaits), cut(turn.Why()))
	default:
		return nil
	}
	return &c
}
