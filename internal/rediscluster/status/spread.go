// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// mastersSpread reports whether the loss of one node or zone leaves a majority of masters. What was
// said before stays while a rollout makes masters change places, and to the end.
func mastersSpread(before []metav1.Condition, d plan.Decision) metav1.Condition {
	if was := meta.FindStatusCondition(before, v1alpha1.ConditionMastersSpread); was != nil &&
		(d.Situation == plan.RollingOut || d.Situation == plan.Deleting) {
		return *was
	}
	m := d.Spread.Majority
	switch {
	case !d.Spread.Known:
		return conditions.Condition(v1alpha1.ConditionMastersSpread, metav1.ConditionUnknown, "NotKnown",
			"not every slot is owned by a master that answers")
	case d.Spread.Few:
		return conditions.Condition(v1alpha1.ConditionMastersSpread, metav1.ConditionTrue, "FewMasters",
			"fewer than three masters elect nobody, wherever they run: the operator appoints the successor of one that is lost")
	case m == nil:
		return conditions.Condition(v1alpha1.ConditionMastersSpread, metav1.ConditionTrue, "Spread", "")
	}
	kind, reason := "node", "NotEnoughNodes"
	if m.Zone {
		kind, reason = "zone", "NotEnoughZones"
	}
	remedy := "replicas elsewhere take over, one at a time"
	switch {
	case m.Places < m.Needed:
		remedy = fmt.Sprintf(
			"instances answer on %d %ss, and %d masters need %d: add nodes, and delete pods of instances, one at a time, to have them scheduled there", m.Places, kind, m.All, m.Needed)
		if m.Zone {
			remedy = fmt.Sprintf(
				"instances answer in %d zones, and %d masters need %d: add nodes in other zones, and delete pods of instances, one at a time, to have them scheduled there", m.Places, m.All, m.Needed)
		}
	case !m.Replicas:
		reason, remedy = "NoReplicaElsewhere",
			fmt.Sprintf(
				"no replica on another %s would make it better: add replicas, or delete pods of replicas, one at a time, to have them scheduled elsewhere", kind)
	case !d.Spread.Wanted:
		reason, remedy = "Disabled", "spec.spreadMasters is false: set it to true to have replicas elsewhere take over"
	default:
		reason = "Concentrated"
	}
	return conditions.Condition(v1alpha1.ConditionMastersSpread, metav1.ConditionFalse, reason,
		fmt.Sprintf("%s %s runs %d of %d masters, and without them the others cannot elect: %s", kind, m.Place, m.Masters, m.All, remedy))
}
