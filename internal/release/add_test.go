// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/operator-framework/operator-lib/handler"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllertest"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/watches"
)

// shown is a cache whose events a test makes.
type shown struct {
	*informertest.FakeInformers
	client.Reader
	// whole are kinds of which all is cached, and not metadata alone.
	whole map[schema.GroupVersionKind]bool
	// hears has one for each that listens to events.
	hears chan struct{}
}

func newShown(from client.Reader) shown {
	return shown{&informertest.FakeInformers{Scheme: runtime.NewScheme()}, from, map[schema.GroupVersionKind]bool{}, make(chan struct{}, 100)}
}

// heard is an informer that tells who listens to it: events must not be made meanwhile.
type heard struct {
	cache.Informer
	hears chan struct{}
}

func (h heard) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, how toolscache.HandlerOptions) (
	toolscache.ResourceEventHandlerRegistration, error) {
	defer func() { h.hears <- struct{}{} }()
	return h.Informer.AddEventHandlerWithOptions(handler, how)
}

func (s shown) GetInformer(ctx context.Context, o client.Object, how ...cache.InformerGetOption) (cache.Informer, error) {
	kind := o.GetObjectKind().GroupVersionKind()
	_, s.whole[kind] = o.(*unstructured.Unstructured)
	informer, err := s.FakeInformers.GetInformer(ctx, kindOf(kind), how...)
	return heard{informer, s.hears}, err
}

func (s shown) informer(t *testing.T, kind schema.GroupVersionKind) *controllertest.FakeInformer {
	t.Helper()
	informer, err := s.FakeInformerFor(t.Context(), kindOf(kind))
	if err != nil {
		t.Fatal(err)
	}
	return informer
}

func (s shown) Get(ctx context.Context, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
	return s.Reader.Get(ctx, key, into, how...)
}

func (s shown) List(ctx context.Context, list client.ObjectList, how ...client.ListOption) error {
	return s.Reader.List(ctx, list, how...)
}

// listener is a controller that has begun: what it is given to watch fills its queue.
type listener struct {
	controller.Controller
	t     *testing.T
	queue workqueue.TypedRateLimitingInterface[ctrl.Request]
	fails error
	began int
}

func (l *listener) Watch(from source.TypedSource[ctrl.Request]) error {
	if l.fails != nil {
		return l.fails
	}
	l.began++
	if err := from.Start(l.t.Context(), l.queue); err != nil {
		return err
	}
	return from.(source.TypedSyncingSource[ctrl.Request]).WaitForSync(l.t.Context())
}

// taken are the requests in the queue.
func (l *listener) taken() (all []string) {
	for l.queue.Len() > 0 {
		r, _ := l.queue.Get()
		l.queue.Done(r)
		all = append(all, r.String())
	}
	return all
}

// settings is a manager that is asked for nothing else.
type settings struct{ manager.Manager }

func (settings) GetScheme() *runtime.Scheme     { return known }
func (settings) GetRESTMapper() meta.RESTMapper { return mapper() }
func (settings) GetConfig() *rest.Config        { return nil }
func (settings) GetHTTPClient() *http.Client    { return nil }

// What happens to a child wakes its owner, be that known by reference or by annotation, once a kind is watched; and nobody else.
func TestChildrenWakeTheirOwner(t *testing.T) {
	informers := newShown(nil)
	l := &listener{t: t, queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[ctrl.Request]())}
	watch := childWatches(settings{}, informers, watches.Watch{GroupVersionKind: webs, WatchDependentResources: true}, l)
	l.fails = errAway
	if err := watch(deployments); !errors.Is(err, errAway) {
		t.Errorf("it cannot be watched: %v", err)
	}
	l.fails = nil
	for range 2 {
		for _, kind := range []schema.GroupVersionKind{deployments, configs} {
			if err := watch(kind); err != nil {
				t.Fatal(err)
			}
		}
	}
	if l.began != 4 {
		t.Errorf("%d watches of two kinds, each by reference and by annotation", l.began)
	}
	if !informers.whole[deployments] || informers.whole[configs] {
		t.Errorf("of kinds with a status all is cached, of the others metadata: %v", informers.whole)
	}
	const whole, part = "{apiVersion: apps/v1, kind: Deployment, metadata: ", "{apiVersion: v1, kind: ConfigMap, metadata: "
	for _, tt := range []struct{ name, metadata, want string }{
		{"by reference", "{name: a, namespace: shop, ownerReferences: [{apiVersion: example.com/v1, kind: Web, name: web, uid: u, controller: true}]}", "shop/web"},
		{"not its controller", "{name: a, namespace: shop, ownerReferences: [{apiVersion: example.com/v1, kind: Web, name: web, uid: u}]}", ""},
		{"of another kind", "{name: a, namespace: shop, ownerReferences: [{apiVersion: example.com/v1, kind: Site, name: web, uid: u, controller: true}]}", ""},
		{"by annotation", "{name: a, namespace: other, annotations: {" + handler.TypeAnnotation + ": Web.example.com, " +
			handler.NamespacedNameAnnotation +
			": shop/web}}", "shop/web"},
		{"of another kind, by annotation", "{name: a, namespace: other, annotations: {" + handler.TypeAnnotation + ": Site.example.com, " +
			handler.NamespacedNameAnnotation + ": shop/web}}", ""},
		{"nobody's", "{name: a, namespace: shop}", ""},
	} {
		for kind, text := range map[schema.GroupVersionKind]string{deployments: whole, configs: part} {
			informer := informers.informer(t, kind)
			before := parse(t, text+tt.metadata+"}")
			before.SetResourceVersion("1")
			after := before.DeepCopy()
			after.SetResourceVersion("2")
			informer.Update(before, before)
			if got := l.taken(); len(got) > 0 {
				t.Errorf("%s %s: nothing happened: %v", kind.Kind, tt.name, got)
			}
			for what, happens := range map[string]func(){
				"is made": func() { informer.Add(before) }, "changes": func() { informer.Update(before, after) },
				"goes": func() { informer.Delete(after) },
			} {
				happens()
				if got := strings.Join(l.taken(), " "); got != tt.want {
					t.Errorf("%s %s %s: %q wakes up", kind.Kind, tt.name, what, got)
				}
			}
		}
	}
	l.began = 0
	quiet := childWatches(settings{}, informers, watches.Watch{GroupVersionKind: webs}, l)
	if err := quiet(deployments); err != nil || l.began > 0 {
		t.Errorf("a watch that wants none of children: %v, %d", err, l.began)
	}
}

// What changes what a resource asks for wakes its controller; its status does not.
func TestWhatWakesAController(t *testing.T) {
	old := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: web, generation: 1, resourceVersion: '1'}}")
	hears := ownPredicate(func(client.Object) bool { return true })
	for name, tt := range map[string]struct {
		metadata string
		want     bool
	}{
		"its spec":        {"{name: web, generation: 2}", true},
		"its annotations": {"{name: web, generation: 1, annotations: {a: b}}", true},
		"its labels":      {"{name: web, generation: 1, labels: {a: b}}", true},
		"its status":      {"{name: web, generation: 1, resourceVersion: '2'}", false},
	} {
		now := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: "+tt.metadata+"}")
		if hears.Update(event.UpdateEvent{ObjectOld: old, ObjectNew: now}) != tt.want {
			t.Errorf("%s: %t", name, !tt.want)
		}
	}
	if !hears.Create(event.CreateEvent{Object: old}) {
		t.Error("a new one is not heard")
	}
}

func TestDefaultsOfOptions(t *testing.T) {
	o := Options{}.withDefaults(watches.Watch{})
	if o.MaxHistory != defaultMaxHistory || o.MaxConcurrentReconciles != 1 || o.Now == nil || !strings.Contains(o.ServiceAccount,
		"NAMESPACE") {
		t.Errorf("%+v", o)
	}
	given := Options{MaxHistory: 1, MaxConcurrentReconciles: 3, ServiceAccount: "a:b", Now: func() time.Time { return now }}
	if o := given.withDefaults(watches.Watch{}); o.MaxHistory != 1 || o.MaxConcurrentReconciles != 3 || o.ServiceAccount != "a:b" ||
		!o.Now().Equal(now) {
		t.Errorf("%+v", o)
	}
	for of, want := range map[int]int{0: 3, 1: 1, 5: 5} {
		if o := given.withDefaults(watches.Watch{MaxConcurrentReconciles: of}); o.MaxConcurrentReconciles != want {
			t.Errorf("a watch of %d: %d", of, o.MaxConcurrentReconciles)
		}
	}
}

// chartDir is a chart in a folder.
func chartDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["Chart.yaml"] = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Strings decide what objects consist of only where the watch says so.
func TestLoad(t *testing.T) {
	dir := chartDir(t,
		map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ .Values.text }}\n"})
	for _, allowed := range []bool{false, true} {
		c, err := Load(watches.Watch{Chart: dir, Allow: watches.Allow{StructuredValues: allowed}})
		if err != nil {
			t.Fatal(err)
		}
		s := newShop(t, "", `{text: "{a: b}"}`, c, Options{})
		if s.settle(); (s.object(configs, "shop", "a") != nil) != allowed {
			t.Errorf("allowed: %t, %s", allowed, s.condition("Irreconcilable"))
		}
	}
	if _, err := Load(watches.Watch{Chart: filepath.Join(dir, "none"), Allow: watches.Allow{StructuredValues: true}}); err == nil {
		t.Error("a chart that is not there is loaded")
	}
}

// emptyAPI is an API server that has nothing, and what it was asked.
func emptyAPI(t *testing.T) (*httptest.Server, <-chan string) {
	t.Helper()
	requests := make(chan string, 100)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Method + " " + r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		if text, found := map[string]string{"/version": `{"gitVersion": "v1.31.0"}`, "/api": `{"kind": "APIVersions", "versions": []}`,
			"/apis": `{"kind": "APIGroupList", "apiVersion": "v1", "groups": []}`}[r.URL.Path]; found {
			_, _ = w.Write([]byte(text))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`))
	}))
	t.Cleanup(api.Close)
	return api, requests
}

// resourcesTold are the names of the resources of kind Web of which metrics tell a condition.
func resourcesTold(t *testing.T) (names []string) {
	t.Helper()
	if err := metrics.Register(); err != nil {
		t.Fatal(err)
	}
	families, err := ctrlmetrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if !strings.HasSuffix(family.GetName(), "_resource_condition") {
			continue
		}
		for _, m := range family.GetMetric() {
			of := map[string]string{}
			for _, label := range m.GetLabel() {
				of[label.GetName()] = label.GetValue()
			}
			if of["kind"] == "Web" {
				names = append(names, of["name"])
			}
		}
	}
	return names
}

// The controller of a kind, once it runs, works for what it is shown, and asks the API server past every cache. Metrics tell of what
// it works for.
func TestAdd(t *testing.T) {
	api, requests := emptyAPI(t)
	s := newServer(t)
	for _, name := range []string{"web", "unselected"} {
		web := parse(t,
			"{apiVersion: example.com/v1, kind: Web, metadata: {name: "+name+", namespace: shop, uid: "+name+", labels: {a: "+name+
				"}}, spec: {text: a}}")
		if err := s.Create(t.Context(), web); err != nil {
			t.Fatal(err)
		}
		s.sets(webs, name, "{conditions: [{type: Theirs, status: 'True', reason: R, lastTransitionTime: '2026-01-01T00:00:00Z'}]}")
	}
	seen := newShown(s.WithWatch)
	informer := seen.informer(t, webs)
	skip := true
	mgr, err := ctrl.NewManager(&rest.Config{Host: api.URL}, ctrl.Options{Scheme: known, Logger: logr.Discard(), LeaderElection: false,
		Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: &skip},
		MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return mapper(), nil },
		NewCache:       func(*rest.Config, cache.Options) (cache.Cache, error) { return seen, nil }})
	if err != nil {
		t.Fatal(err)
	}
	selector, err := labels.Parse("a=web")
	if err != nil {
		t.Fatal(err)
	}
	w := watches.Watch{GroupVersionKind: webs, WatchDependentResources: true, Selector: selector}
	look := `{{ $_ := lookup "v1" "ConfigMap" "shop" "source" }}{{ $_ := .Capabilities.KubeVersion }}`
	for says, add := range map[string]func() error{
		"make a client for Web": func() error { return Add(settings{}, seen, w, chartOf(t, configTemplate), Options{}) },
		"make the controller of": func() error {
			return Add(mgr, seen, watches.Watch{Selector: selector}, chartOf(t, configTemplate), Options{})
		},
	} {
		if err := add(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want: %s", err, says)
		}
	}
	var turns []string
	o := oneAfterTheOther
	o.Turns = func(kind, _ string) fleet.Ledger {
		turns = append(turns, kind)
		return nil
	}
	if err := Add(mgr, seen, w, chartOf(t, look+configTemplate), o); err != nil || !slices.Equal(turns, []string{"Web.example.com"}) {
		t.Fatalf("%v, waves of %v", err, turns)
	}
	broken := chartDir(t, map[string]string{"crds/a.yaml": "{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition"})
	if c, err := Load(watches.Watch{Chart: broken}); err == nil {
		if err := Add(mgr, seen, w, c, Options{}); err == nil || !strings.Contains(err.Error(), "crds/") {
			t.Errorf("a chart whose crds/ cannot be read: %v", err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- mgr.Start(ctx) }()
	<-mgr.Elected()
	<-seen.hears
	for _, name := range []string{"unselected", "web"} {
		informer.Add(s.object(webs, "shop", name))
	}
	var all []string
	for !slices.Contains(all, "PATCH /apis/example.com/v1/namespaces/shop/webs/web/status") {
		all = append(all, <-requests)
	}
	if told := resourcesTold(t); !slices.Equal(told, []string{"web"}) {
		t.Errorf("metrics tell of %v", told)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for request, want := range map[string]bool{"GET /api/v1/namespaces/shop/configmaps/source": true, "GET /version": true} {
		if slices.Contains(all, request) != want {
			t.Errorf("%s: %t, of %v", request, !want, all)
		}
	}
	if slices.ContainsFunc(all, func(r string) bool { return strings.Contains(r, "unselected") }) {
		t.Errorf("what is not selected is worked for: %v", all)
	}
}
