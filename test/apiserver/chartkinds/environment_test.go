// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chartkinds runs the chart engine against a real API server: `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/...`.
// No controller manager runs there, so workloads get no pods: tests write the status their controllers would write.
package chartkinds

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// root is the directory of the project.
const root = "../../.."

var (
	webKind   = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Web"}
	plainKind = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Plain"} // without a status subresource

	environment = &envtest.Environment{
		CRDs: []*apiextensionsv1.CustomResourceDefinition{shared.FreeCRD(webKind, shared.WithStatus()),
			shared.FreeCRD(plainKind, nil)},
		CRDDirectoryPaths:     []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	admin *rest.Config
	api   client.Client
)

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m, environment, scheme.Scheme, shared.Into(&admin, &api)))
}

// webChart has a Deployment whose replicas are left to others, a ConfigMap, a Service that can be left out, and a Job on request.
var webChart = map[string]string{
	"Chart.yaml":  "apiVersion: v2\nname: web\nversion: 1.0.0\n",
	"values.yaml": "text: hello\nservice: true\nconfigName: \"\"\nimage: web:1\njob: \"\"\n",
	"templates/config.yaml": `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Values.configName | default .Release.Name | quote }}
data:
  text: {{ .Values.text | quote }}
`,
	"templates/deployment.yaml": `apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {matchLabels: {app: {{ .Release.Name | quote }}}}
  template:
    metadata: {labels: {app: {{ .Release.Name | quote }}}}
    spec:
      containers:
      - {name: web, image: {{ .Values.image | quote }}}
`,
	"templates/service.yaml": `{{- if .Values.service }}
apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name }}
spec:
  selector: {app: {{ .Release.Name | quote }}}
  ports: [{name: http, port: 80, targetPort: 8080}]
{{- end }}
`,
	"templates/job.yaml": `{{- if .Values.job }}
apiVersion: batch/v1
kind: Job
metadata:
  name: {{ .Release.Name }}
  annotations: {middleware.hc.cn/recreate-on-immutable: "true"}
spec:
  template:
    spec:
      restartPolicy: Never
      containers:
      - {name: job, image: web:1, command: [{{ .Values.job | quote }}]}
{{- end }}
`,
}

// operator is a running manager with the Web kind, for one namespace.
type operator struct {
	requests *shared.Requests
	// passes counts the reconciliations that were begun.
	passes *atomic.Int64
	stop   func()
}

// startOperator runs the Web kind for one namespace until stop is called or the test ends.
func startOperator(t *testing.T, as *rest.Config, namespace string) operator {
	t.Helper()
	return startKinds(t, as, namespace, addWeb)
}

// startKinds runs the kinds that add registers.
func startKinds(t *testing.T, as *rest.Config, namespace string, add func(*testing.T, ctrl.Manager, cache.Cache, operator)) operator {
	t.Helper()
	op := operator{requests: new(shared.Requests), passes: new(atomic.Int64)}
	mgr, children, err := shared.NewManager(op.requests.Of(as), scheme.Scheme, namespace)
	check(t, err)
	add(t, mgr, children, op)
	op.stop = shared.Start(t, mgr)
	return op
}

// addWeb registers the Web kind.
func addWeb(t *testing.T, mgr ctrl.Manager, children cache.Cache, op operator) {
	t.Helper()
	addKind(t, mgr, children, op, webKind)
}

// addKind registers a kind with webChart. It refuses one text.
func addKind(t *testing.T, mgr ctrl.Manager, children cache.Cache, op operator, kind schema.GroupVersionKind) {
	t.Helper()
	addKindWithHistory(t, mgr, children, op, kind, 0)
}

// addKindWithHistory is addKind for a length of Helm's history; 0 is the default.
func addKindWithHistory(t *testing.T, mgr ctrl.Manager, children cache.Cache, op operator, kind schema.GroupVersionKind, length int) {
	t.Helper()
	files := fstest.MapFS{}
	for name, content := range webChart {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	loaded, err := chart.Load(files)
	check(t, err)
	check(t, release.Add(mgr, children, watches.Watch{GroupVersionKind: kind, WatchDependentResources: true, Selector: labels.Everything()},
		loaded, release.Options{
			ServiceAccount: "system:operator", MaxHistory: length,
			Validate: func(cr *unstructured.Unstructured) field.ErrorList {
				op.passes.Add(1)
				if text, _, _ := unstructured.NestedString(cr.Object, "spec", "text"); text == "forbidden" {
					return field.ErrorList{field.Invalid(field.NewPath("spec", "text"), text, "is not allowed; choose another")}
				}
				return nil
			},
		}))
}

var check = shared.Check

func newNamespace(t *testing.T) string {
	t.Helper()
	return shared.NewNamespace(t, api, "chartkinds")
}

// newWeb creates a Web with a spec.
func newWeb(t *testing.T, namespace, name string, spec map[string]any, finalizers ...string) *unstructured.Unstructured {
	t.Helper()
	web := object(webKind, namespace, name)
	web.Object["spec"] = spec
	web.SetFinalizers(finalizers)
	check(t, api.Create(context.Background(), web))
	return web
}

func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	return shared.Object(gvk, namespace, name)
}

// get reads an object again; it returns false if there is none.
func get(t *testing.T, o client.Object) bool {
	t.Helper()
	return shared.Get(t, api, o)
}

// change reads an object, changes it and writes it, as another client would.
func change[T client.Object](t *testing.T, o T, how func(T)) {
	t.Helper()
	shared.Change(t, api, o, how)
}

// eventually waits until holds returns the empty string; its last answer is the failure's reason.
var eventually = shared.Eventually
