// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shape

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSuspectsAndTheirStandIns(t *testing.T) {
	values := map[string]any{"plain": "a:b-c", "line": "a\nb", "a: b": int64(1), "list": []any{"x, y", "'"}}
	for inFlow, want := range map[bool][]string{
		false: {"spec", "spec.line", "spec.list[1]"},
		true:  {"spec", "spec.line", "spec.list[0]", "spec.list[1]"},
	} {
		if diff := cmp.Diff(want, Suspects("spec", values, inFlow)); diff != "" {
			t.Errorf("in flow %v (-want +got):\n%s", inFlow, diff)
		}
	}
	want := [2]map[string]any{
		{"plain": "a:b-c", "line": "a_b", "a__b": int64(1), "list": []any{"x, y", "_"}},
		{"plain": "a:b-c", "line": "axb", "axxb": int64(1), "list": []any{"x, y", "x"}},
	}
	if diff := cmp.Diff(want, StandIns(values, false)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDifference(t *testing.T) {
	for _, tc := range []struct {
		name                string
		real, first, second []string
		want                string
	}{
		{"a value in its place", []string{"a: {b: 'c'}"}, []string{"a: {b: _}"}, []string{"a: {b: x}"}, ""},
		{"a key in its place", []string{"'a b': c"}, []string{"a_b: c"}, []string{"axb: c"}, ""},
		{"another document", []string{"a: b", "c: d"}, []string{"a: b"}, []string{"a: b"}, "f"},
		{"another key", []string{"a: {b: c, d: e}"}, []string{"a: {b: c_d_e}"}, []string{"a: {b: cxdxe}"}, "f[0]: a"},
		{"a constant that changes", []string{"a: [true]"}, []string{"a: [false]"}, []string{"a: [false]"}, "f[0]: a[0]"},
		{"a scalar that becomes a map", []string{"a: {b: c}"}, []string{"a: b__c"}, []string{"a: bxxc"}, "f[0]: a"},
		{"a stand-in that is no YAML", []string{"a: b"}, []string{"a: ["}, []string{"a: b"}, "f"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := Difference(Documents{"f": tc.real}, Documents{"f": tc.first}, Documents{"f": tc.second}); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
