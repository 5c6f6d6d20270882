// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

var (
	t0 = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	t1 = t0.Add(time.Minute)
)

func TestSet(t *testing.T) {
	ready := Set(nil, t0, 1, Condition("Ready", metav1.ConditionFalse, "Starting", "0 of 1 pods"))

	same := Set(ready, t1, 2, Condition("Ready", metav1.ConditionFalse, "StillStarting", "0 of 2 pods"))
	if got := same[0]; !got.LastTransitionTime.Time.Equal(t0) || got.ObservedGeneration != 2 || got.Reason != "StillStarting" {
		t.Errorf("status did not change, so its time must not either, and the rest must: %+v", got)
	}
	flipped := Set(ready, t1, 2, Condition("Ready", metav1.ConditionTrue, "Started", ""))
	if got := flipped[0]; !got.LastTransitionTime.Time.Equal(t1) {
		t.Errorf("status changed at %v, got %v", t1, got.LastTransitionTime)
	}
	if ready[0].Reason != "Starting" {
		t.Error("the list that was passed must not change")
	}
	both := Set(ready, t1, 1, Condition("Progressing", metav1.ConditionTrue, "", ""))
	if len(both) != 2 || both[1].Reason != "Progressing" {
		t.Errorf("want a second condition whose reason is not empty, got %+v", both)
	}
	long := Set(nil, t0, 1, Condition("Ready", metav1.ConditionFalse, "X", strings.Repeat("x", 40000)))
	timeless := Set([]metav1.Condition{{Type: "Ready", Status: metav1.ConditionTrue}}, t1, 1,
		Condition("Ready", metav1.ConditionTrue, "Ready", ""))
	if got := timeless[0].LastTransitionTime; !got.Time.Equal(t1) {
		t.Errorf("somebody left the time out, which the API server refuses: got %v", got)
	}
	if len(long[0].Message) != maxMessage {
		t.Errorf("a message longer than the API server accepts must be cut, got %d", len(long[0].Message))
	}
}

func TestDiffer(t *testing.T) {
	a := Set(nil, t0, 1, Condition("Ready", metav1.ConditionTrue, "Started", ""), Condition("Deployed", metav1.ConditionTrue, "Installed", ""))
	swapped := []metav1.Condition{a[1], a[0]}
	for _, tc := range []struct {
		name string
		b    []metav1.Condition
		want bool
	}{
		{"itself", a, false},
		{"another order", swapped, false},
		{"a fraction of a second", Set(a, t0.Add(300*time.Millisecond), 1, a...), false},
		{"another message", Set(a, t0, 1, Condition("Ready", metav1.ConditionTrue, "Started", "now")), true},
		{"another generation", Set(a, t0, 2, a...), true},
		{"one less", a[:1], true},
		{"another type", []metav1.Condition{a[0], {Type: "Paused"}}, true},
	} {
		if got := Differ(a, tc.b); got != tc.want {
			t.Errorf("%s: Differ = %v, want %v", tc.name, got, tc.want)
		}
	}
}

func TestWriteKeepsWhatOthersWrote(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"readyReplicas": int64(3),
		"conditions": []any{
			map[string]any{"type": "Scheduled", "status": "True", "probe": "theirs"},
			map[string]any{"type": "Ready", "status": "False", "reason": "Old", "message": "", "severity": "Info"},
			"not a condition",
		},
	}}}
	list := Set(Read(object), t0, 7, Condition("Ready", metav1.ConditionTrue, "Started", "1 of 1"))
	if err := Write(object, list[1:]); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"readyReplicas": int64(3),
		"conditions": []any{
			map[string]any{"type": "Scheduled", "status": "True", "probe": "theirs"},
			map[string]any{"type": "Ready", "status": "True", "reason": "Started", "message": "1 of 1", "severity": "Info",
				"observedGeneration": int64(7), "lastTransitionTime": "2026-11-21T10:00:00Z"},
			"not a condition",
		},
	}
	if diff := cmp.Diff(want, object.Object["status"]); diff != "" {
		t.Error(diff)
	}
	if !meta.IsStatusConditionTrue(Read(object), "Ready") || meta.IsStatusConditionTrue(Read(object), "Progressing") {
		t.Error("Read must see what Write wrote, and absent is not true")
	}
}

func TestWriteOnAnObjectWithoutStatus(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	if err := Write(object, Set(nil, t0, 1, Condition("Ready", metav1.ConditionUnknown, "New", ""))); err != nil {
		t.Fatal(err)
	}
	if got := Read(object); len(got) != 1 || got[0].Status != metav1.ConditionUnknown {
		t.Errorf("got %+v", got)
	}
}

// What is read of a condition is what Kubernetes' own conversion makes of it, and where that refuses it, there is none.
func TestReadIsWhatKubernetesReads(t *testing.T) {
	full := func() map[string]any {
		return map[string]any{"type": "Ready", "status": "True", "reason": "R", "message": "m", "observedGeneration": int64(3),
			"lastTransitionTime": "2026-11-29T10:00:00Z", "theirs": map[string]any{"a": "b"}}
	}
	entries := []any{full(), nil, "Ready", []any{}, map[string]any{}, map[string]any{"type": "Ready"}, map[string]any{"status": "True"}}
	for field := range full() {
		for _, value := range []any{nil, "", "x", int64(1), 1.5, true, []any{}, map[string]any{}, "2026-11-29T10:00:00+01:00"} {
			entry := full()
			entry[field] = value
			entries = append(entries, entry)
		}
	}
	for _, entry := range entries {
		var want []metav1.Condition
		if m, is := entry.(map[string]any); is {
			var c metav1.Condition
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &c); err == nil && c.Type != "" {
				want = append(want, c)
			}
		}
		got := Read(&unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": []any{entry}}}})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", entry, diff)
		}
	}
}

func BenchmarkRead(b *testing.B) {
	var list []any
	for _, is := range []string{"Ready", "Deployed", "Progressing", "Stalled", "Irreconcilable", "ReleaseFailed"} {
		list = append(list, map[string]any{"type": is, "status": "True", "reason": "UpgradeSuccessful", "message": "revision 1",
			"observedGeneration": int64(1), "lastTransitionTime": "2026-11-29T10:00:00Z"})
	}
	object := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": list}}}
	b.ReportAllocs()
	for b.Loop() {
		Read(object)
	}
}
