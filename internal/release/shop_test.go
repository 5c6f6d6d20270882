// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/watches"
)

var (
	configs     = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	secrets     = corev1.SchemeGroupVersion.WithKind("Secret")
	deployments = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

// Templates of charts.
const (
	configTemplate = `{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ .Release.Name }}}, data: {text: {{ .Values.text | quote }}}}`
	listTemplate   = "{{- range .Values.names }}\n---\n" +
		`{apiVersion: v1, kind: ConfigMap, metadata: {name: {{ . }}}, data: {text: {{ $.Values.text | quote }}}}` + "\n{{- end }}"
	deploymentTemplate = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: {{ .Release.Name }}}, spec: {replicas: 1,
  selector: {matchLabels: {app: {{ .Release.Name }}}}, template: {metadata: {labels: {app: {{ .Release.Name }}}},
  spec: {containers: [{name: c, image: {{ .Values.text | quote }}}]}}}}`
)

func chartOf(t testing.TB, templates ...string) *chart.Chart {
	t.Helper()
	files := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
		"values.yaml": {Data: []byte("text: x\nnames: []\n")}}
	for i, text := range templates {
		files["templates/"+string(rune('a'+i))+".yaml"] = &fstest.MapFile{Data: []byte(text)}
	}
	loaded, err := chart.Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// shop is the reconciler of a chart kind, its resource web in namespace shop, and the server that has both.
type shop struct {
	*server
	r       *Reconciler
	events  *events.FakeRecorder
	asker   *asker
	watched []string
	// unwatched is why a kind cannot be watched.
	unwatched error
}

// newShop makes one, with resource web as the text says it: what is in its metadata besides its name, and its spec.
func newShop(t *testing.T, metadata, spec string, c *chart.Chart, o Options, objects ...client.Object) *shop {
	t.Helper()
	s := &shop{server: newServer(t, objects...), events: events.NewFakeRecorder(1000),
		asker: &asker{apis: []string{"v1"}}}
	web := parse(t, "{apiVersion: example.com/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u, generation: 1, "+metadata+"}, spec: "+
		spec+"}")
	if err := s.Create(t.Context(), web); err != nil {
		t.Fatal(err)
	}
	s.start(c, o, watches.Watch{GroupVersionKind: webs, WatchDependentResources: true, Selector: labels.Everything()})
	return s
}

// start begins a process: what a former one remembered is forgotten.
func (s *shop) start(c *chart.Chart, o Options, w watches.Watch) {
	o.Now = func() time.Time { return s.clock }
	live, reader := s.live(), childReader{s.cache()}
	s.r = &Reconciler{gvk: w.GroupVersionKind, chart: c, options: o.withDefaults(w), entry: w, reader: s.WithWatch, live: live,
		children: reader, applier: apply.New(live, reader), events: s.events, namespaced: scopes(live),
		status: statusWriter{client: live}, cluster: &discovered{ask: s.asker.ask, now: o.Now},
		watch: func(kind schema.GroupVersionKind) error {
			s.watched = append(s.watched, kind.Kind)
			return s.unwatched
		}}
	if err := s.r.inWaves(logr.Discard()); err != nil {
		s.t.Fatal(err)
	}
	s.r.lookup = s.r.lookupLive
	s.r.memory.Forgotten = s.r.forget
}

// restart ends the process and begins another one.
func (s *shop) restart() { s.start(s.r.chart, s.r.options, s.r.entry) }

func (s *shop) reconcile() (ctrl.Result, error) {
	return s.r.Reconcile(s.t.Context(), ctrl.Request{NamespacedName: client.ObjectKey{Namespace: "shop", Name: "web"}})
}

// must reconciles once, and returns what was written.
func (s *shop) must() []string {
	s.t.Helper()
	s.wrote, s.read = nil, nil
	if _, err := s.reconcile(); err != nil {
		s.t.Fatal(err)
	}
	return s.wrote
}

// settle reconciles until nothing is to be done at once, and returns what was written.
func (s *shop) settle() []string {
	s.t.Helper()
	s.wrote, s.read = nil, nil
	for range 50 {
		result, err := s.reconcile()
		if err != nil {
			s.t.Fatal(err)
		}
		if result.RequeueAfter == 0 || result.RequeueAfter > goOn {
			return s.wrote
		}
	}
	s.t.Fatalf("there is no end to it: %s", strings.Join(s.wrote, "\n"))
	return nil
}

func (s *shop) wants(what string, got []string, want ...string) {
	s.t.Helper()
	if diff := cmp.Diff(strings.Join(want, "\n"), strings.Join(got, "\n")); diff != "" {
		s.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

// web is the resource as the server has it.
func (s *shop) web() *unstructured.Unstructured { return s.object(webs, "shop", "web") }

// edit changes the resource; its generation counts changes of the spec.
func (s *shop) edit(how func(*unstructured.Unstructured)) {
	s.t.Helper()
	s.change(webs, "shop", "web", func(o *unstructured.Unstructured) {
		before := o.DeepCopy()
		how(o)
		if !cmp.Equal(before.Object["spec"], o.Object["spec"]) {
			o.SetGeneration(o.GetGeneration() + 1)
		}
	})
}

// asks gives the resource another spec.
func (s *shop) asks(spec string) {
	s.t.Helper()
	text := parse(s.t, "{apiVersion: v1, kind: X, spec: "+spec+"}")
	s.edit(func(o *unstructured.Unstructured) { o.Object["spec"] = text.Object["spec"] })
}

func annotated(key, value string) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetAnnotations(map[string]string{key: value}) }
}

// condition of the resource, as "True Reason: message".
func (s *shop) condition(name string) string {
	s.t.Helper()
	c := meta.FindStatusCondition(conditions.Read(s.web()), name)
	if c == nil {
		return "none"
	}
	return strings.TrimSuffix(string(c.Status)+" "+c.Reason+": "+c.Message, ": ")
}

// says compares conditions: each is given with its name and the beginning of what it says.
func (s *shop) says(what string, want map[string]string) {
	s.t.Helper()
	for name, begin := range want {
		if got := s.condition(name); !strings.HasPrefix(got, begin) {
			s.t.Errorf("%s: condition %s says %q, want %q", what, name, got, begin)
		}
	}
}

// told are the Events since it was asked the last time.
func (s *shop) told() []string {
	var all []string
	for {
		select {
		case e := <-s.events.Events:
			all = append(all, e)
		default:
			return all
		}
	}
}

// deletes asks for the deletion of the resource; one without finalizers is gone then.
func (s *shop) deletes() {
	s.t.Helper()
	s.remove(webs, "shop", "web")
}

func timeOf(at time.Time) *metav1.Time { return &metav1.Time{Time: at} }
