// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// TestConfigured: a refused setting is a matter for a person, and the cluster that serves says
// that it serves all the same.
func TestConfigured(t *testing.T) {
	s := healthy()
	for i := range s.Instances {
		s.Instances[i].Redis.Settings = map[string]string{"hz": "10", "maxmemory-policy": "noeviction"}
	}
	s.Settings = map[string]string{"hz": "10"}
	want := func(p Reconciliation, status metav1.ConditionStatus, reason, message string,
		stalled metav1.ConditionStatus) v1alpha1.RedisClusterStatus {
		t.Helper()
		got := Compute(cluster(), p, now)
		c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionConfigured)
		if c.Status != status || c.Reason != reason || !strings.Contains(c.Message, message) {
			t.Errorf("Configured %s, %s: %s", c.Status, c.Reason, c.Message)
		}
		if c := meta.FindStatusCondition(got.Conditions, v1alpha1.ConditionStalled); c.Status != stalled ||
			!strings.Contains(c.Message, pick(stalled == metav1.ConditionTrue, message, "")) {
			t.Errorf("Stalled %s, %s: %s", c.Status, c.Reason, c.Message)
		}
		if !meta.IsStatusConditionTrue(got.Conditions, v1alpha1.ConditionReady) || got.Phase != v1alpha1.PhaseRunning {
			t.Errorf("phase %s, conditions %+v", got.Phase, got.Conditions)
		}
		return got
	}
	ask := func(settings ...redisconf.Setting) func(*plan.Desired) {
		return func(d *plan.Desired) { d.Settings = append([]redisconf.Setting{}, settings...) }
	}
	hz := redisconf.Setting{Name: "hz", Args: []string{"10"}, Source: redisconf.FromSpec}
	got := want(Reconciliation{Snapshot: s, Decision: decide(s, ask(hz))}, metav1.ConditionTrue, "InForce", "", metav1.ConditionFalse)
	if diff := cmp.Diff([]v1alpha1.SettingStatus{{Name: "hz", Value: "10"}}, got.Settings); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	want(Reconciliation{Snapshot: s, Decision: decide(s, nil)}, metav1.ConditionTrue, "InForce", "", metav1.ConditionFalse)

	hz.Args = []string{"20"}
	got = want(Reconciliation{Snapshot: s, Decision: decide(s, ask(hz))}, metav1.ConditionFalse, "Changing", "hz (Live)",
		metav1.ConditionFalse)
	if diff := cmp.Diff([]v1alpha1.SettingChange{
		{Name: "hz", From: "10", To: "20", ApplyMethod: "Live", Instances: []string{"c-0-0", "c-1-0", "c-2-0"}}}, got.Plan.Settings); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}

	// The reconciliation in which it is refused notes that, and the next one tells.
	policy := redisconf.Setting{Name: "maxmemory-policy", Args: []string{"best"}, Source: redisconf.FromConfigMap}
	refusal := snapshot.Refusal{Name: "maxmemory-policy", Value: "best", Engine: "redis 7.0.15", Message: "no, thanks",
		At: now.Add(500 * time.Millisecond)}
	got = want(Reconciliation{Snapshot: s, Decision: decide(s, ask(policy)), Refusals: []snapshot.Refusal{refusal, refusal}},
		metav1.ConditionFalse,
		"Changing", "", metav1.ConditionFalse)
	if diff := cmp.Diff([]v1alpha1.RefusedSetting{
		{Name: "maxmemory-policy", Value: "best", Engine: "redis 7.0.15", Message: "no, thanks", Time: metav1.Time{Time: now}}},
		got.RefusedSettings); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	s.Refusals = []snapshot.Refusal{refusal}
	got = want(Reconciliation{Snapshot: s, Decision: decide(s, ask(policy))}, metav1.ConditionFalse, "SettingRefused",
		`spec.pod[0].configmap: maxmemory-policy: redis 7.0.15 refuses the value "best": no, thanks`, metav1.ConditionTrue)
	if !strings.Contains(got.Reason, "no, thanks") {
		t.Errorf("reason %q", got.Reason)
	}
}
