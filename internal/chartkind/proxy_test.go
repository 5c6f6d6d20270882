// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chartkind_test

import (
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/watches"
)

// Pods of the kinds whose watch asks for it get the operator's proxy; a Job of FooBar, whose pods cannot change, would run again.
func TestProxyVariablesReachPods(t *testing.T) {
	entries, err := watches.Load("../../watches.yaml", func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	asks := map[string]string{}
	for _, entry := range entries {
		asks[entry.Kind] = entry.ProxyVariables
	}
	if diff := cmp.Diff(map[string]string{"App": "env", "CronTab": "env", "FooBar": ""}, asks); diff != "" {
		t.Fatalf("kinds that ask for the proxy (-want +got):\n%s", diff)
	}
	added := []any{map[string]any{"name": "HTTPS_PROXY", "value": "http://proxy:3128"}}
	for name, containers := range map[string][]string{
		"App":     {"spec", "template", "spec", "containers"},
		"CronTab": {"spec", "jobTemplate", "spec", "template", "spec", "containers"},
	} {
		spec := maps.Clone(testKinds[name].minimal)
		spec["env"] = added
		objects, err := render(t, newObject(name, "x", spec))
		if err != nil {
			t.Fatal(err)
		}
		var list []any
		for _, object := range objects {
			if found, is, err := unstructured.NestedSlice(object.Object, containers...); is && err == nil {
				list = append(list, found...)
			}
		}
		if len(list) != 1 {
			t.Fatalf("%s: containers %v", name, list)
		}
		if diff := cmp.Diff(added, list[0].(map[string]any)["env"]); diff != "" {
			t.Errorf("%s: environment (-want +got):\n%s", name, diff)
		}
	}
}
