// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
)

// kind is what both operators run, from the same chart.
var (
	kind        = schema.GroupVersionKind{Group: "bench.middleware.hc.cn", Version: "v1", Kind: "Web"}
	webs        = kind.GroupVersion().WithResource("webs")
	deployments = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}
	services    = schema.GroupVersionResource{Version: "v1", Resource: "services"}
	accounts    = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	secrets     = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}

	children = []schema.GroupVersionResource{deployments, services, accounts}
)

// newCRD describes the kind as operator-sdk's scaffolding of Helm operators does: any spec, any status.
func newCRD() *apiextensionsv1.CustomResourceDefinition {
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: webs.GroupResource().String()},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: kind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: webs.Resource, Singular: "web", Kind: kind.Kind, ListKind: "WebList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: kind.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
				}},
			}},
		},
	}
}

// newWeb is a custom resource. The text reaches the Deployment's environment.
func newWeb(namespace, name, text string) *unstructured.Unstructured {
	web := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"text": text}}}
	web.SetGroupVersionKind(kind)
	web.SetNamespace(namespace)
	web.SetName(name)
	return web
}

// image is that of the Deployment; nothing ever runs it.
const image = "registry.example/web:1"

// chartFiles are of the usual form: names and labels come from helpers.
var chartFiles = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\nappVersion: \"1\"\n",
	"values.yaml": "text: hello\nreplicas: 1\nimage: " + image + "\nport: 80\n",
	"templates/_helpers.tpl": `{{- define "web.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}
{{- define "web.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{ include "web.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}
`,
	"templates/serviceaccount.yaml": `apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "web.labels" . | nindent 4 }}
`,
	"templates/service.yaml": `apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  ports:
  - {name: http, port: {{ .Values.port }}, targetPort: http, protocol: TCP}
  selector: {{- include "web.selector" . | nindent 4 }}
`,
	"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
  labels: {{- include "web.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels: {{- include "web.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "web.selector" . | nindent 8 }}
    spec:
      serviceAccountName: {{ .Release.Name }}
      securityContext: {runAsNonRoot: true}
      containers:
      - name: web
        image: {{ .Values.image | quote }}
        env:
        - {name: TEXT, value: {{ .Values.text | quote }}}
        ports:
        - {name: http, containerPort: 8080, protocol: TCP}
        readinessProbe:
          httpGet: {path: /, port: http}
        resources:
          requests: {cpu: 10m, memory: 16Mi}
`,
}

// writeProject writes a watches file and its chart into a directory, as a Helm operator's project has them. dependents, if not
// empty, is the watch's watchDependentResources.
func writeProject(directory, dependents string) (watchesFile string, err error) {
	for name, content := range chartFiles {
		path := filepath.Join(directory, "helm-charts", "web", filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return "", err
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			return "", err
		}
	}
	watch := fmt.Sprintf("- group: %s\n  version: %s\n  kind: %s\n  chart: helm-charts/web\n", kind.Group, kind.Version, kind.Kind)
	if dependents != "" {
		watch += "  watchDependentResources: " + dependents + "\n"
	}
	watchesFile = filepath.Join(directory, "watches.yaml")
	return watchesFile, os.WriteFile(watchesFile, []byte(watch), 0o600)
}
