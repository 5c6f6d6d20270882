// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	if text == "" {
		return nil
	}
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestDifference(t *testing.T) {
	const plain = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	const secret = "apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n  annotations: {kubectl.kubernetes.io/last-applied-configuration: 'top secret'}\n"
	for _, tc := range []struct {
		name, before, after string
		// want are the lines that begin with + or -.
		want []string
	}{
		{"nothing", plain, plain, nil},
		{"what the API server writes does not count", plain + "status: {a: b}\n",
			strings.Replace(plain, "name: a", "name: a, uid: u, resourceVersion: '5', generation: 2, managedFields: []", 1), nil},
		{"a change", plain + "data: {a: x}\n", plain + "data: {a: w}\n",
			[]string{"--- live ConfigMap a", "+++ rendered ConfigMap a", "-  a: x", "+  a: w"}},
		{"a new object", "", plain, []string{"--- live (no ConfigMap a)", "+++ rendered ConfigMap a", "+apiVersion: v1", "+kind: ConfigMap",
			"+metadata:", "+  name: a"}},
		{"an object that goes", plain, "",
			[]string{"--- live ConfigMap a", "+++ rendered (no ConfigMap a)", "-apiVersion: v1", "-kind: ConfigMap", "-metadata:", "-  name: a"}},
		{"a secret value that changes", secret + "data: {same: x, other: y, old: o}\n", secret + "data: {same: x, other: z, new: n}\n",
			[]string{"--- live Secret a", "+++ rendered Secret a", "-  old: '***'", "-  other: '*** (before)'", "+  new: '***'",
				"+  other: '*** (after)'"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, after := object(t, tc.before), object(t, tc.after)
			either := before
			if either == nil {
				either = after
			}
			text, err := difference(apply.RefOf(either), before, after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, line := range strings.Split(text, "\n") {
				if strings.HasPrefix(line, "+") || strings.HasPrefix(line, "-") {
					got = append(got, line)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if strings.Contains(text, "top secret") {
				t.Errorf("a secret is shown:\n%s", text)
			}
		})
	}
}
