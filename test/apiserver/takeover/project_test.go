// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package takeover

import (
	"os"
	"path/filepath"
	"testing"

	"middleware.hc.cn/operator/test/apiserver/environment"
)

// watchesFile is read by both operators. helm-operator ignores the field allow; this operator asks for it before it makes
// cluster-scoped objects.
const watchesFile = `- group: takeover.middleware.hc.cn
  version: v1
  kind: Shop
  chart: helm-charts/shop
- group: takeover.middleware.hc.cn
  version: v1
  kind: Reader
  chart: helm-charts/reader
  allow:
    clusterScoped: true
`

// project is what a Helm operator's project has, by path.
var project = map[string]string{
	"watches.yaml": watchesFile,
	"helm-charts/shop/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\nappVersion: \"7\"\n" +
		"dependencies:\n- {name: cache, version: 1.0.0, condition: cache.enabled}\n",
	"helm-charts/shop/values.yaml": "text: hello\nreplicas: 1\ncache: {enabled: true}\n",
	"helm-charts/shop/templates/_helpers.tpl": `{{- define "shop.labels" -}}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
`,
	"helm-charts/shop/templates/serviceaccount.yaml": `apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "shop.labels" . | nindent 4 }}
`,
	"helm-charts/shop/templates/configmap.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "shop.labels" . | nindent 4 }}
data:
  text: {{ .Values.text | quote }}
  dropped: "1.0.0 has this, 1.1.0 does not"
`,
	"helm-charts/shop/templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
  namespace: {{ .Release.Namespace }}
  labels: {{- include "shop.labels" . | nindent 4 }}
spec:
  ports:
  - {name: http, port: 80, targetPort: http}
  selector: {app.kubernetes.io/instance: {{ .Release.Name | quote }}}
`,
	"helm-charts/shop/templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "shop.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  minReadySeconds: 5
  selector:
    matchLabels: {app.kubernetes.io/instance: {{ .Release.Name | quote }}}
  template:
    metadata:
      labels: {app.kubernetes.io/instance: {{ .Release.Name | quote }}}
    spec:
      serviceAccountName: {{ .Release.Name }}
      containers:
      - name: web
        image: registry.example/web:1
        env:
        - {name: TEXT, value: {{ .Values.text | quote }}}
        - {name: DROPPED, value: "yes"}
        ports:
        - {name: http, containerPort: 8080}
`,
	"helm-charts/shop/charts/cache/Chart.yaml":  "apiVersion: v2\nname: cache\nversion: 1.0.0\n",
	"helm-charts/shop/charts/cache/values.yaml": "enabled: true\nsize: 64\n",
	"helm-charts/shop/charts/cache/templates/configmap.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-cache
data:
  size: {{ .Values.size | quote }}
`,
	"helm-charts/reader/Chart.yaml":  "apiVersion: v2\nname: reader\nversion: 1.0.0\n",
	"helm-charts/reader/values.yaml": "text: hello\n",
	"helm-charts/reader/templates/objects.yaml": `apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {{ .Release.Namespace }}-{{ .Release.Name }}
rules:
- apiGroups: [""]
  resources: [configmaps]
  verbs: [get]
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}
data:
  text: {{ .Values.text | quote }}
`,
}

// newVersion replaces files of the project: it drops fields of objects, and leaves the rest as it is.
var newVersion = map[string][2]string{
	"helm-charts/shop/Chart.yaml":                {"version: 1.0.0\nappVersion", "version: 1.1.0\nappVersion"},
	"helm-charts/shop/templates/configmap.yaml":  {"  dropped: \"1.0.0 has this, 1.1.0 does not\"\n", ""},
	"helm-charts/shop/templates/deployment.yaml": {"  minReadySeconds: 5\n", ""},
}

// droppedVariable is dropped from the Deployment's template as well.
const droppedVariable = "        - {name: DROPPED, value: \"yes\"}\n"

// write writes files into a directory.
func write(t *testing.T, directory string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(directory, filepath.FromSlash(name))
		environment.Check(t, os.MkdirAll(filepath.Dir(path), 0o750))
		environment.Check(t, os.WriteFile(path, []byte(content), 0o600))
	}
}
