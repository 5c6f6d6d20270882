// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What is asked for now, what the user's ConfigMap asks for and what was asked for before is
// what instances are asked about.
func TestSettingNames(t *testing.T) {
	c := cluster()
	c.Spec.Config = map[string]string{"hz": "20", "port": "1"}
	c.Status.Settings = []v1alpha1.SettingStatus{{Name: "save", Value: "60 1"}, {Name: "hz", Value: "10"}}
	names := settingNames(c, snapshot.UserConfig{Settings: map[string]string{"replica-priority": "7"}})
	for name, want := range map[string]bool{"hz": true, "replica-priority": true, "save": true, "appendonly": true, "maxmemory": false} {
		if slices.Contains(names, name) != want {
			t.Errorf("%s is asked for: %t, want %t", name, !want, want)
		}
	}
	if !slices.IsSorted(names) || len(slices.Compact(slices.Clone(names))) != len(names) {
		t.Errorf("names %v", names)
	}
}

func TestRefusalsAreForgotten(t *testing.T) {
	c := cluster()
	for _, age := range []time.Duration{time.Minute, refusalAge} {
		c.Status.RefusedSettings =
			append(c.Status.RefusedSettings, v1alpha1.RefusedSetting{Name: age.String(), Value: "1", Engine: "redis 7.0.15", Message: "no",
				Time: metav1.Time{Time: now.Add(-age)}})
	}
	want := []snapshot.Refusal{{Name: "1m0s", Value: "1", Engine: "redis 7.0.15", Message: "no", At: now.Add(-time.Minute)}}
	if diff := cmp.Diff(want, refusals(c, now)); diff != "" {
		t.Errorf("refusals (-want +got):\n%s", diff)
	}
}

// A value in other words counts as the value until it is shown in yet others.
func TestNormalizedValues(t *testing.T) {
	var m Memory
	m.NoteNormalized("hz", "501", "500")
	seen := func(shown string) string {
		s := &snapshot.Snapshot{Instances: []snapshot.Instance{{Redis: &snapshot.Redis{Settings: map[string]string{"hz": shown}}}, {}}}
		m.putGiven(s)
		return s.Instances[0].Redis.Settings["hz"]
	}
	if seen("500") != "501" || seen("10") != "10" {
		t.Errorf("500 is %s, 10 is %s", seen("500"), seen("10"))
	}
	m.NoteNormalized("hz", "502", "500")
	if seen("500") != "502" {
		t.Errorf("500 is %s", seen("500"))
	}
}

func TestTerminationMessage(t *testing.T) {
	ended := func(code int32) *corev1.ContainerStateTerminated {
		return &corev1.ContainerStateTerminated{ExitCode: code, Message: "words"}
	}
	for name, tc := range map[string]struct {
		status corev1.ContainerStatus
		want   string
	}{
		"runs":            {corev1.ContainerStatus{Name: "redis"}, ""},
		"ended":           {corev1.ContainerStatus{Name: "redis", State: corev1.ContainerState{Terminated: ended(1)}}, "words"},
		"waits":           {corev1.ContainerStatus{Name: "redis", LastTerminationState: corev1.ContainerState{Terminated: ended(1)}}, "words"},
		"ended well":      {corev1.ContainerStatus{Name: "redis", LastTerminationState: corev1.ContainerState{Terminated: ended(0)}}, ""},
		"not Redis ended": {corev1.ContainerStatus{Name: "exporter", LastTerminationState: corev1.ContainerState{Terminated: ended(1)}}, ""},
	} {
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{tc.status}}}
		if got := terminationMessage(pod); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
