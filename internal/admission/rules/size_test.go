// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestSizeOf(t *testing.T) {
	for name, tt := range map[string]struct {
		part any
		want Size
	}{
		"nothing":         {nil, Size{4, 0}},
		"a text":          {"a,b{[", Size{7, 0}},
		"quotes in it":    {`a",\`, Size{8, 0}},
		"empty":           {map[string]any{"a": []any{}, "b": map[string]any{}}, Size{15, 2}},
		"lists in a map":  {map[string]any{"a": []any{1, 2, 3}, "b": []any{"x"}}, Size{23, 6}},
		"what cannot be":  {func() {}, Size{}},
		"a map in a list": {[]any{map[string]any{"k": "v"}}, Size{11, 2}},
	} {
		if got := SizeOf(tt.part); got != tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
	}
}

func TestAtMost(t *testing.T) {
	at, limit := field.NewPath("spec"), Size{Bytes: 20, Entries: 3}
	if refused := AtMost(at, []any{1, 2, 3}, limit); refused != nil {
		t.Errorf("what fits is refused: %v", refused)
	}
	for name, part := range map[string]any{"long": strings.Repeat("x", 19), "many": []any{1, 2, 3, 4}} {
		if refused := AtMost(at, part, limit); len(refused) != 1 || !strings.Contains(refused[0].Error(), "spec: Invalid value") ||
			!strings.Contains(refused[0].Error(), "must be at most 20 bytes in 3 entries") {
			t.Errorf("%s: %v", name, refused)
		}
	}
}
