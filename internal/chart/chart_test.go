// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var shop = Release{Name: "web", Namespace: "shop", Revision: 1, IsInstall: true}

// files makes a chart of file contents; Chart.yaml is supplied.
func files(contents map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: demo\nversion: 1.2.3\n")}}
	for name, content := range contents {
		fsys[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return fsys
}

func load(t testing.TB, contents map[string]string) *Chart {
	t.Helper()
	c, err := Load(files(contents))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const configMap = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text | quote }}
  revision: {{ .Release.Revision | quote }}
`

func names(r *Rendered) []string {
	var list []string
	for _, object := range r.Objects {
		list = append(list, object.GetKind()+"/"+object.GetName())
	}
	return list
}

func TestRenderSortsAndKeepsApart(t *testing.T) {
	c := load(t, map[string]string{
		"values.yaml":            "text: default\n",
		"templates/a.yaml":       "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\n---\n# nothing but a comment\n---\napiVersion: v1\nkind: Service\nmetadata: {name: s}\n",
		"templates/config.yaml":  configMap,
		"templates/list.yaml":    "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: one}}\n- {apiVersion: v1, kind: Secret, metadata: {name: two}}\n",
		"templates/hook.yaml":    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: migrate\n  annotations: {helm.sh/hook: 'pre-install,pre-upgrade', helm.sh/hook-weight: '-5', helm.sh/hook-delete-policy: hook-succeeded}\n",
		"templates/NOTES.txt":    "Thank you, {{ .Release.Name }}.\n",
		"templates/_helpers.tpl": `{{- define "x" -}}y{{- end -}}`,
		"crds/thing.yaml":        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: things.example.com}\n",
	})
	rendered, err := c.Render(nil, shop, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"ConfigMap/web", "Service/s", "Deployment/d", "Secret/one", "Secret/two"}
	if diff := cmp.Diff(want, names(rendered)); diff != "" {
		t.Errorf("objects: %s", diff)
	}
	if len(rendered.Hooks) != 1 || rendered.Hooks[0].Object.GetName() != "migrate" || rendered.Hooks[0].Weight != -5 ||
		!cmp.Equal(rendered.Hooks[0].Events, []string{"pre-install", "pre-upgrade"}) {
		t.Errorf("hooks: %+v", rendered.Hooks)
	}
	if len(rendered.CRDs) != 1 || rendered.Notes != "Thank you, web." {
		t.Errorf("got %d CRDs, notes %q", len(rendered.CRDs), rendered.Notes)
	}
	if strings.Contains(rendered.Manifest, "migrate") || !strings.Contains(rendered.Manifest, "# Source: demo/templates/config.yaml") {
		t.Errorf("the manifest is Helm's, without hooks: %s", rendered.Manifest)
	}
	if diff := cmp.Diff([]string{"ConfigMap", "Deployment", "Job", "Secret", "Service"}, c.Kinds()); diff != "" {
		t.Errorf("kinds: %s", diff)
	}
}

func TestRenderingForOneDoesNotChangeTheNext(t *testing.T) {
	c := load(t, map[string]string{
		"Chart.yaml":                    "apiVersion: v2\nname: demo\nversion: 1.2.3\ndependencies:\n- {name: cache, version: 1.0.0, condition: cache.enabled}\n",
		"values.yaml":                   "cache: {enabled: true}\ntext: hello\n",
		"templates/config.yaml":         configMap,
		"charts/cache/Chart.yaml":       "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
		"charts/cache/templates/c.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: cache}\n",
	})
	without := map[string]any{"cache": map[string]any{"enabled": false}}
	for i, tc := range []struct {
		values map[string]any
		want   int
	}{{nil, 2}, {without, 1}, {nil, 2}, {without, 1}} {
		rendered, err := c.Render(tc.values, shop, Capabilities{})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(rendered.Objects); got != tc.want {
			t.Errorf("rendering %d: got %d objects, want %d", i, got, tc.want)
		}
	}
	if diff := cmp.Diff(map[string]any{"cache": map[string]any{"enabled": false}}, without); diff != "" {
		t.Errorf("the values that were passed changed: %s", diff)
	}
}

func TestRefusals(t *testing.T) {
	schemaJSON := `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"replicas":{"type":"integer"}}}`
	for _, tc := range []struct {
		name   string
		files  map[string]string
		values map[string]any
		stage  Stage
		says   string
	}{
		{name: "values that the schema refuses", files: map[string]string{"values.schema.json": schemaJSON, "templates/c.yaml": configMap},
			values: map[string]any{"replicas": "three"}, stage: StageValues, says: "replicas"},
		{name: "a template that fails", files: map[string]string{"templates/c.yaml": `{{ fail "no shards" }}`}, stage: StageTemplate,
			says: "no shards"},
		{name: "text that is not YAML", files: map[string]string{"templates/c.yaml": "kind: [\n"}, stage: StageManifest, says: "c.yaml"},
		{name: "an object without a name", files: map[string]string{"templates/c.yaml": "apiVersion: v1\nkind: Secret\n"}, stage: StageManifest,
			says: "a Secret without metadata.name"},
		{name: "a Kubernetes that is too old",
			files: map[string]string{"Chart.yaml": "apiVersion: v2\nname: demo\nversion: 1.0.0\nkubeVersion: '>=1.99'\n"}, stage: StageLoad,
			says: "needs Kubernetes >=1.99"},
		{name: "an action that would go through tpl", files: map[string]string{"templates/c.yaml": `{{ tpl .Values.text . }}`},
			values: map[string]any{"list": []any{map[string]any{"deep": "{{ .Release }}"}}}, stage: StageValues,
			says: "spec.list[0].deep: the chart passes values through tpl"},
		{name: "half an action", files: map[string]string{"templates/c.yaml": `{{ tpl (print .Values.a .Values.b) . }}`},
			values: map[string]any{"a": "x{", "b": "{ .Release }}"}, stage: StageValues, says: "spec.a"},
		{name: "more objects than anybody reads",
			files:  map[string]string{"templates/c.yaml": "{{ range until (int .Values.n) }}\n---\nkind: ConfigMap\n{{ end }}"},
			values: map[string]any{"n": int64(3000)}, stage: StageTemplate, says: "documents; at most 16777216 in 2000 are read"},
		{name: "more text than anybody reads", files: map[string]string{"templates/c.yaml": `{{ repeat (int .Values.n) "0123456789abcdef" }}`},
			values: map[string]any{"n": int64(1<<20 + 1)}, stage: StageTemplate, says: "it makes 16777232 bytes of text"},
		{name: "a count that the schema bounds", files: map[string]string{"templates/c.yaml": "{{ range until (int .Values.n) }}{{ end }}",
			"values.schema.json": `{"properties":{"n":{"maximum":100}}}`}, values: map[string]any{"n": int64(2_000_000_000)}, stage: StageValues,
			says: "maximum"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.files).Render(tc.values, shop, Capabilities{KubeVersion: "v1.37.2"})
			var refusal *Error
			if !errors.As(err, &refusal) || refusal.Stage != tc.stage || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want a refusal in stage %s that says %q", err, tc.stage, tc.says)
			}
		})
	}
	if _, err := Load(fstest.MapFS{}); err == nil || !strings.Contains(err.Error(), "Chart.yaml") {
		t.Errorf("a directory that is no chart: got %v", err)
	}
}

func namespaced(gvk schema.GroupVersionKind) (bool, error) { return gvk.Kind != "ClusterRole", nil }

func TestCheck(t *testing.T) {
	for _, tc := range []struct{ name, template, says string }{
		{"its own namespace", "kind: Secret\napiVersion: v1\nmetadata: {name: a, namespace: shop}\n", ""},
		{"another namespace", "kind: Secret\napiVersion: v1\nmetadata: {name: a, namespace: kube-system}\n", `namespace "kube-system"`},
		{"cluster-scoped", "kind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1\nmetadata: {name: a}\n", "cluster-scoped"},
		{"a kind from a value", "kind: {{ .Values.kind }}\napiVersion: v1\nmetadata: {name: a}\n", "does not write this kind literally"},
		{"a kind the chart chooses", "kind: {{ ternary \"Secret\" \"ConfigMap\" true }}\napiVersion: v1\nmetadata: {name: a}\n", ""},
		{"a hook elsewhere", "kind: Secret\napiVersion: v1\nmetadata: {name: a, namespace: other, annotations: {helm.sh/hook: pre-install}}\n",
			`namespace "other"`},
		{"a test hook, which nothing runs",
			"kind: Secret\napiVersion: v1\nmetadata: {name: a, namespace: other, annotations: {helm.sh/hook: test}}\n", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := load(t, map[string]string{"templates/t.yaml": tc.template})
			rendered, err := c.Render(map[string]any{"kind": "Pod"}, shop, Capabilities{})
			if err != nil {
				t.Fatal(err)
			}
			err = Check(rendered, Allowed{Namespace: "shop", Kinds: c.Kinds(), Namespaced: namespaced})
			if (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want %q", err, tc.says)
			}
		})
	}
}

func TestDigestFor(t *testing.T) {
	plain := load(t, map[string]string{"templates/c.yaml": configMap})
	looks := load(t, map[string]string{"templates/c.yaml": configMap + `{{ .Capabilities.KubeVersion }}`})
	digest := func(c *Chart, values map[string]any, release Release, kube string) string {
		d, err := c.DigestFor(values, release, Capabilities{KubeVersion: kube})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	values := map[string]any{"text": "a", "n": int64(1)}
	upgraded := shop
	upgraded.Revision, upgraded.IsInstall, upgraded.IsUpgrade = 2, false, true
	base := digest(plain, values, shop, "v1.30.0")
	for _, tc := range []struct {
		name  string
		other string
		same  bool
	}{
		{"the next revision", digest(plain, map[string]any{"n": int64(1), "text": "a"}, upgraded, "v1.30.0"), true},
		{"a cluster upgrade the chart does not look at", digest(plain, values, shop, "v1.31.0"), true},
		{"another value", digest(plain, map[string]any{"text": "b", "n": int64(1)}, shop, "v1.30.0"), false},
		{"something to ask", func() string {
			d, err := plain.DigestFor(values, shop,
				Capabilities{KubeVersion: "v1.30.0", Lookup: func(string, string, string, string) (map[string]any, error) { return nil, nil }})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}(), true},
		{"another name", digest(plain, values, Release{Name: "we", Namespace: "shop"}, "v1.30.0"), false},
		{"the same letters, divided elsewhere", digest(plain, values, Release{Name: "we", Namespace: "bshop"}, "v1.30.0"), false},
		{"another chart", digest(looks, values, shop, "v1.30.0"), false},
	} {
		if (tc.other == base) != tc.same {
			t.Errorf("%s: same = %v, want %v", tc.name, tc.other == base, tc.same)
		}
	}
	if digest(looks, values, shop, "v1.30.0") == digest(looks, values, shop, "v1.31.0") {
		t.Error("a chart that looks at the cluster's version must be rendered again after an upgrade")
	}
}
