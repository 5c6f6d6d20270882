// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/releaseutil"
)

// The charts of this test: one that forgets quotes wherever one can, and one that never does.
var (
	fuzzForgetful = map[string]string{
		"values.yaml": "text: a\nblock: b\nkey: c\nflow: d\nmap: {a: b}\nlist: [a]\nnumber: 1\nflag: true\nname: web\nraw: ''\n",
		"templates/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.name }}
  labels: {a: b, text: {{ .Values.flow }}, c: d}
  annotations:
    {{ .Values.key }}: {{ .Values.text }}
data:
  text: {{ .Values.text }}
  quoted: "{{ .Values.text }}"
  single: '{{ .Values.text }}'
  block: |
    {{ .Values.block | indent 4 }}
  folded: >
    {{ .Values.text }}
  number: {{ .Values.number }}
  flag: {{ if .Values.flag }}on{{ else }}off{{ end }}
  sum: {{ .Values.text | toString | sha256sum }}
  {{- range $k, $v := .Values.map }}
  {{ $k }}: {{ $v }}
  {{- end }}
  last: constant
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec:
  hostNetwork: false
  containers:
  {{- range .Values.list }}
  - {name: {{ . }}, image: a}
  {{- end }}
# {{ .Values.text }}
`,
		"templates/b.yaml": "{{ .Values.raw }}\n",
	}
	fuzzCareful = map[string]string{
		"values.yaml": "text: a\nblock: b\nkey: c\nmap: {a: b}\nlist: [a]\nnumber: 1\nflag: true\nname: web\nflow: d\n",
		"templates/a.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: web
  labels: {a: b, text: {{ .Values.flow | toJson }}, c: d}
  annotations:
    {{ .Values.key | toString | toJson }}: {{ .Values.text | toJson }}
data:
  text: {{ .Values.text | toJson }}
  encoded: {{ .Values.text | toString | b64enc }}
  map: {{- toYaml .Values.map | nindent 4 }}
  list: {{- toYaml .Values.list | nindent 4 }}
  number: {{ .Values.number | toJson }}
  flag: {{ if .Values.flag }}on{{ else }}off{{ end }}
  last: constant
---
apiVersion: v1
kind: Pod
metadata: {name: pod}
spec: {hostNetwork: false}
`,
	}
)

var fuzzSeeds = []string{
	"plain", "", "a\nb", "x\n---\napiVersion: v1\nkind: Secret\nmetadata:\n  name: stolen\n  namespace: kube-system\n",
	"x\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\n", "--- {apiVersion: v1, kind: ConfigMap, metadata: {name: more}}",
	"{apiVersion: v1, kind: ConfigMap, metadata: {name: more}}", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"more\"}}",
	"{{ .Release.Namespace }}", "{{- fail \"x\" -}}", "{{ template \"x\" . }}", "{{ .Values", "&a [*a, *a]", "*a", "<<: *a", "<<",
	"!!binary x", "!!map {}",
	"\"\nmetadata: {namespace: other}", "\"", "'", "\\", "\\\"", "a\" #", "'\n  more: 'x", "\u2028more: x", "a\u2029more: x", "a\u0085more: x",
	"a\rmore: x", "a\r\nb",
	"\x00", "\ufeff", "x: y", "x:", "# comment", "# Source: demo/templates/b.yaml", "- item", "? key", "null", "~", "true", "1e3", "0x10",
	"1_000", "|\n  x", "|", ">", "%YAML 1.1\n---\n", "...", "a\n...\n",
	"a\nkind: ClusterRole\napiVersion: rbac.authorization.k8s.io/v1", "a\n  namespace: kube-system", "a, hostNetwork: true",
	"a}, spec: {hostNetwork: true", "a]", "[", "{", "}", ",", "a\n  hostNetwork: true",
	"a\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: more}}]", "a\n  annotations: {helm.sh/hook: pre-install}", "\t", "\ta: b", " a",
	"a ", "é", "\xff\xfe",
	strings.Repeat("a\n", 500), strings.Repeat("- ", 500), strings.Repeat("[", 500), strings.Repeat("{a: ", 500),
}

// FuzzValuesAreData puts a text into every field of the values, as a string, a key, in a list and in a map. Nobody but the
// chart's author decides which objects there are, of which kinds, in which namespaces, with which constant fields; and in a
// chart that quotes, the text arrives as it was written.
func FuzzValuesAreData(f *testing.F) {
	for i, seed := range fuzzSeeds {
		for _, field := range []int{i, i + 3, i + 6, len(fuzzFields)} {
			f.Add(seed, uint(field)%uint(len(fuzzFields)+1))
		}
	}
	forgetful, careful := load(f, fuzzForgetful), load(f, fuzzCareful)
	f.Fuzz(func(t *testing.T, text string, field uint) {
		values := fuzzValues(text, field)
		for _, c := range []*Chart{forgetful, careful} {
			rendered, err := c.Render(values, shop, Capabilities{})
			if err != nil || Check(rendered, Allowed{Namespace: "shop", Kinds: c.Kinds(), Namespaced: namespaced}) != nil {
				continue
			}
			if problem := onlyTheCharts(rendered, c == careful || values["name"] == nil); problem != "" {
				t.Errorf("%q as %v: %s", text, values, problem)
			}
			arrived := rendered.Objects[0].Object["data"].(map[string]any)["text"]
			// A resource is JSON, so valid UTF-8. U+0085 is the one line break of YAML that toJson leaves as it is.
			if c == careful && values["text"] == text && arrived != text && utf8.ValidString(text) && !strings.Contains(text, "\u0085") {
				t.Errorf("%q arrived as %q", text, arrived)
			}
		}
	})
}

var fuzzFields = []string{"text", "block", "key", "flow", "number", "flag", "name", "raw", "map", "list"}

// fuzzValues puts a text into one field, or, with a higher number, into all of them.
func fuzzValues(text string, field uint) map[string]any {
	values := map[string]any{}
	for i, name := range fuzzFields {
		if uint(i) == field%uint(len(fuzzFields)+1) || field%uint(len(fuzzFields)+1) == uint(len(fuzzFields)) {
			values[name] = text
		}
	}
	if values["map"] != nil {
		values["map"] = map[string]any{"deep": text, text: "value"}
	}
	if values["list"] != nil {
		values["list"] = []any{text, "other"}
	}
	return values
}

// onlyTheCharts tells what is in a rendering that the chart's author did not write there.
func onlyTheCharts(rendered *Rendered, named bool) string {
	var kinds []string
	for _, object := range rendered.Objects {
		kinds = append(kinds, object.GetKind())
		if object.GetNamespace() != "" {
			return "an object in namespace " + object.GetNamespace()
		}
	}
	if len(rendered.Hooks) > 0 || !slices.Equal(kinds, []string{"ConfigMap", "Pod"}) {
		return fmt.Sprintf("objects %v, %d hooks", names(rendered), len(rendered.Hooks))
	}
	config, pod := rendered.Objects[0], rendered.Objects[1]
	data, _ := config.Object["data"].(map[string]any)
	spec, _ := pod.Object["spec"].(map[string]any)
	switch {
	case named && config.GetName() != "web" || pod.GetName() != "pod":
		return fmt.Sprintf("the objects are called %v", names(rendered))
	case data["last"] != "constant":
		return fmt.Sprintf("the last field is %v", data["last"])
	case spec["hostNetwork"] != false:
		return fmt.Sprintf("hostNetwork is %v", spec["hostNetwork"])
	case config.GetLabels()["a"] != "b" || config.GetLabels()["c"] != "d" || len(config.GetLabels()) > 3: // a null is no label
		return fmt.Sprintf("the labels are %v", config.GetLabels())
	case len(config.GetAnnotations()) > 1:
		return fmt.Sprintf("the annotations are %v", config.GetAnnotations())
	}
	return ""
}

func TestDocumentsAreHelms(t *testing.T) {
	texts := append([]string{"---", "---\n", "a\n---\n---\nb", "---\n---\na", "--- \n\n---a", "a ---\nb", "a\n\n \t---\nb", "a\r\n---\r\nb",
		"a\n---b\n---- c", "a\n---\n\n\n---\n \n---\nb\n---",
		"\v---\na", "a\u0085\n---\u00a0b"}, fuzzSeeds...)
	for _, first := range texts {
		for _, second := range texts[:12] {
			text := first + "\n" + second
			var want []string
			split := releaseutil.SplitManifests(text)
			for i := range len(split) {
				if one := split[fmt.Sprintf("manifest-%d", i)]; one != "" {
					want = append(want, one)
				}
			}
			if diff := cmp.Diff(want, documents(text)); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		}
	}
}

// TestHugeAndWrong covers what makes a fuzzer slow, and values of every other type in every field.
func TestHugeAndWrong(t *testing.T) {
	wrong := []any{nil, true, int64(-1), 1.5e300, []any{}, []any{[]any{nil}}, map[string]any{}, map[string]any{"a": map[string]any{"": nil}}}
	huge := []any{strings.Repeat("a", 1<<18), strings.Repeat("x: y\n", 1<<18), strings.Repeat("\"", 1<<18)}
	for _, files := range []map[string]string{fuzzForgetful, fuzzCareful} {
		c := load(t, files)
		for _, field := range fuzzFields {
			values := wrong
			if field == "text" {
				values = append(values, huge...)
			}
			for _, value := range values {
				rendered, err := c.Render(map[string]any{field: value}, shop, Capabilities{})
				if err != nil || Check(rendered, Allowed{Namespace: "shop", Kinds: c.Kinds(), Namespaced: namespaced}) != nil {
					continue
				}
				if len(rendered.Objects) != 2 || len(rendered.Hooks) != 0 {
					t.Errorf("a %T in %s: got %v", value, field, names(rendered))
				}
			}
		}
	}
}
