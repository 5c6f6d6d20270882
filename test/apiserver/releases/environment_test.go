// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package releases runs charts with hooks, CRDs, lookup, random values and objects in other places through the chart engine,
// against a real API server. No controller manager runs there: tests write the status its controllers would write.
package releases

import (
	"context"
	"os"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/internal/watches"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	kind = schema.GroupVersionKind{Group: "test.middleware.hc.cn", Version: "v1", Kind: "Web"}

	server = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{environment.FreeCRD(kind, environment.WithStatus())}}
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	os.Exit(environment.Run(m, server, scheme.Scheme, environment.Into(&admin, &api)))
}

// operator is a running chart engine.
type operator struct {
	requests *environment.Requests
	stop     func()
}

// start runs the kind with a chart, in one namespace or in all if the watch lets resources reach others.
func start(t *testing.T, namespace string, files map[string]string, allow watches.Allow) operator {
	t.Helper()
	op := operator{requests: new(environment.Requests)}
	var namespaces []string
	if len(allow.Namespaces) == 0 {
		namespaces = []string{namespace}
	}
	mgr, children, err := environment.NewManager(op.requests.Of(admin), scheme.Scheme, namespaces...)
	check(t, err)
	mapped := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")}}
	for name, content := range files {
		mapped[name] = &fstest.MapFile{Data: []byte(content)}
	}
	loaded, err := chart.Load(mapped)
	check(t, err)
	selector, err := labels.Parse("test=" + namespace)
	check(t, err)
	check(t, release.Add(mgr, children, watches.Watch{GroupVersionKind: kind, WatchDependentResources: true, Selector: selector, Allow: allow},
		loaded,
		release.Options{ServiceAccount: "system:operator"}))
	op.stop = environment.Start(t, mgr)
	return op
}

// newWeb creates a resource for the operator of its namespace.
func newWeb(t *testing.T, namespace, name string, change func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	web := environment.Object(kind, namespace, name)
	web.SetLabels(map[string]string{"test": namespace})
	web.Object["spec"] = map[string]any{}
	if change != nil {
		change(web)
	}
	check(t, api.Create(context.Background(), web))
	return web
}

func spec(values map[string]any) func(*unstructured.Unstructured) {
	return func(web *unstructured.Unstructured) { web.Object["spec"] = values }
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(web *unstructured.Unstructured) { web.SetAnnotations(map[string]string{key: value}) }
}

var check = environment.Check

func get(t *testing.T, o client.Object) bool {
	t.Helper()
	return environment.Get(t, api, o)
}

// has waits for a condition whose reason and message contain a text.
func has(t *testing.T, web *unstructured.Unstructured, conditionType string, status metav1.ConditionStatus, text string) {
	t.Helper()
	environment.Eventually(t, web.GetName()+" "+conditionType, func() string { return says(t, web, conditionType, status, text) })
}

func says(t *testing.T, web *unstructured.Unstructured, conditionType string, status metav1.ConditionStatus, text string) string {
	t.Helper()
	get(t, web)
	c := meta.FindStatusCondition(conditions.Read(web), conditionType)
	if c == nil || c.Status != status || !contains(c.Reason+": "+c.Message, text) {
		return conditionText(c)
	}
	if c.ObservedGeneration != web.GetGeneration() {
		return "it is about an older generation"
	}
	return ""
}
