// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package preview compares what `manager render --diff` foretells with what the operator does, against a real API server:
// `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/...`.
package preview

import (
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/preview"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	siteKind = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Site"}

	server = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{shared.FreeCRD(siteKind, shared.WithStatus())}}
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m, server, scheme.Scheme, shared.Into(&admin, &api)))
}

// siteFiles are a watches file and its chart: a ConfigMap, a Secret, a Service that can be left out, a Deployment whose replicas can
// be left to others, and a Job whose command cannot be changed.
var siteFiles = map[string]string{
	"watches.yaml":     "- {group: test.middleware.hc.cn, version: v1, kind: Site, chart: chart}\n",
	"chart/Chart.yaml": "apiVersion: v2\nname: site\nversion: 1.0.0\n",
	"chart/values.yaml": `text: hello
password: very secret
service: true
replicas: null
command: first
`,
	"chart/templates/site.yaml": `apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name | quote }}}
data: {text: {{ .Values.text | quote }}}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Release.Name | quote }}}
stringData: {password: {{ .Values.password | quote }}}
{{- if .Values.service }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ .Release.Name | quote }}}
spec:
  selector: {app: {{ .Release.Name | quote }}}
  ports: [{name: http, port: 80, targetPort: 8080}]
{{- end }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name | quote }}}
spec:
  {{- with .Values.replicas }}
  replicas: {{ . | int }}
  {{- end }}
  selector: {matchLabels: {app: {{ .Release.Name | quote }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name | quote }}}}
    spec: {containers: [{name: web, image: "web:1"}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: {{ .Release.Name | quote }}}
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: job, image: "web:1", command: [{{ .Values.command | quote }}]}]
`,
}

// writeProject writes files into a directory of the test and returns the project of its watches.yaml.
func writeProject(t *testing.T, files map[string]string) preview.Project {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		shared.Check(t, os.MkdirAll(filepath.Dir(path), 0o755))
		shared.Check(t, os.WriteFile(path, []byte(content), 0o600))
	}
	return preview.Project{WatchesFile: filepath.Join(dir, "watches.yaml"), Env: os.LookupEnv}
}

// startOperator runs the kinds of a project for one namespace.
func startOperator(t *testing.T, p preview.Project, namespace string) {
	t.Helper()
	entries, err := watches.Load(p.WatchesFile, p.Env)
	shared.Check(t, err)
	mgr, children, err := shared.NewManager(admin, scheme.Scheme, namespace)
	shared.Check(t, err)
	for _, entry := range entries {
		loaded, err := chart.LoadPath(entry.Chart)
		shared.Check(t, err)
		shared.Check(t, release.Add(mgr, children, entry, loaded, release.Options{}))
	}
	shared.Start(t, mgr)
}
