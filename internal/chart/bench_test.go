// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// smallChart has three objects and a schema, in the manner of `helm create`.
func smallChart(t testing.TB) *Chart {
	return load(t, map[string]string{
		"values.yaml":        "replicas: 1\nimage: {repository: nginx, tag: latest}\nservice: {port: 80}\nresources: {}\n",
		"values.schema.json": `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","properties":{"replicas":{"type":"integer"}}}`,
		"templates/_helpers.tpl": `{{- define "demo.name" -}}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "demo.labels" }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
`,
		"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "demo.name" . }}
  labels: {{- include "demo.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "demo.labels" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "demo.labels" . | nindent 8 }}
    spec:
      serviceAccountName: {{ include "demo.name" . }}
      containers:
        - name: main
          image: "{{ .Values.image.repository }}:{{ .Values.image.tag }}"
          ports: [{containerPort: {{ .Values.service.port }}, name: http}]
          resources: {{- toYaml .Values.resources | nindent 12 }}
`,
		"templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ include "demo.name" . }}
  labels: {{- include "demo.labels" . | nindent 4 }}
spec:
  selector: {{- include "demo.labels" . | nindent 4 }}
  ports: [{port: {{ .Values.service.port }}, targetPort: http}]
`,
		"templates/serviceaccount.yaml": "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: {{ include \"demo.name\" . }}\n",
	})
}

// largeChart has 40 objects, 20 of them from two dependencies.
func largeChart(t testing.TB) *Chart {
	files := map[string]string{
		"Chart.yaml":             "apiVersion: v2\nname: demo\nversion: 1.2.3\ndependencies:\n- {name: one, version: 1.0.0, condition: one.enabled}\n- {name: two, version: 1.0.0}\n",
		"charts/one/Chart.yaml":  "apiVersion: v2\nname: one\nversion: 1.0.0\n",
		"charts/two/Chart.yaml":  "apiVersion: v2\nname: two\nversion: 1.0.0\n",
		"values.yaml":            "one: {enabled: true, text: a}\ntwo: {text: b}\ntext: c\n",
		"charts/one/values.yaml": "text: default\n",
		"charts/two/values.yaml": "text: default\n",
		"templates/_labels.tpl":  "{{ define \"labels\" }}\na: {{ .Chart.Name }}\nb: {{ .Release.Name }}\n{{- end }}\n",
		"templates/NOTES.txt":    "Installed {{ .Release.Name }}.\n",
		"README.md":              strings.Repeat("A chart for measuring, with the text a chart of this size has.\n", 200),
	}
	for i := range 40 {
		dir := []string{"", "", "charts/one/", "charts/two/"}[i%4]
		files[fmt.Sprintf("%stemplates/c%d.yaml", dir, i)] =
			fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-%d\n"+
				"  labels: {{- include \"labels\" . | nindent 4 }}\ndata:\n  text: {{ .Values.text | quote }}\n  {{- range until 10 }}\n  key-{{ . }}: {{ . | quote }}\n  {{- end }}\n", i)
	}
	return load(t, files)
}

var charts = map[string]func(testing.TB) *Chart{"3 objects": smallChart, "40 objects": largeChart}

var someValues = map[string]any{
	"replicas": int64(3), "text": "hello", "image": map[string]any{"repository": "registry.example.com/team/app", "tag": "v1.2.3"},
	"resources": map[string]any{"limits": map[string]any{"cpu": "500m", "memory": "256Mi"}},
}

func BenchmarkRender(b *testing.B) {
	withText := copyValues(someValues)
	withText["text"] = "first line\nsecond line\n"
	for size, of := range charts {
		for kind, values := range map[string]map[string]any{"plain": someValues, "line breaks": withText} {
			b.Run(size+"/"+kind, func(b *testing.B) {
				c := of(b)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := c.Render(values, shop, Capabilities{}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkDigestFor measures what every reconciliation of every idle resource costs.
func BenchmarkDigestFor(b *testing.B) {
	capabilities := Capabilities{KubeVersion: "v1.37.2"}
	for i := range 300 {
		capabilities.APIVersions = append(capabilities.APIVersions, fmt.Sprintf("group%d.example.com/v1/SomeKind", i))
	}
	looks := load(b, map[string]string{"templates/c.yaml": configMap + "{{ .Capabilities.KubeVersion }}"})
	for name, c := range map[string]*Chart{"values": smallChart(b), "values and capabilities": looks} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.DigestFor(someValues, shop, capabilities); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkEncodeRelease(b *testing.B) {
	at := time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)
	for size, of := range charts {
		b.Run(size, func(b *testing.B) {
			c := of(b)
			rendered, err := c.Render(someValues, shop, Capabilities{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.EncodeRelease(rendered, Record{Release: shop, Status: StatusDeployed, FirstDeployed: at, LastDeployed: at}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
