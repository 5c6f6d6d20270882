// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"os"
	"path/filepath"
	"testing"
)

// A project with one kind, Greeting, whose chart makes a ConfigMap of spec.text. Tests replace files of it.
var greeting = map[string]string{
	"watches.yaml":           "- {group: example.com, version: v1, kind: Greeting, chart: chart}\n",
	"chart/Chart.yaml":       "apiVersion: v2\nname: greeting\nversion: 0.1.0\n",
	"chart/values.yaml":      "text: \"\"\n",
	"chart/templates/c.yaml": configMap,
	"crds/greeting.yaml":     crd,
	"samples/hello.yaml":     hello,
}

const (
	configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name | quote }}}\ndata: {text: {{ .Values.text | quote }}}\n"

	hello = "# A comment.\napiVersion: example.com/v1\nkind: Greeting\nmetadata: {name: hello}\nspec: {}\n"

	clusterRole = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: {{ .Release.Name | quote }}}\n"

	hook = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate, annotations: {helm.sh/hook: pre-install}}\n"

	crd = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Greeting, listKind: GreetingList, plural: greetings, singular: greeting}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties:
                text: {type: string, maxLength: 10, default: good day}
              x-kubernetes-validations: [{rule: "self.text != 'rude'", message: be polite}]
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
`
)

// project writes the project of a test, some of its files replaced; an empty content leaves a file out.
func project(t *testing.T, replaced map[string]string) (p Project, dir string) {
	t.Helper()
	dir = t.TempDir()
	all := merge(greeting, replaced)
	for name, content := range all {
		if content == "" {
			continue
		}
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p = Project{WatchesFile: filepath.Join(dir, "watches.yaml"),
		Env: func(name string) (string, bool) { return "from the environment", name == "SET" }}
	if all["crds/greeting.yaml"] != "" {
		p.CRDs = []string{filepath.Join(dir, "crds")}
	}
	return p, dir
}

func merge(a, b map[string]string) map[string]string {
	all := map[string]string{}
	for _, m := range []map[string]string{a, b} {
		for k, v := range m {
			all[k] = v
		}
	}
	return all
}
