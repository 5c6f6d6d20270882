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

// on is the whole cluster with its masters on these nodes (a node may be followed by @ and its zone).
func on(nodes ...string) *snapshot.Snapshot {
	s := healthy()
	for i, node := range nodes {
		s.Instances[i].NodeName, s.Instances[i].Zone, _ = strings.Cut(node, "@")
	}
	return s
}

func TestMastersSpread(t *testing.T) {
	unreached := on("a", "b", "c")
	unreached.Instances[1].Redis, unreached.Instances[1].Error = nil, "i/o timeout"
	fresh := on("a", "b", "b")
	fresh.Formed = false
	elsewhere :=
		plan.Decision{
			Spread: plan.Spread{
				Known: true, Wanted: true, Majority: &plan.Majority{Place: "a", Masters: 2, All: 3, Places: 3, Needed: 3, Replicas: true}}}
	off := elsewhere
	off.Spread.Wanted = false
	for name, tt := range map[string]struct {
		decision plan.Decision
		status   metav1.ConditionStatus
		reason   string
		message  string
	}{
		"spread":       {decide(on("a", "b", "c"), nil), metav1.ConditionTrue, "Spread", ""},
		"about to be":  {elsewhere, metav1.ConditionFalse, "Concentrated", "node a runs 2 of 3 masters, and without them the others cannot elect: replicas elsewhere take over, one at a time"},
		"switched off": {off, metav1.ConditionFalse, "Disabled", "node a runs 2 of 3 masters, and without them the others cannot elect: spec.spreadMasters is false: set it to true to have replicas elsewhere take over"},
		"too few nodes": {decide(on("a", "b", "b"), nil), metav1.ConditionFalse, "NotEnoughNodes",
			"node b runs 2 of 3 masters, and without them the others cannot elect: instances answer on 2 nodes, and 3 masters need 3: add nodes, and delete pods of instances, one at a time, to have them scheduled there"},
		"as soon as it is formed": {decide(fresh, nil), metav1.ConditionFalse, "NotEnoughNodes",
			"node b runs 2 of 3 masters, and without them the others cannot elect: instances answer on 2 nodes, and 3 masters need 3: add nodes, and delete pods of instances, one at a time, to have them scheduled there"},
		"too few zones": {decide(on("a@x", "b@y", "c@y"), nil), metav1.ConditionFalse, "NotEnoughZones",
			"zone y runs 2 of 3 masters, and without them the others cannot elect: instances answer in 2 zones, and 3 masters need 3: add nodes in other zones, and delete pods of instances, one at a time, to have them scheduled there"},
		"no replica":     {plan.Decision{Spread: plan.Spread{Known: true, Wanted: true, Majority: &plan.Majority{Place: "a", Masters: 2, All: 3, Places: 3, Needed: 3}}}, metav1.ConditionFalse, "NoReplicaElsewhere", "node a runs 2 of 3 masters, and without them the others cannot elect: no replica on another node would make it better: add replicas, or delete pods of replicas, one at a time, to have them scheduled elsewhere"},
		"cannot be told": {decide(unreached, nil), metav1.ConditionUnknown, "NotKnown", "not every slot is owned by a master that answers"},
	} {
		t.Run(name, func(t *testing.T) {
			if tt.decision.Step == nil {
				tt.decision.Step = plan.None{}
			}
			got := meta.FindStatusCondition(Compute(cluster(), Reconciliation{Snapshot: on("a", "b", "c"), Decision: tt.decision}, now).Conditions,
				v1alpha1.ConditionMastersSpread)
			if got == nil || got.Status != tt.status || got.Reason != tt.reason || got.Message != tt.message || got.ObservedGeneration != 3 {
				t.Errorf("MastersSpread is %+v\nwant %s, %s: %s", got, tt.status, tt.reason, tt.message)
			}
		})
	}
}

// Masters change places while instances are restarted one after the other. Nobody is to be told of each of them.
func TestMastersSpreadStaysDuringARollout(t *testing.T) {
	c := cluster()
	c.Status = Compute(c, Reconciliation{Snapshot: on("a", "b", "c"), Decision: decide(on("a", "b", "c"), nil)}, now)
	old := on("a", "b", "b")
	old.Shards[0].UpdateRevision, old.Instances[0].Revision = "new", "old"
	c.Status = Compute(c, Reconciliation{Snapshot: old, Decision: decide(old, nil)}, now.Add(time.Minute))
	if got := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionMastersSpread); c.Status.Phase != v1alpha1.PhaseUpgrading ||
		got.Status != metav1.ConditionTrue || !got.LastTransitionTime.Time.Equal(now) {
		t.Errorf("phase %s, MastersSpread %+v", c.Status.Phase, got)
	}
	c.Status = Compute(c, Reconciliation{Snapshot: on("a", "b", "b"), Decision: decide(on("a", "b", "b"), nil)}, now.Add(2*time.Minute))
	if got := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionMastersSpread); got.Status != metav1.ConditionFalse {
		t.Errorf("afterwards MastersSpread is %+v", got)
	}
}
