// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// The condition Fenced names who is left alone and why others are not; it goes with the annotation.
func TestFenced(t *testing.T) {
	alone, waits := plan.Fence{Pod: "c-0-1", InForce: true}, plan.Fence{Pod: "c-1-0", Waits: "it is the master of shard 1: no"}
	var many []plan.Fence
	for i := range 300 {
		many = append(many, plan.Fence{Pod: fmt.Sprintf("c-%d-1", i), InForce: true}, plan.Fence{Pod: fmt.Sprintf("c-%d-0", i), Waits: "no"})
	}
	for name, tt := range map[string]struct {
		fences    []plan.Fence
		problem   string
		situation plan.Situation
		status    metav1.ConditionStatus
		reason    string
		messages  []string
	}{
		"nobody": {},
		"one": {fences: []plan.Fence{alone}, status: "True", reason: "Fenced",
			messages: []string{"the operator leaves alone c-0-1 until the annotation redis.middleware.hc.cn/fenced does not name them any more"}},
		"one of two": {fences: []plan.Fence{alone, waits}, status: "True", reason: "Fenced",
			messages: []string{"c-0-1", "c-1-0 is not fenced yet: it is the master of shard 1: no"}},
		"none yet": {fences: []plan.Fence{waits}, status: "False", reason: "FenceWaits", messages: []string{"c-1-0 is not fenced yet"}},
		"paused": {fences: []plan.Fence{waits}, situation: plan.Paused, status: "False", reason: "FenceWaits",
			messages: []string{"spec.pause is true"}},
		"of others": {problem: "1 names", status: "False", reason: "UnknownInstance", messages: []string{"1 names"}},
		"and of others": {fences: []plan.Fence{alone}, problem: "1 names", status: "True", reason: "Fenced",
			messages: []string{"leaves alone c-0-1", "1 names"}},
		"many": {fences: many, status: "True", reason: "Fenced", messages: []string{"c-9-1, and 290 more until", "c-9-0 is not", "and 290 more"}},
	} {
		c := cluster()
		p := Reconciliation{Snapshot: healthy(), Decision: plan.Decision{Situation: tt.situation, Step: plan.None{}, Fences: tt.fences,
			FenceProblem: tt.problem}}
		c.Status = Compute(c, p, now)
		got := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionFenced)
		if (got == nil) != (tt.status == "") {
			t.Fatalf("%s: %+v", name, got)
		}
		for _, message := range tt.messages {
			if got.Status != tt.status || got.Reason != tt.reason || !strings.Contains(got.Message, message) || len(got.Message) > 1100 {
				t.Errorf("%s: %+v", name, got)
			}
		}
		p.Decision = plan.Decision{Situation: plan.Deleting, Step: plan.Wait{}}
		if now := Compute(c, p, now); (meta.FindStatusCondition(now.Conditions, v1alpha1.ConditionFenced) == nil) != (got == nil) {
			t.Errorf("%s: it is not said to the end", name)
		}
		p.Decision = plan.Decision{Step: plan.None{}}
		if now := Compute(c, p, now); meta.FindStatusCondition(now.Conditions, v1alpha1.ConditionFenced) != nil {
			t.Errorf("%s: it stays without the annotation", name)
		}
	}
}
