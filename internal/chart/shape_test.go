// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// forgetful is a chart whose author quoted nothing.
var forgetful = map[string]string{
	"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: config
  labels:
    text: {{ .Values.text }}
  annotations: {checked: "yes", note: {{ .Values.note }}}
data:
  inQuotes: "{{ .Values.text }}"
  block: |
    {{ .Values.block | indent 4 | trim }}
  {{ .Values.key }}: value
  last: constant
`,
	"templates/pod.yaml": `apiVersion: v1
kind: Pod
metadata:
  name: pod
spec:
  securityContext: {runAsUser: {{ .Values.user }}, runAsNonRoot: true}
  containers:
  - name: main
    image: {{ .Values.image }}
    args: ["--mode", {{ .Values.mode }}]
    env:
    - {name: SUM, value: {{ sha256sum .Values.block }}}
    {{- range .Values.list }}
    - name: {{ . }}
    {{- end }}
`,
	"values.yaml": "text: a\nnote: b\nblock: c\nkey: d\nuser: 1\nimage: e\nmode: f\nlist: []\n",
}

// careful is a chart whose author quoted everything.
var careful = map[string]string{
	"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: config
  labels: {text: {{ .Values.text | quote }}}
  annotations:
    checksum: {{ sha256sum (toJson .Values) }}
data:
  text: {{ .Values.text | toJson }}
  encoded: {{ .Values.text | b64enc }}
  block: |-
    {{- .Values.block | nindent 4 }}
  {{ .Values.key | quote }}: value
  inside: |
    {{- toYaml .Values.list | nindent 4 }}
list: {{- toYaml .Values.list | nindent 2 }}
flow: [{{ .Values.text | quote }}, {{ .Values.mode | quote }}]
`,
	"values.yaml": "text: a\nblock: c\nkey: d\nmode: f\nlist: []\n",
}

func TestAValueStaysInItsPlace(t *testing.T) {
	for _, tc := range []struct {
		name    string
		chart   map[string]string
		values  map[string]any
		refused bool
	}{
		{"harmless", forgetful, map[string]any{"text": "hello", "image": "reg.example.com:5000/a@sha256:abc", "mode": "a=b", "note": "x y"},
			false},
		{"a second document", forgetful, map[string]any{"text": "a\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata:\n  b: c"},
			true},
		{"a field of the same map", forgetful, map[string]any{"text": "a\n    other: b"}, true},
		{"another namespace", forgetful, map[string]any{"text": "a\n  namespace: kube-system"}, true},
		{"a field of the object", forgetful, map[string]any{"image": "a\n  hostNetwork: true"}, true},
		{"a field by a carriage return", forgetful, map[string]any{"image": "a\r  hostNetwork: true"}, true},
		{"a carriage return that indent does not see", forgetful, map[string]any{"block": "a\rkind: Secret"}, true},
		{"a line separator that indent does not see", forgetful, map[string]any{"block": "a\u2028more: b"}, true},
		{"a next line that indent does not see", forgetful, map[string]any{"block": "a\u0085more: b"}, true},
		{"out of quotes", forgetful, map[string]any{"text": "a\"\n  more: \"b"}, true},
		{"a field in a flow map", forgetful, map[string]any{"user": "0, privileged: true"}, true},
		{"the chart's own field hidden and replaced", forgetful, map[string]any{"user": "0, runAsNonRoot: false} #"}, true},
		{"the chart's own field made null", forgetful, map[string]any{"note": "a, checked"}, true},
		{"an item in a flow list", forgetful, map[string]any{"mode": "a, --insecure"}, true},
		{"a quote opened here and closed there", forgetful, map[string]any{"key": "\"", "text": "\\"}, true},
		{"a key that brings another", forgetful, map[string]any{"key": "a: b #"}, true},
		{"an item that becomes a map", forgetful, map[string]any{"list": []any{"a\n      value: b"}}, true},
		{"everything at once, quoted", careful, map[string]any{
			"text": "a\r\nb: \"c\" 'd' \\ {e} [f], # g\n---\nkind: Secret\n", "block": "x\n  y: z\n\nw\n",
			"key": "a: \"b\"", "mode": "]}", "list": []any{"- a\n- b", map[string]any{"c: d": "{"}}}, false},
		{"a carriage return that nindent does not see", careful, map[string]any{"block": "a\rmore: b"}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := load(t, tc.chart).Render(tc.values, shop, Capabilities{})
			var refusal *Error
			if (err != nil) != tc.refused || err != nil && !errors.As(err, &refusal) {
				t.Errorf("got %v, want refused = %v", err, tc.refused)
			}
		})
	}
}

func TestTheRefusalTellsWhereAndWhy(t *testing.T) {
	c := load(t,
		map[string]string{
			"templates/c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {a: b}\ndata:\n  text: {{ .Values.deep.text }}\n"})
	_, err := c.Render(map[string]any{"deep": map[string]any{"text": "a\n  more: b"}, "n": int64(1)}, shop, Capabilities{})
	const want = "spec.deep.text: its special characters would change demo/templates/c.yaml[0]: data beside the value itself; leave line breaks"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got  %v\nwant %s…", err, want)
	}
}

// A chart that looks strings up in lists, as kyverno's does, gives other objects for them although it writes none of them.
func TestStructuredValuesAreAllowedOnRequest(t *testing.T) {
	files := map[string]string{"values.yaml": "leaveOut: []\n", "templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: config}
data:
  filters: "{{ range list "[Node,*,*]" "[Event,*,*]" }}{{ if not (has . $.Values.leaveOut) }}{{ . }}{{ end }}{{ end }}"
`}
	c := load(t, files)
	values := map[string]any{"leaveOut": []any{"[Node,*,*]"}}
	if _, err := c.Render(values, Release{Name: "r", Namespace: "n"}, Capabilities{}); err == nil ||
		!strings.Contains(err.Error(), "allow.structuredValues") {
		t.Errorf("without leave it is refused, and the refusal names the leave: %v", err)
	}
	rendered, err := c.AllowStructuredValues().Render(values, Release{Name: "r", Namespace: "n"}, Capabilities{})
	if err != nil {
		t.Fatal(err)
	}
	if got, _, _ := unstructured.NestedString(rendered.Objects[0].Object, "data", "filters"); got != "[Event,*,*]" {
		t.Errorf("got %q", got)
	}
}
