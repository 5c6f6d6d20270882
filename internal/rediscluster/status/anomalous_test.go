// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/anomaly"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// The condition says what is not healthy, and goes on saying what a former operator found until this one has seen enough.
func TestAnomalous(t *testing.T) {
	lag := anomaly.Anomaly{Reason: anomaly.ReplicaBehind, Of: "c-0-1", Message: "far behind"}
	fork := anomaly.Anomaly{Reason: anomaly.SlowFork, Of: "c-1-0", Message: "slow"}
	was := []metav1.Condition{{Type: v1alpha1.ConditionAnomalous, Status: metav1.ConditionTrue, Reason: "SlowFork", Message: "as it was"}}
	for name, tt := range map[string]struct {
		before    []metav1.Condition
		found     []anomaly.Anomaly
		few       bool
		situation plan.Situation
		want      string
	}{
		"nothing": {want: "False NothingFound "},
		"one":     {found: []anomaly.Anomaly{lag}, want: "True ReplicaBehind c-0-1: ReplicaBehind: far behind"},
		"two": {found: []anomaly.Anomaly{lag, fork},
			want: "True Several c-0-1: ReplicaBehind: far behind; c-1-0: SlowFork: slow"},
		"over":             {before: was, want: "False NothingFound "},
		"too early to say": {before: was, few: true, want: "True SlowFork as it was"},
		"early, and a part of it is found again": {before: []metav1.Condition{{Type: v1alpha1.ConditionAnomalous, Status: metav1.ConditionTrue,
			Reason: "Several", Message: "c-0-1: ReplicaBehind: far behind; c-1-0: SlowFork: slow"}}, few: true, found: []anomaly.Anomaly{fork},
			want: "True Several c-0-1: ReplicaBehind: far behind; c-1-0: SlowFork: slow"},
		"early, and something is found": {before: was, few: true, found: []anomaly.Anomaly{lag},
			want: "True ReplicaBehind c-0-1: ReplicaBehind: far behind"},
		"nothing runs": {before: was, few: true, situation: plan.Hibernated, want: "False NothingFound "},
	} {
		c := anomalous(tt.before, Reconciliation{Anomalies: tt.found, FewLooks: tt.few, Decision: plan.Decision{Situation: tt.situation}})
		if got := string(c.Status) + " " + c.Reason + " " + c.Message; got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
	many := anomalous(nil, Reconciliation{Anomalies: make([]anomaly.Anomaly, 1000)})
	if !strings.HasSuffix(many.Message, "; and 990 more") {
		t.Errorf("%q", many.Message)
	}
}
