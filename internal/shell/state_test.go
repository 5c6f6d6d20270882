// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a status does not say, or says in a form of its own, is not told.
func TestState(t *testing.T) {
	ready := map[string]any{"type": "Ready", "status": "True", "reason": "Deployed"}
	for name, tt := range map[string]struct {
		status     any
		observed   int64
		conditions int
	}{
		"whole":   {map[string]any{"observedGeneration": int64(4), "conditions": []any{ready}}, 4, 1},
		"none":    {nil, -1, 0},
		"strange": {map[string]any{"observedGeneration": "4", "conditions": "none"}, -1, 0},
	} {
		got := State(&unstructured.Unstructured{Object: map[string]any{"status": tt.status}})
		if got.Observed != tt.observed || len(got.Conditions) != tt.conditions {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
