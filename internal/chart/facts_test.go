// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatTemplatesDo(t *testing.T) {
	type does struct{ lookup, chance, hooks, capabilities, tpl bool }
	for _, tc := range []struct {
		name  string
		files map[string]string
		want  does
	}{
		{"nothing", map[string]string{"templates/a.yaml": configMap}, does{}},
		{"words in plain text", map[string]string{"templates/a.yaml": "# lookup now randAlphaNum tpl\n" + configMap}, does{}},
		{"words in a comment", map[string]string{"templates/a.yaml": configMap + "{{/* lookup now tpl .Capabilities */}}"}, does{}},
		{"words in a string", map[string]string{"templates/a.yaml": configMap + `{{ "look up now with tpl" }}`}, does{}},
		{"fields of these names", map[string]string{"templates/a.yaml": configMap + `{{ .Values.lookup.now.tpl }}`}, does{}},
		{"lookup", map[string]string{"templates/a.yaml": `{{ if lookup "v1" "Secret" "" "a" }}{{ end }}`}, does{lookup: true}},
		{"lookup in a named template",
			map[string]string{"templates/_a.tpl": `{{ define "x" }}{{ $s := (lookup "v1" "Secret" "a" "b").data }}{{ end }}`}, does{lookup: true}},
		{"a password", map[string]string{"templates/a.yaml": `{{ .Values.a | default (randAlphaNum 10) | quote }}`}, does{chance: true}},
		{"a certificate in a branch", map[string]string{"templates/a.yaml": `{{ if .Values.a }}{{ $ca := genCA "a" 1 }}{{ end }}`},
			does{chance: true}},
		{"the time", map[string]string{"templates/a.yaml": `{{ now | date "2006" }}`}, does{chance: true}},
		{"keys in any order", map[string]string{"templates/a.yaml": `{{ range keys .Values.a }}{{ . }}{{ end }}`}, does{chance: true}},
		{"keys in order",
			map[string]string{"templates/a.yaml": `{{ range keys .Values.a | sortAlpha }}{{ . }}{{ end }}{{ len (keys .Values.b) }}`}, does{}},
		{"a hook", map[string]string{"templates/a.yaml": configMap + "  # helm.sh/hook\n"}, does{hooks: true}},
		{"a hook by default", map[string]string{"values.yaml": "annotations: {helm.sh/hook: pre-install}\n"}, does{hooks: true}},
		{"the cluster's version", map[string]string{"templates/a.yaml": `{{ $.Capabilities.KubeVersion.Minor }}`}, does{capabilities: true}},
		{"the cluster's version, by name", map[string]string{"templates/a.yaml": `{{ get . "Capabilities" }}`}, does{capabilities: true}},
		{"tpl", map[string]string{"templates/a.yaml": `{{ tpl .Values.a . }}`}, does{tpl: true}},
		{"tpl of a default that calls", map[string]string{"templates/a.yaml": `{{ tpl .Values.a . }}`,
			"values.yaml": "a: '{{ lookup \"v1\" \"Pod\" \"\" \"\" }} {{ uuidv4 }}'\n"}, does{tpl: true, lookup: true, chance: true}},
		{"tpl of a literal that calls", map[string]string{"templates/a.yaml": "{{ tpl `{{ now }}` . }}"}, does{tpl: true, chance: true}},
		{"a dependency",
			map[string]string{"charts/b/Chart.yaml": "apiVersion: v2\nname: b\nversion: 1.0.0\n",
				"charts/b/templates/a.yaml": `{{ lookup "v1" "Pod" "" "" }}`}, does{lookup: true}},
		{"what does not parse does everything", map[string]string{"templates/a.yaml": `{{ if }}`},
			does{lookup: true, chance: true, capabilities: true, tpl: true}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := load(t, tc.files)
			got := does{c.UsesLookup(), !c.Deterministic(), c.HasHooks(), c.UsesCapabilities(), c.facts.tpl}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(does{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestKinds(t *testing.T) {
	const never = "{{ if .Values.never }}"
	for _, tc := range []struct {
		name     string
		template string
		want     []string
	}{
		{"plain", "apiVersion: v1\nkind: Secret\n", []string{"Secret"}},
		{"quoted, with a comment", "'kind': \"Secret\" # ours\n", []string{"Secret"}},
		{"several documents", "kind: Secret\n---\nkind: ConfigMap\n", []string{"ConfigMap", "Secret"}},
		{"both branches", "kind: {{ if .Values.a }}Deployment{{ else }}DaemonSet{{ end }}\n", []string{"DaemonSet", "Deployment"}},
		{"branches on lines of their own", "{{- if .Values.a }}\nkind: Deployment\n{{- else }}\nkind: DaemonSet\n{{- end }}\n",
			[]string{"DaemonSet", "Deployment"}},
		{"branches without line breaks", "{{- if .Values.a -}}\nkind: Deployment\n{{- else -}}\nkind: DaemonSet\n{{- end }}\n",
			[]string{"DaemonSet", "Deployment"}},
		{"ternary", `kind: {{ ternary "Role" "ClusterRole" .Values.a }}`, []string{"ClusterRole", "Role"}},
		{"a variable", "{{ $k := \"Role\" }}{{ if .Values.a }}{{ $k = \"ClusterRole\" }}{{ end }}\nkind: {{ $k }}\n",
			[]string{"ClusterRole", "Role"}},
		{"a named template",
			"{{ define \"x.kind\" }}{{ if .Values.a }}Role{{ else }}{{ print \"ClusterRole\" }}{{ end }}{{ end }}\nkind: {{ include \"x.kind\" . }}\n", []string{"ClusterRole", "Role"}},
		{"the default of a value", "kind: {{ .Values.kind | default \"Deployment\" }}\n", []string{"Deployment"}},
		{"a value", "kind: {{ .Values.kind }}\n", nil},
		{"a condition is not a kind", "kind: {{ if eq .Values.mode \"Cluster\" }}ClusterRole{{ else }}Role{{ end }}\n",
			[]string{"ClusterRole", "Role"}},
		{"a whole document in a named template", "{{ define \"x\" }}\napiVersion: v1\nkind: Service\n{{ end }}", []string{"Service"}},
		{"in a range", "{{ range .Values.list }}\n---\nkind: Service\n{{ end }}", []string{"Service"}},
		{"what is referred to",
			"kind: RoleBinding\nroleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: ClusterRole\nsubjects:\n- kind: ServiceAccount\n",
			[]string{"RoleBinding"}},
		{"the names in a CRD", "kind: CustomResourceDefinition\nspec:\n  names:\n    kind: Widget\n", []string{"CustomResourceDefinition"}},
		{"a text", "kind: ConfigMap\ndata:\n  a: |\n    kind: Secret\n", []string{"ConfigMap"}},
		{"a comment", "# kind: Secret\nkind: ConfigMap\n", []string{"ConfigMap"}},
		{"a template comment", "{{/*\nkind: Secret\n*/}}\nkind: ConfigMap\n", []string{"ConfigMap"}},
		{"an indented document", never + "\n  apiVersion: v1\n  kind: Service\n  spec:\n    kind: Other\n{{ end }}", []string{"Service"}},
		{"items of a list",
			"kind: List\nitems:\n{{ range .Values.l }}\n- apiVersion: v1\n  kind: Secret\n  spec:\n    scaleTargetRef:\n      apiVersion: apps/v1\n      kind: Deployment\n{{ end }}", []string{"Secret"}},
		{"indented items", "kind: RoleList\nitems:\n  - kind: Role\n    metadata: {}\n", []string{"Role", "RoleList"}},
		{"claims are no items", "kind: StatefulSet\nspec:\n  volumeClaimTemplates:\n  - apiVersion: v1\n    kind: PersistentVolumeClaim\n",
			[]string{"StatefulSet"}},
		{"flow style, with the defaults", "{apiVersion: v1, kind: Secret, metadata: {name: a}}", []string{"Secret"}},
		{"a test hook", "kind: Pod\nmetadata:\n  annotations:\n    \"helm.sh/hook\": test\n", nil},
		{"a hook that is run too", "kind: Pod\nmetadata:\n  annotations:\n    helm.sh/hook: test,post-install\n", []string{"Pod"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, load(t, map[string]string{"templates/a.yaml": tc.template}).Kinds()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("of dependencies, library charts and printed files", func(t *testing.T) {
		c := load(t, map[string]string{
			"Chart.yaml":                  "apiVersion: v2\nname: demo\nversion: 1.2.3\ndependencies: [{name: lib, version: 1.0.0}, {name: sub, version: 1.0.0, condition: sub.on}]\n",
			"values.yaml":                 "sub: {on: false}\n",
			"templates/a.yaml":            "{{ include \"lib.service\" . }}\n{{ if .Values.never }}{{ .Files.Get \"files/crds.yaml\" }}{{ end }}",
			"files/crds.yaml":             "kind: CustomResourceDefinition\nspec:\n  names: {kind: Widget}\n",
			"charts/lib/Chart.yaml":       "apiVersion: v2\nname: lib\nversion: 1.0.0\ntype: library\n",
			"charts/lib/templates/_s.tpl": "{{ define \"lib.service\" }}\nkind: Service\napiVersion: v1\nmetadata: {name: a}\n{{ end }}",
			"charts/sub/Chart.yaml":       "apiVersion: v2\nname: sub\nversion: 1.0.0\n",
			"charts/sub/templates/a.yaml": "kind: Ingress\n",
		})
		if diff := cmp.Diff([]string{"CustomResourceDefinition", "Ingress", "Service"}, c.Kinds()); diff != "" {
			t.Error(diff)
		}
	})
}

func TestAsksOnlyFor(t *testing.T) {
	for _, tc := range []struct {
		name, template string
		asked          []string
		only           bool
	}{
		{"nothing", "", nil, true},
		{"two APIs", `{{ if and (.Capabilities.APIVersions.Has "b/v1/B") ($.Capabilities.APIVersions.Has "a/v1") }}{{ end }}`,
			[]string{"a/v1", "b/v1/B"}, true},
		{"in a named template", `{{ define "x" }}{{ .Capabilities.APIVersions.Has "a/v1" }}{{ end }}`, []string{"a/v1"}, true},
		{"the version besides", `{{ .Capabilities.APIVersions.Has "a/v1" }}{{ .Capabilities.KubeVersion }}`, []string{"a/v1"}, false},
		{"an API of the values", `{{ .Capabilities.APIVersions.Has .Values.api }}`, nil, false},
		{"a computed API", `{{ .Capabilities.APIVersions.Has (print "a" "/v1") }}`, nil, false},
		{"a piped API", `{{ "a/v1" | .Capabilities.APIVersions.Has }}`, nil, false},
		{"a function that is passed on", `{{ call .Capabilities.APIVersions.Has "a/v1" }}`, nil, false},
		{"all of them", `{{ range .Capabilities.APIVersions }}{{ . }}{{ end }}`, nil, false},
		{"in a with", `{{ with .Capabilities }}{{ .APIVersions.Has "a/v1" }}{{ end }}`, nil, false},
		{"through an expression", `{{ (index . "x").Capabilities.APIVersions.Has "a/v1" }}`, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, only := load(t, map[string]string{"templates/a.yaml": configMap, "templates/b.yaml": tc.template}).AsksOnlyFor()
			if diff := cmp.Diff(tc.asked, asked); diff != "" || only != tc.only {
				t.Errorf("only: %v, %s", only, diff)
			}
		})
	}
}

// Whoever installs a CRD does not thereby upgrade each release of a chart that asks for another.
func TestDigestHoldsTheAPIsThatAreAskedFor(t *testing.T) {
	c := load(t, map[string]string{"templates/a.yaml": configMap + `{{ .Capabilities.APIVersions.Has "a/v1" }}`})
	digest := func(kube string, apis ...string) string {
		d, err := c.DigestFor(nil, shop, Capabilities{KubeVersion: kube, APIVersions: apis})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if digest("v1.36.0", "v1") != digest("v1.37.0", "b/v1", "v1") {
		t.Error("another API and another version change the digest")
	}
	if digest("v1.36.0", "v1") == digest("v1.36.0", "a/v1", "v1") {
		t.Error("the API that the chart asks for does not change the digest")
	}
}
