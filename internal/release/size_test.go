// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/chart"
)

// Values that are too large are refused before anything is rendered of them, whatever the kind; one that is deleted goes.
func TestValuesAreBounded(t *testing.T) {
	r := &Reconciler{chart: &chart.Chart{}} // which cannot be rendered
	for name, value := range map[string]any{"long": strings.Repeat("x", 512<<10), "many": slices.Repeat([]any{"x"}, 20_000)} {
		cr := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"v": value}}}
		d, err := r.desired(t.Context(), cr, Snapshot{})
		if err != nil || len(d.Invalid) != 1 || !strings.Contains(d.Invalid[0].Error(), "must be at most 524288 bytes in 20000 entries") {
			t.Errorf("%s: %v, %v", name, d.Invalid, err)
		}
		if step, ok := Plan(d, Snapshot{}, now).(Stall); !ok || step.Reason != ReasonInvalidSpec || len(step.Message) > 500 {
			t.Errorf("%s: %+v", name, step)
		}
		if d, err := r.desired(t.Context(), cr, Snapshot{Deleting: true}); err != nil || d.Values == nil {
			t.Errorf("%s, being deleted: %v", name, err)
		}
		if step := Plan(d, Snapshot{Deleting: true}, now); step != (Gone{}) {
			t.Errorf("%s, being deleted: %T", name, step)
		}
	}
}

// Whoever may annotate one resource keeps no worker busy with it.
func TestPeriodIsNotTakenTooShort(t *testing.T) {
	r := &Reconciler{chart: &chart.Chart{}}
	for text, want := range map[string]time.Duration{"1ns": time.Second, "-5s": 0, "0": 0, "3s": 3 * time.Second, "soon": 0} {
		cr := &unstructured.Unstructured{}
		cr.SetAnnotations(map[string]string{ReconcilePeriodAnnotation: text})
		if got := r.period(cr); got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
