// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/anomaly"
)

// mostAnomalies is how many of them are told.
const mostAnomalies = 10

// anomalous tells what is not healthy. What was found before an operator began stays until that one has seen enough.
func anomalous(before []metav1.Condition, p Reconciliation) metav1.Condition {
	was := meta.FindStatusCondition(before, v1alpha1.ConditionAnomalous)
	isNew := func(a anomaly.Anomaly) bool { return was == nil || !strings.Contains(was.Message, what(a)) }
	if was != nil && was.Status == metav1.ConditionTrue && p.FewLooks && !slices.ContainsFunc(p.Anomalies, isNew) && !dormant(p) {
		return *was
	}
	if len(p.Anomalies) == 0 {
		return conditions.Condition(v1alpha1.ConditionAnomalous, metav1.ConditionFalse, "NothingFound", "")
	}
	reason := p.Anomalies[0].Reason
	var told []string
	for _, a := range p.Anomalies {
		if a.Reason != reason {
			reason = "Several"
		}
		told = append(told, what(a)+a.Message)
	}
	if more := len(told) - mostAnomalies; more > 0 {
		told = append(told[:mostAnomalies], fmt.Sprintf("and %d more", more))
	}
	return conditions.Condition(v1alpha1.ConditionAnomalous, metav1.ConditionTrue, reason, strings.Join(told, "; "))
}

func what(a anomaly.Anomaly) string { return a.Of + ": " + a.Reason + ": " }
