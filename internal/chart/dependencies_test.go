// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// umbrella has a dependency that is used twice under other names, one behind a condition and tags, one whose values it imports,
// and a library.
var umbrella = map[string]string{
	"Chart.yaml": `apiVersion: v2
name: demo
version: 1.2.3
dependencies:
- {name: cache, version: ">=1.0.0", alias: sessions}
- {name: cache, version: ">=1.0.0", alias: pages, condition: pages.enabled}
- {name: queue, version: 1.0.0, tags: [async], import-values: [exported]}
- {name: lib, version: 1.0.0}
`,
	"values.yaml":                     "pages: {enabled: false}\ntags: {async: true}\nsessions: {size: 3}\nglobal: {team: core}\n",
	"templates/c.yaml":                "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  port: {{ .Values.port | default \"none\" | quote }}\n  lib: {{ include \"lib.word\" . }}\n",
	"charts/cache/Chart.yaml":         "apiVersion: v2\nname: cache\nversion: 1.4.0\n",
	"charts/cache/values.yaml":        "size: 1\n",
	"charts/cache/values.schema.json": `{"type":"object","properties":{"size":{"type":"integer"}}}`,
	"charts/cache/templates/s.yaml":   "apiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .Chart.Name }}\n  labels: {size: {{ .Values.size | quote }}, team: {{ .Values.global.team }}}\n",
	"charts/queue/Chart.yaml":         "apiVersion: v2\nname: queue\nversion: 1.0.0\n",
	"charts/queue/values.yaml":        "exports: {exported: {port: 5672}}\n",
	"charts/queue/templates/s.yaml":   "apiVersion: v1\nkind: Service\nmetadata: {name: queue}\n",
	"charts/lib/Chart.yaml":           "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
	"charts/lib/templates/_lib.tpl":   "{{ define \"lib.word\" }}word{{ end }}",
	"charts/lib/templates/no.yaml":    "{{ fail \"a library chart makes nothing\" }}",
}

func TestDependencies(t *testing.T) {
	c := load(t, umbrella)
	for _, tc := range []struct {
		name   string
		values map[string]any
		want   []string
		port   string
	}{
		{"defaults", nil, []string{"ConfigMap/c", "Service/queue", "Service/sessions"}, "5672"},
		{"a condition", map[string]any{"pages": map[string]any{"enabled": true}},
			[]string{"ConfigMap/c", "Service/pages", "Service/queue", "Service/sessions"}, "5672"},
		{"a tag", map[string]any{"tags": map[string]any{"async": false}}, []string{"ConfigMap/c", "Service/sessions"}, "none"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rendered, err := c.Render(tc.values, shop, Capabilities{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, names(rendered)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(map[string]any{"port": tc.port, "lib": "word"}, rendered.Objects[0].Object["data"]); diff != "" {
				t.Error(diff)
			}
			for _, object := range rendered.Objects {
				if object.GetName() == "sessions" && !cmp.Equal(object.GetLabels(), map[string]string{"size": "3", "team": "core"}) {
					t.Errorf("its own values and the global ones: %v", object.GetLabels())
				}
			}
		})
	}
	t.Run("the schema of a dependency", func(t *testing.T) {
		_, err := c.Render(map[string]any{"sessions": map[string]any{"size": "big"}}, shop, Capabilities{})
		var refusal *Error
		if !errors.As(err, &refusal) || refusal.Stage != StageValues || !strings.Contains(err.Error(), "sessions: - at '/size'") {
			t.Errorf("got %v", err)
		}
	})
}

// TestOneChartForManyResources is about memory that is shared: run it with -race.
func TestOneChartForManyResources(t *testing.T) {
	c := load(t, umbrella)
	var group sync.WaitGroup
	for i := range 8 {
		on := i%2 == 0
		group.Go(func() {
			values := map[string]any{"pages": map[string]any{"enabled": on}, "tags": map[string]any{"async": on}}
			want := 2
			if on {
				want = 4
			}
			for range 20 {
				rendered, err := c.Render(values, shop, Capabilities{})
				if err != nil || len(rendered.Objects) != want {
					t.Errorf("pages and queue %v: got %v, %v", on, names(rendered), err)
					return
				}
			}
		})
	}
	group.Wait()
}

func TestWhatAChartSees(t *testing.T) {
	c := load(t, map[string]string{
		"values.yaml": "greeting: 'Hello {{ .Release.Name }}'\n",
		"files/a.txt": "first",
		"files/b.txt": "second",
		"templates/c.yaml": `apiVersion: {{ if .Capabilities.APIVersions.Has "example.com/v2/Widget" }}example.com/v2{{ else }}example.com/v1{{ end }}
kind: Widget
metadata: {name: {{ .Release.Name }}-{{ .Release.Revision }}, namespace: {{ .Release.Namespace }}}
spec:
  service: {{ .Release.Service }}
  install: {{ .Release.IsInstall }}
  upgrade: {{ .Release.IsUpgrade }}
  minor: {{ .Capabilities.KubeVersion.Minor | quote }}
  greeting: {{ tpl .Values.greeting . }}
  chart: {{ .Chart.Name }}-{{ .Chart.Version }}
  template: {{ .Template.Name }}
  files: {{ (.Files.Glob "files/*").AsConfig | fromYaml | toJson }}
`,
	})
	rendered, err := c.Render(nil, Release{Name: "web", Namespace: "shop", Revision: 2, IsUpgrade: true},
		Capabilities{KubeVersion: "v1.36.1", APIVersions: []string{"v1", "example.com/v2/Widget"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"apiVersion": "example.com/v2", "kind": "Widget", "metadata": map[string]any{"name": "web-2", "namespace": "shop"},
		"spec": map[string]any{"service": "Helm", "install": false, "upgrade": true, "minor": "36", "greeting": "Hello web",
			"chart":    "demo-1.2.3",
			"template": "demo/templates/c.yaml", "files": map[string]any{"a.txt": "first", "b.txt": "second"}},
	}
	if diff := cmp.Diff(want, rendered.Objects[0].Object); diff != "" {
		t.Error(diff)
	}
}

func TestHooks(t *testing.T) {
	hook := func(kind, name, annotations string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n  annotations: {" + annotations + "}\n---\n"
	}
	c := load(t, map[string]string{"templates/hooks.yaml": hook("Job", "late", "helm.sh/hook: post-install, helm.sh/hook-weight: '10'") +
		hook("Job", "migrate",
			"helm.sh/hook: 'pre-install, Pre-Upgrade', helm.sh/hook-weight: '-5', helm.sh/hook-delete-policy: 'hook-succeeded, hook-failed'") +
		hook("Pod", "b", "helm.sh/hook: post-delete") + hook("ConfigMap", "b", "helm.sh/hook: post-delete, helm.sh/hook-weight: heavy") +
		hook("Secret", "a", "helm.sh/hook: test-success") + hook("Job", "unknown", "helm.sh/hook: pre-lunch") +
		hook("ConfigMap", "kept", "helm.sh/resource-policy: ' Keep '") + hook("ConfigMap", "empty", "helm.sh/hook: ''") +
		"apiVersion: v1\nkind: List\nmetadata: {annotations: {helm.sh/hook: pre-delete}}\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: item}}]\n---\n" +
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: plain, annotations: {helm.sh/hook: pre-delete}}}]\n"})
	rendered, err := c.Render(nil, shop, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	type seen struct {
		Name, Kind       string
		Events, Policies []string
		Weight           int
	}
	var got []seen
	for _, h := range rendered.Hooks {
		got = append(got, seen{h.Object.GetName(), h.Object.GetKind(), h.Events, h.DeletePolicies, h.Weight})
	}
	before := []string{"before-hook-creation"}
	want := []seen{
		{"migrate", "Job", []string{"pre-install", "pre-upgrade"}, []string{"hook-succeeded", "hook-failed"}, -5},
		{"a", "Secret", []string{"test"}, before, 0},
		{"b", "ConfigMap", []string{"post-delete"}, before, 0},
		{"b", "Pod", []string{"post-delete"}, before, 0},
		{"item", "Pod", []string{"pre-delete"}, before, 0},
		{"late", "Job", []string{"post-install"}, before, 10},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("hooks, in the order in which Helm runs them: %s", diff)
	}
	for _, object := range rendered.Objects {
		if policy := object.GetAnnotations()["helm.sh/resource-policy"]; (policy != "") != (object.GetName() == "kept") {
			t.Errorf("%s: resource policy %q", object.GetName(), policy)
		}
	}
	// Helm looks at a document's own annotations, and drops what is annotated with no event it knows.
	if diff := cmp.Diff([]string{"ConfigMap/kept", "Pod/plain"}, names(rendered)); diff != "" || !c.HasHooks() {
		t.Errorf("objects: %s", diff)
	}
}

func TestCRDs(t *testing.T) {
	crd := func(name string) string {
		return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: " + name + "}\n"
	}
	c := load(t, map[string]string{
		"Chart.yaml":            "apiVersion: v2\nname: demo\nversion: 1.2.3\ndependencies: [{name: sub, version: 1.0.0, condition: sub.enabled}]\n",
		"values.yaml":           "sub: {enabled: false}\n",
		"crds/two.yaml":         "# generated\n---\n" + crd("a.example.com") + "---\n" + crd("b.example.com"),
		"charts/sub/Chart.yaml": "apiVersion: v2\nname: sub\nversion: 1.0.0\n", "charts/sub/crds/c.yaml": crd("c.example.com"),
	})
	all, err := c.CRDs()
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := c.Render(nil, shop, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 3 || len(rendered.CRDs) != 2 || !c.HasCRDs() {
		t.Errorf("got %d in all and %d of what is enabled, want 3 and 2", len(all), len(rendered.CRDs))
	}
}
