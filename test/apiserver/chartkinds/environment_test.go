// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chartkinds runs the chart engine against a real API server: `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/...`.
// No controller manager runs there, so workloads get no pods: tests write the status their controllers would write.
package chartkinds

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
)

// root is the directory of the project.
const root = "../../.."

var (
	environment = &envtest.Environment{
		CRDs:                  []*apiextensionsv1.CustomResourceDefinition{newCRD("Web", true), newCRD("Plain", false)},
		CRDDirectoryPaths:     []string{filepath.Join(root, "config", "crd", "bases")},
		ErrorIfCRDPathMissing: true,
	}
	admin *rest.Config
	api   client.Client

	webKind   = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Web"}
	plainKind = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Plain"} // without a status subresource
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\nset KUBEBUILDER_ASSETS to the directory hack/envtest.sh prints\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctrl.SetLogger(logr.Discard()) // tests tell what failed
	var err error
	if admin, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = environment.Stop() }() // its processes end with this one at the latest
	if api, err = client.New(admin, client.Options{Scheme: scheme.Scheme}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// newCRD describes a kind whose spec and status take anything.
func newCRD(kind string, statusSubresource bool) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	var subresources *apiextensionsv1.CustomResourceSubresources
	if statusSubresource {
		subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	free := apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: ptr.To(true)}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + webKind.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: webKind.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: subresources,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"spec": free, "status": free},
				}},
			}},
		},
	}
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
	// requests counts what the operator asks of the API server, watches and Events apart.
	requests *atomic.Int64
	// passes counts the passes that were begun.
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
	op := operator{requests: new(atomic.Int64), passes: new(atomic.Int64)}
	counted := rest.CopyConfig(as)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, op.requests} })
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: scheme.Scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
		Cache:      cache.Options{DefaultNamespaces: map[string]cache.Config{namespace: {}}},
	})
	check(t, err)
	children, err := cache.New(counted, cache.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultNamespaces:    map[string]cache.Config{namespace: {}},
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{apply.ManagedByLabel: apply.ManagedByValue})})
	check(t, err)
	check(t, mgr.Add(children))
	add(t, mgr, children, op)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	var once atomic.Bool
	op.stop = func() {
		if once.CompareAndSwap(false, true) {
			cancel()
			check(t, <-ended)
		}
	}
	t.Cleanup(op.stop)
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
	files := fstest.MapFS{}
	for name, content := range webChart {
		files[name] = &fstest.MapFile{Data: []byte(content)}
	}
	loaded, err := chart.Load(files)
	check(t, err)
	check(t, release.Add(mgr, children, watches.Watch{GroupVersionKind: kind, WatchDependentResources: true, Selector: labels.Everything()}, loaded, release.Options{
		ServiceAccount: "system:operator",
		Validate: func(cr *unstructured.Unstructured) field.ErrorList {
			op.passes.Add(1)
			if text, _, _ := unstructured.NestedString(cr.Object, "spec", "text"); text == "forbidden" {
				return field.ErrorList{field.Invalid(field.NewPath("spec", "text"), text, "is not allowed; choose another")}
			}
			return nil
		},
	}))
}

type counter struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" && !strings.Contains(request.URL.Path, "/events") {
		c.count.Add(1)
	}
	return c.next.RoundTrip(request)
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newNamespace makes a namespace named after the test.
func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "chartkinds-"}}
	check(t, api.Create(context.Background(), namespace))
	return namespace.Name
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
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(gvk)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// get reads an object again; it returns false if there is none.
func get(t *testing.T, o client.Object) bool {
	t.Helper()
	err := api.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	check(t, client.IgnoreNotFound(err))
	return err == nil
}

// change reads an object, changes it and writes it, as another client would.
func change[T client.Object](t *testing.T, o T, how func(T)) {
	t.Helper()
	eventually(t, "another client's write", func() string {
		if !get(t, o) {
			return "it is gone"
		}
		how(o)
		if err := api.Update(context.Background(), o, client.FieldOwner("another-client")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// eventually waits until holds returns the empty string; its last answer is the failure's reason.
func eventually(t *testing.T, what string, holds func() string) {
	t.Helper()
	var last string
	for deadline := time.Now().Add(60 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if last = holds(); last == "" {
			return
		}
	}
	t.Fatalf("%s did not happen: %s", what, last)
}
