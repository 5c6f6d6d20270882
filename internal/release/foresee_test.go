// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/pause"
)

func (s *shop) foresee(o Options) (*Foresight, error) {
	s.t.Helper()
	s.wrote = nil
	f, err := Foresee(s.t.Context(), s.web(), s.r.entry, s.r.chart, o, Cluster{Capabilities: s.asker.ask, Live: s.live(), Dry: s.live()})
	if len(s.wrote) > 0 {
		s.t.Errorf("looking ahead wrote %v", s.wrote)
	}
	return f, err
}

// What would be done is what a reconciliation then does, also for what is paused or being deleted, and for what is as it was.
func TestForesee(t *testing.T) {
	template := chartOf(t, configTemplate, listTemplate, hookTemplate("h", "post-install", ""))
	for name, tt := range map[string]struct {
		metadata string
		change   func(*shop)
		names    string // of what is rendered
		revision int64
		applied  string
		pruned   string
	}{
		"new": {"", func(*shop) {}, "web b", 1, "created ConfigMap shop/web, created ConfigMap shop/b", "nothing changed"},
		"paused": {"annotations: {" + pause.Annotation + ": 'true'}", func(*shop) {}, "web b", 1,
			"created ConfigMap shop/web, created ConfigMap shop/b", "nothing changed"},
		"being deleted": {"finalizers: [" + Finalizer + "]", func(s *shop) { s.deletes() }, "web b", 1,
			"created ConfigMap shop/web, created ConfigMap shop/b", "nothing changed"},
		"as it was": {"", func(s *shop) { s.play(func() {}) }, "web b", 1, "nothing changed", "nothing changed"},
		"changed": {"", func(s *shop) { s.play(func() {}); s.asks("{text: a, names: [c]}") }, "web c", 2, "created ConfigMap shop/c",
			"deleted ConfigMap shop/b"},
		"changed, and being deleted": {"finalizers: [" + Finalizer + "]",
			func(s *shop) { s.play(func() {}); s.asks("{text: a, names: [c]}"); s.deletes() }, "web c", 2, "created ConfigMap shop/c",
			"deleted ConfigMap shop/b"},
	} {
		s := newShop(t, tt.metadata, "{text: a, names: [b]}", template, Options{})
		tt.change(s)
		f, err := s.foresee(Options{})
		if err != nil || f.Failure != nil || f.Rendered == nil || f.Revision != tt.revision || len(f.Rendered.Hooks) != 1 {
			t.Fatalf("%s: %+v, %v", name, f, err)
		}
		var names []string
		for _, o := range f.Rendered.Objects {
			names = append(names, o.GetName())
		}
		if got := strings.Join(names, " "); got != tt.names {
			t.Errorf("%s: %s is rendered", name, got)
		}
		applied, pruned, err := f.Deploy(t.Context())
		if err != nil || applied.String() != tt.applied || pruned.String() != tt.pruned {
			t.Errorf("%s: %s, %s, %v", name, applied, pruned, err)
		}
		objects, hooks, err := f.Sent()
		if err != nil || len(objects) != 2 || len(hooks) != 1 {
			t.Fatalf("%s: %v, %v, %v", name, objects, hooks, err)
		}
		for _, o := range slices.Concat(objects, hooks) {
			owned := metav1.GetControllerOf(o) != nil || o.GetAnnotations()[handler.NamespacedNameAnnotation] == "shop/web"
			if o.GetNamespace() != "shop" || o.GetLabels()[apply.ManagedByLabel] != apply.ManagedByValue || !owned {
				t.Errorf("%s: %v", name, o)
			}
		}
	}
}

// What is wrong with a resource is found as a reconciliation would find it; what was rendered to find it is of interest all the same.
func TestForeseeWhatFails(t *testing.T) {
	elsewhere := chartOf(t, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n")
	looking := chartOf(t,
		`{{ $_ := lookup "v1" "Secret" "shop" "s" }}`+"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n")
	invalid := func(*unstructured.Unstructured) field.ErrorList {
		return field.ErrorList{field.Required(field.NewPath("spec"), "x")}
	}
	for name, tt := range map[string]struct {
		chart    *chart.Chart
		validate func(*unstructured.Unstructured) field.ErrorList
		refuse   string
		invalid  bool
		rendered bool
		failure  bool
		fails    bool
	}{
		"it is invalid":           {chart: elsewhere, validate: invalid, invalid: true},
		"it may not be made":      {chart: elsewhere, rendered: true, failure: true},
		"it looks, and so on":     {chart: looking, rendered: true, failure: true},
		"it is not rendered":      {chart: chartOf(t, `{{ fail "no" }}`), failure: true},
		"the history is not read": {chart: elsewhere, refuse: "list", fails: true},
	} {
		s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", tt.chart, Options{})
		s.refusals[tt.refuse+" "] = nil
		if tt.refuse != "" {
			s.refusals[tt.refuse] = errAway
		}
		f, err := s.foresee(Options{Validate: tt.validate})
		if (err != nil) != tt.fails {
			t.Fatalf("%s: %v", name, err)
		}
		if err != nil {
			continue
		}
		if (len(f.Invalid) > 0) != tt.invalid || (f.Rendered != nil) != tt.rendered || (f.Failure != nil) != tt.failure {
			t.Errorf("%s: %v, %v, %v", name, f.Invalid, f.Rendered, f.Failure)
		}
		if tt.failure {
			if _, _, err := f.Deploy(t.Context()); err == nil || len(s.wrote) > 0 {
				t.Errorf("%s: %v, wrote %v", name, err, s.wrote)
			}
		}
	}
}

// Without a cluster nothing exists, and a lookup finds nothing.
func TestForeseeWithoutACluster(t *testing.T) {
	s := newShop(t, "finalizers: ["+Finalizer+"]", "{text: a}", chartOf(t, sourceTemplate, hookTemplate("h", "post-install", "")), Options{})
	namespaced := func(kind schema.GroupVersionKind) (bool, error) {
		if kind.Kind == "Job" {
			return false, errAway
		}
		return true, nil
	}
	f, err := Foresee(t.Context(), s.web(), s.r.entry, s.r.chart, Options{}, Cluster{Capabilities: s.asker.ask, Namespaced: namespaced})
	if !errors.Is(f.Failure, errAway) && !errors.Is(err, errAway) {
		t.Errorf("a scope that is not known: %v, %v", f.Failure, err)
	}
	f, err = Foresee(t.Context(), s.web(), s.r.entry, s.r.chart, Options{}, Cluster{Capabilities: s.asker.ask,
		Namespaced: everythingNamespaced})
	if err != nil || f.Failure != nil || f.Digest == "" {
		t.Fatalf("%v, %v, digest %q", err, f.Failure, f.Digest)
	}
	if text, _, _ := unstructured.NestedString(f.Rendered.Objects[0].Object, "data", "text"); text != "none" {
		t.Errorf("it says %s", text)
	}
	f.engine.namespaced = namespaced
	if _, _, err := f.Sent(); !errors.Is(err, errAway) {
		t.Errorf("a hook whose scope is not known: %v", err)
	}
	f.engine.namespaced = func(schema.GroupVersionKind) (bool, error) { return false, errAway }
	if _, _, err := f.Sent(); !errors.Is(err, errAway) || !strings.Contains(err.Error(), "find the scope of ConfigMap web") {
		t.Errorf("an object whose scope is not known: %v", err)
	}
	if err := (nowhere{}).Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("there is something: %v", err)
	}
}

// What a chart looks at in the cluster is looked at, what it invented before is not invented again, and a watch that is wrong is told.
func TestForeseeLooksAtTheCluster(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, routedTemplate), Options{})
	s.asker.apis = []string{"v1", routeAPI}
	f, err := s.foresee(Options{})
	if err != nil || f.Failure != nil || len(f.Rendered.Objects) != 1 || f.Rendered.Objects[0].GetKind() != "HTTPRoute" {
		t.Errorf("an API that is served: %+v, %v", f, err)
	}
	s = newShop(t, "", "{text: a}", chartOf(t, passwordTemplate), Options{})
	s.settle()
	f, err = s.foresee(Options{})
	if err != nil || f.Failure != nil {
		t.Fatalf("%v, %v", err, f.Failure)
	}
	if p, _, _ := unstructured.NestedString(f.Rendered.Objects[0].Object, "stringData", "p"); p != s.password() || p == "" {
		t.Errorf("the password is %q, and would be %q", s.password(), p)
	}
	s = newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.r.entry.OverrideValues = map[string]string{"text": "{{ fail }}"}
	if f, err := s.foresee(Options{}); err == nil || f.Rendered != nil {
		t.Errorf("values of the watch that cannot be are taken, or left out: %v", err)
	}
}
