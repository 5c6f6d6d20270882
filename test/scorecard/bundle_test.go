// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func bundleWith(t *testing.T, files map[string]string) string {
	t.Helper()
	bundle := t.TempDir()
	if err := os.Mkdir(filepath.Join(bundle, "manifests"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(bundle, "manifests", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return bundle
}

const (
	service = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n"
	csv     = "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: middleware-operator.v0.1.0\n  annotations:\n    alm-examples: '%'\n"
)

func TestExamples(t *testing.T) {
	const two = `[{"apiVersion": "k8s.io/v1", "kind": "FooBar", "metadata": {"name": "first"}}, {"apiVersion": "k8s.io/v1", "kind": "FooBar", "metadata": {"name": "second"}}]`
	tests := map[string]struct {
		files map[string]string
		want  string // the name of the example of FooBar, or a part of the error
	}{
		"first of a kind": {map[string]string{"a.yaml": service, "b.yaml": strings.Replace(csv, "%", two, 1)}, "first"},
		"no CSV": {
			map[string]string{"a.yaml": service}, "has no ClusterServiceVersion among its 1 manifests; give the directory that holds manifests/"},
		"an empty directory": {nil, "has no ClusterServiceVersion among its 0 manifests"},
		"no examples":        {map[string]string{"b.yaml": strings.Replace(csv, "%", "", 1)}, "metadata.annotations[alm-examples] is empty"},
		"examples are no JSON": {map[string]string{"b.yaml": strings.Replace(csv, "%", "- a", 1)},
			"metadata.annotations[alm-examples] is no JSON list of objects"},
		"another kind only": {map[string]string{"b.yaml": strings.Replace(csv, "%", `[{"apiVersion": "k8s.io/v2", "kind": "FooBar"}]`, 1)},
			"the bundle has no example of k8s.io/v1, Kind=FooBar"},
		"a broken manifest": {map[string]string{"a.yaml": "kind: ["}, "a.yaml: "},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := ""
			list, err := examples(bundleWith(t, test.files))
			if err == nil {
				example, missing := exampleOf(named(t, "foobar-ready").kind, list)
				if err = missing; err == nil {
					got = example.GetName()
				}
			}
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, test.want) {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
}

// The bundle of this checkout has an example for each test, and each test is in its scorecard's configuration.
func TestTheBundleOfThisCheckout(t *testing.T) {
	list, err := examples("../../bundle")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../bundle/tests/scorecard/config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range tests {
		trial := trial{test: test, namespace: "shop"}
		example, err := trial.prepare(list)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if example.GetNamespace() != "shop" || !strings.HasPrefix(example.GetName(), strings.ToLower(test.kind.Kind)+"-") {
			t.Errorf("%s: the example is called %s/%s", test.name, example.GetNamespace(), example.GetName())
		}
		if !strings.Contains(string(text), "- "+test.name+"\n") {
			t.Errorf("bundle/tests/scorecard/config.yaml does not run %s", test.name)
		}
	}
}

func named(t *testing.T, name string) test {
	t.Helper()
	for _, test := range tests {
		if test.name == name {
			return test
		}
	}
	t.Fatalf("there is no test %s", name)
	return test{}
}
