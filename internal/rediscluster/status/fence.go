// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// mostFences is how many instances are named that are fenced, or are to be.
const mostFences = 10

// fenced writes the condition Fenced: which instances are left alone, and why others are not.
func fenced(cluster *v1alpha1.RedisCluster, status *v1alpha1.RedisClusterStatus, p Reconciliation, now time.Time) {
	d := p.Decision
	if d.Situation == plan.Deleting {
		return // what was said stays, to the end
	}
	if len(d.Fences) == 0 && d.FenceProblem == "" {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionFenced)
		return
	}
	var alone, waiting []string
	for _, fence := range d.Fences {
		if fence.InForce {
			alone = append(alone, fence.Pod)
		} else {
			waiting = append(waiting, fmt.Sprintf("%s is not fenced yet: %s", fence.Pod, fence.Waits))
		}
	}
	reason, said := v1alpha1.ReasonFenced, []string(nil)
	if len(alone) > 0 {
		said = append(said, fmt.Sprintf("the operator leaves alone %s until the annotation %s does not name them any more",
			strings.Join(cutList(alone), ", "), v1alpha1.AnnotationFenced))
	}
	said = append(said, cutList(waiting)...)
	if d.FenceProblem != "" {
		said = append(said, d.FenceProblem)
	}
	switch {
	case len(alone) == 0 && len(waiting) == 0:
		reason = v1alpha1.ReasonFenceUnknown
	case len(alone) == 0:
		reason = v1alpha1.ReasonFenceWaits
	}
	if d.Situation == plan.Paused && len(waiting) > 0 {
		said = append(said, "spec.pause is true: nothing is changed")
	}
	status.Conditions = conditions.Set(status.Conditions, now, cluster.Generation, conditions.Condition(v1alpha1.ConditionFenced,
		conditions.Status(len(alone) > 0), reason, cut(strings.Join(said, "; "))))
}

// cutList is a list that a message can take.
func cutList(list []string) []string {
	if more := len(list) - mostFences; more > 0 {
		return append(slices.Clone(list[:mostFences]), fmt.Sprintf("and %d more", more))
	}
	return list
}
