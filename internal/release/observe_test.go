// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// unfilled is a cache of a kind that may not be listed.
type unfilled struct{ client.Reader }

func (unfilled) Get(ctx context.Context, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
	<-ctx.Done()
	return ctx.Err()
}

// A status may name any kind, also many that the operator may not list: that holds a worker for a second, not for as long as the
// chart's own kinds may take.
func TestKindsOfTheStatusAreNotWaitedFor(t *testing.T) {
	loaded, err := chart.Load(fstest.MapFS{
		"Chart.yaml":               {Data: []byte("apiVersion: v2\nname: c\nversion: 1.0.0\n")},
		"templates/configmap.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &Reconciler{chart: loaded, children: childReader{unfilled{}}}
	for kind, want := range map[string]time.Duration{"ConfigMap": cacheTimeout, "Secret": otherKinds} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), cacheTimeout)
			defer cancel()
			start := time.Now() // of the test's own clock
			ref := apply.Ref{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: kind}, Namespace: "n", Name: "a"}
			if _, err := r.observeChildren(ctx, &unstructured.Unstructured{}, []apply.Known{{Ref: ref}}); err == nil || time.Since(start) != want {
				t.Errorf("a %s was waited for %s, want %s (%v)", kind, time.Since(start), want, err)
			}
		})
	}
}

// What a former process applied is recalled once, and only if the status tells of every object; else all is compared by applying it.
func TestRecall(t *testing.T) {
	for name, tt := range map[string]struct {
		lacks string
		idle  bool
	}{"all is known": {"", true}, "a UID is missing": {"uid", false}, "fields are missing": {"fields", false}} {
		s := newShop(t, "", "{text: a, names: [b]}", chartOf(t, configTemplate, listTemplate), Options{})
		s.settle()
		s.told()
		s.edit(func(o *unstructured.Unstructured) {
			delete(o.Object["status"].(map[string]any)["inventory"].([]any)[1].(map[string]any), tt.lacks)
		})
		s.restart()
		s.must()
		if idle := len(s.wrote)+len(s.read) == 0; idle != tt.idle {
			t.Errorf("%s: wrote %v", name, s.wrote)
		}
		if is := s.r.memory.Get("u"); !is.begun || is.applied == "" {
			t.Errorf("%s: %+v", name, is)
		}
		s.wants(name+", then", s.settle())
		s.wants(name+", told", s.told())
	}
}

// It is recalled once: what this process knows better since then is not overwritten by what the status said before.
func TestRecallOnce(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate), Options{})
	s.settle()
	cr := s.web()
	applied := func(how string, seen Snapshot, want string) {
		t.Helper()
		s.r.recall(cr, seen)
		if got := s.r.memory.Get("u").applied; got != want {
			t.Errorf("%s: what was applied is %q, want %q", how, got, want)
		}
	}
	begin := func() {
		s.restart()
		s.r.memory.Begin(t.Context(), s.r.reader, client.ObjectKeyFromObject(cr), s.web(), s.clock)
	}
	begin()
	applied("nothing is deployed", Snapshot{}, "")
	applied("the release is another operator's", Snapshot{Deployed: Deployed{Digest: "d"}, Former: &Former{}}, "")
	applied("at first", Snapshot{Deployed: Deployed{Digest: "d"}}, "d")
	applied("then", Snapshot{Deployed: Deployed{Digest: "e"}}, "d")
}

// Children are looked for where the status says; what cannot be looked at is not taken for absent, a kind that is gone is.
func TestChildrenThatCannotBeSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		answer    error
		unwatched error
		fails     bool
		says      string
	}{
		"seen":             {nil, nil, false, "True ChildrenReady"},
		"gone":             {apierrors.NewNotFound(schema.GroupResource{}, "b"), nil, false, "False ChildNotReady: ConfigMap b is not there yet"},
		"its kind is gone": {&meta.NoKindMatchError{}, nil, false, "False ChildNotReady: ConfigMap b is not there yet"},
		"not known":        {errAway, nil, true, "True ChildrenReady"},
		"not watched":      {nil, errAway, true, "True ChildrenReady"},
	} {
		s := newShop(t, "", "{text: a, names: [b]}", chartOf(t, configTemplate, listTemplate), Options{})
		s.settle()
		s.unwatched = tt.unwatched
		if tt.answer != nil {
			s.refusals["cache ConfigMap b"] = tt.answer
		}
		_, err := s.reconcile()
		if errors.Is(err, errAway) != tt.fails || err != nil && tt.answer != nil &&
			!strings.Contains(err.Error(), "read ConfigMap shop/b from the cache: connection refused (may the operator list and watch this kind?)") {
			t.Errorf("%s: %v", name, err)
		}
		s.says(name, map[string]string{"Ready": tt.says, "Deployed": "True"})
		children, err := s.r.observeChildren(t.Context(), s.web(), readInventory(s.web(), watches.Allow{}))
		if (err != nil) != tt.fails {
			t.Errorf("%s: %v, %v", name, children, err)
		}
	}
}

// Children are read in the form in which they are watched: metadata alone of kinds without a status, of the others everything.
func TestChildReader(t *testing.T) {
	s := newShop(t, "", "{text: a}", chartOf(t, configTemplate, deploymentTemplate), Options{})
	s.settle()
	s.sets(deployments, "web", starting)
	key := client.ObjectKey{Namespace: "shop", Name: "web"}
	for kind, whole := range map[schema.GroupVersionKind]bool{configs: false, deployments: true} {
		o := kindOf(kind)
		if err := s.r.children.get(t.Context(), key, o); err != nil {
			t.Fatal(err)
		}
		_, data := o.Object["data"]
		_, spec := o.Object["spec"]
		if (data || spec) != whole || o.GetName() != "web" || o.GroupVersionKind() != kind || o.GetUID() == "" {
			t.Errorf("%s: %v", kind.Kind, o)
		}
		metadata := &metav1.PartialObjectMetadata{}
		metadata.SetGroupVersionKind(kind)
		if err := s.r.children.Get(t.Context(), key, metadata); err != nil || metadata.Name != "web" || metadata.UID == "" ||
			metadata.GroupVersionKind() != kind || len(metadata.ManagedFields) == 0 {
			t.Errorf("metadata of %s: %+v, %v", kind.Kind, metadata, err)
		}
		s.refusals["cache"] = errAway
		if err := s.r.children.Get(t.Context(), key, metadata); !errors.Is(err, errAway) {
			t.Errorf("metadata of %s: %v", kind.Kind, err)
		}
		if err := s.r.children.get(t.Context(), key, o); !errors.Is(err, errAway) {
			t.Errorf("%s: %v", kind.Kind, err)
		}
		delete(s.refusals, "cache")
	}
}

// What a status says that was never so harms nobody.
func TestAForgedStatus(t *testing.T) {
	for text, want := range map[string]int64{"-1": 0, "0": 0, "7": 7, "2147483647": math.MaxInt32, "2147483648": math.MaxInt32, "x": 0} {
		d := readDeployed(parse(t, "{apiVersion: a/v1, kind: B, status: {deployedRelease: {name: web, digest: d, revision: "+text+"}}}"))
		if d != (Deployed{Name: "web", Revision: want, Digest: "d"}) {
			t.Errorf("%s: %+v", text, d)
		}
	}
	cr := parse(t, `{apiVersion: a/v1, kind: B, metadata: {name: web, namespace: shop}, status: {inventory: [
		{version: v1, kind: ConfigMap, namespace: shop}, {version: v1, namespace: shop, name: a}, {kind: ConfigMap, namespace: shop, name: a},
		{group: g, version: v1, kind: K, namespace: shop, name: a, uid: u, fields: f}]}}`)
	known := apply.Known{Ref: apply.Ref{GroupVersionKind: schema.GroupVersionKind{Group: "g", Version: "v1", Kind: "K"}, Namespace: "shop",
		Name: "a", UID: "u"}, Fields: "f"}
	if diff := cmp.Diff([]apply.Known{known}, readInventory(cr, watches.Allow{})); diff != "" {
		t.Error(diff)
	}
	if m := (Progress{Event: "pre-install"}).write().(map[string]any); len(m) != 4 {
		t.Errorf("of failures that were none nothing is written: %v", m)
	}
	both := union([]apply.Known{known}, []apply.Ref{known.Ref, deployment, deployment})
	if diff := cmp.Diff([]apply.Known{known, {Ref: deployment}}, both); diff != "" {
		t.Errorf("each once, and what is known of it stays: %s", diff)
	}
}

// Whether its namespace ends matters to what is in one, and has hooks.
func TestWhoseNamespaceIsLookedAt(t *testing.T) {
	for name, tt := range map[string]struct {
		hooks, in bool
		reads     int
	}{"hooks, in a namespace": {true, true, 1}, "hooks, in none": {true, false, 0}, "no hooks": {false, true, 0}} {
		templates := []string{configTemplate}
		if tt.hooks {
			templates = append(templates, hookTemplate("h", "post-delete", ""))
		}
		s := newShop(t, "", "{text: a}", chartOf(t, templates...), Options{}, namespace("shop"))
		cr := s.web()
		if !tt.in {
			cr.SetNamespace("")
		}
		if ends, err := s.r.namespaceEnds(t.Context(), cr); ends || err != nil || len(s.read) != tt.reads {
			t.Errorf("%s: %t, %v, read %v", name, ends, err, s.read)
		}
	}
}
