// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-lib/handler"
	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// hookOf is the object of a hook as the API server has it.
func hookOf(name string, change func(*batchv1.Job)) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: "job",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "a/v1", Kind: "Web", Name: "web", UID: "u", Controller: ptr.To(true)}}}}
	change(j)
	return j
}

func ofWeb(*batchv1.Job) {}

func ofAnother(j *batchv1.Job) { j.OwnerReferences[0].UID = "another" }

func ofNobody(j *batchv1.Job) { j.OwnerReferences = nil }

func ofHelm(j *batchv1.Job) {
	j.OwnerReferences, j.Annotations = nil, map[string]string{helmHookAnnotation: "pre-install"}
}

func annotatedFor(owner string) func(*batchv1.Job) {
	return func(j *batchv1.Job) {
		j.OwnerReferences = nil
		j.Annotations = map[string]string{helmHookAnnotation: "pre-install", handler.NamespacedNameAnnotation: owner,
			handler.TypeAnnotation: "Web.a"}
	}
}

// runner is a reconciler of resource web with Jobs, what it deleted, and answers to its requests by verb.
func runner(t *testing.T, refusals map[string]error, jobs ...client.Object) (r *Reconciler, cr *unstructured.Unstructured,
	deleted *[]string) {
	t.Helper()
	deleted = &[]string{}
	cr = parse(t, "{apiVersion: a/v1, kind: Web, metadata: {name: web, namespace: shop, uid: u}}")
	kube := fake.NewClientBuilder().WithScheme(known).WithObjects(append(jobs, cr.DeepCopy())...).
		WithIndex(cr, metav1.ObjectNameField, byName).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, how ...client.GetOption) error {
			if err := refusals["get"]; err != nil {
				return err
			}
			return c.Get(ctx, key, o, how...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, how ...client.CreateOption) error {
			if err := refusals["create"]; err != nil {
				return err
			}
			return c.Create(ctx, o, how...)
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, how ...client.DeleteOption) error {
			wanted := (&client.DeleteOptions{}).ApplyOptions(how)
			*deleted = append(*deleted, o.GetName()+" if "+string(*wanted.Preconditions.UID)+" "+string(*wanted.PropagationPolicy))
			return refusals["delete"]
		},
	}).Build()
	return &Reconciler{gvk: cr.GroupVersionKind(), live: kube, namespaced: everythingNamespaced,
		watch: func(schema.GroupVersionKind) error { return refusals["watch"] }}, cr, deleted
}

// With a resource the objects of its hooks go, and nobody else's of their names.
func TestDeleteHooks(t *testing.T) {
	jobs := []client.Object{hookOf("ours", ofWeb), hookOf("foreign", ofAnother), hookOf("nobodys", ofNobody), hookOf("helms", ofHelm)}
	rendered := &chart.Rendered{}
	for _, name := range []string{"ours", "foreign", "nobodys", "helms", "gone"} {
		rendered.Hooks = append(rendered.Hooks, job(t, name))
	}
	gone, timeout := apierrors.NewNotFound(schema.GroupResource{}, "x"), errors.New("timeout")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", timeout)
	for name, tt := range map[string]struct {
		rendered *chart.Rendered
		refusals map[string]error
		want     []string
		fails    bool
	}{
		"deleted":              {rendered, nil, []string{"ours if job Background"}, false},
		"nothing was rendered": {nil, nil, nil, false},
		"gone meanwhile":       {rendered, map[string]error{"delete": gone}, []string{"ours if job Background"}, false},
		"not deleted":          {rendered, map[string]error{"delete": timeout}, []string{"ours if job Background"}, true},
		"their kind is gone":   {rendered, map[string]error{"get": &meta.NoKindMatchError{}}, nil, false},
		"they cannot be read":  {rendered, map[string]error{"get": timeout}, nil, true},
		"a webhook says so":    {rendered, map[string]error{"delete": conflict}, []string{"ours if job Background"}, true},
	} {
		r, cr, deleted := runner(t, tt.refusals, jobs...)
		err := r.deleteHooks(t.Context(), cr, Desired{Rendered: tt.rendered})
		if diff := cmp.Diff(tt.want, *deleted, cmp.Transformer("text",
			func(all []string) string { return strings.Join(all, ", ") })); diff != "" ||
			(err != nil) != tt.fails {
			t.Errorf("%s: %v, deleted (-want +got):\n%s", name, err, diff)
		}
	}
}

// One that another object has replaced is not deleted in its place, and is no error.
func TestDeleteHookThatWasReplaced(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("UID"))
	for name, there := range map[string][]client.Object{
		"replaced": {hookOf("ours", func(j *batchv1.Job) { j.UID = "newer" })}, "gone": nil,
	} {
		r, _, deleted := runner(t, map[string]error{"delete": conflict}, there...)
		was := parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: ours, namespace: shop, uid: job}}")
		if err := r.deleteHook(t.Context(), was); err != nil || len(*deleted) != 1 {
			t.Errorf("%s: %v, asked for %v", name, err, *deleted)
		}
	}
}

// That it is gone, or another one, is known only from an answer that says so.
func TestDeleteHookWithoutAnAnswer(t *testing.T) {
	conflict, timeout := apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("UID")), errors.New("timeout")
	was := parse(t, "{apiVersion: batch/v1, kind: Job, metadata: {name: ours, namespace: shop, uid: job}}")
	for name, refusals := range map[string]map[string]error{
		"the deletion is not answered": {"delete": timeout}, "nor is the question": {"delete": conflict, "get": timeout},
	} {
		r, _, _ := runner(t, refusals)
		if err := r.deleteHook(t.Context(), was); err == nil {
			t.Errorf("%s: it is taken for gone", name)
		}
	}
}

// A hook whose place or owner is not known is neither looked at, made, nor deleted.
func TestHookOfAnUnknownKind(t *testing.T) {
	r, cr, deleted := runner(t, nil, hookOf("a", ofWeb))
	r.namespaced = func(schema.GroupVersionKind) (bool, error) { return false, errAway }
	hook := job(t, "a")
	_, observed := r.observeHook(t.Context(), cr, &NextHook{Hook: hook})
	for what, err := range map[string]error{"looked at": observed, "made": r.startHook(t.Context(), cr, NextHook{Hook: hook}),
		"deleted": r.deleteHooks(t.Context(), cr, Desired{Rendered: &chart.Rendered{Hooks: []chart.Hook{hook}}})} {
		if !errors.Is(err, errAway) || len(*deleted) > 0 {
			t.Errorf("%s: %v, %v", what, err, *deleted)
		}
	}
	r, cr, _ = runner(t, nil)
	cr.SetKind("")
	if err := r.startHook(t.Context(), cr, NextHook{Hook: hook}); err == nil || !strings.Contains(err.Error(), "annotate Job shop/a") {
		t.Errorf("without an owner: %v", err)
	}
}

// What Helm left in no namespace is nobody's, whoever asks.
func TestHookInNoNamespace(t *testing.T) {
	object := hookOf("a", ofHelm)
	object.Namespace = ""
	r, cr, _ := runner(t, nil, object)
	r.namespaced = func(schema.GroupVersionKind) (bool, error) { return false, nil }
	cr.SetNamespace("")
	var foreign *apply.NotOursError
	if live, err := r.observeHook(t.Context(), cr, &NextHook{Hook: job(t, "a")}); live == nil || !errors.As(err, &foreign) {
		t.Errorf("%v, %v", live, err)
	}
}

// The object of a hook is the resource's, or one that Helm left in the resource's own namespace.
func TestHookIsOurs(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*batchv1.Job)
		namespace string
		ours      bool
	}{
		"ours":                 {ofWeb, "shop", true},
		"another's":            {ofAnother, "shop", false},
		"nobody's":             {ofNobody, "shop", false},
		"Helm's":               {ofHelm, "shop", true},
		"Helm's elsewhere":     {ofHelm, "other", false},
		"of another resource":  {annotatedFor("shop/other"), "shop", false},
		"ours, by annotations": {annotatedFor("shop/web"), "shop", true},
		"Helm's, and controlled by others": {func(j *batchv1.Job) { ofAnother(j); j.Annotations = map[string]string{helmHookAnnotation: "x"} },
			"shop", false},
	} {
		object := hookOf("a", tt.change)
		object.Namespace = tt.namespace
		r, cr, _ := runner(t, nil, object)
		hook := job(t, "a")
		hook.Object.SetNamespace(tt.namespace)
		live, err := r.observeHook(t.Context(), cr, &NextHook{Hook: hook})
		var foreign *apply.NotOursError
		if live == nil || (err == nil) != tt.ours || err != nil && !errors.As(err, &foreign) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, tt := range map[string]struct {
		refusals map[string]error
		fails    bool
	}{"gone": {nil, false}, "not read": {map[string]error{"get": errors.New("timeout")}, true},
		"not watched": {map[string]error{"watch": errors.New("x")}, true}} {
		r, cr, _ := runner(t, tt.refusals)
		if live, err := r.observeHook(t.Context(), cr, &NextHook{Hook: job(t, "a")}); (err != nil) != tt.fails || live != nil {
			t.Errorf("%s: %v, %v", name, live, err)
		}
	}
}

// The object of a hook that is made after its resource has gone goes, too: the process was stopped, and another one ended the deletion.
func TestStartHookOfWhatIsGone(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(r *Reconciler, cr *unstructured.Unstructured)
		want   int
	}{
		"it is there": {func(*Reconciler, *unstructured.Unstructured) {}, 0},
		"it is gone": {func(r *Reconciler, cr *unstructured.Unstructured) {
			if err := r.live.DeleteAllOf(t.Context(), cr, client.InNamespace("shop")); err != nil {
				t.Fatal(err)
			}
		}, 1},
		"another has its name": {func(_ *Reconciler, cr *unstructured.Unstructured) { cr.SetUID("former") }, 1},
	} {
		r, cr, deleted := runner(t, nil)
		tt.change(r, cr)
		cr.SetDeletionTimestamp(ptr.To(metav1.Now()))
		if err := r.startHook(t.Context(), cr, NextHook{Hook: job(t, "a", string(postDelete))}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(*deleted) != tt.want {
			t.Errorf("%s: %q are deleted", name, *deleted)
		}
	}
}

// A hook's object names its owner, and is referenced so that it goes with the resource, unless it runs while that is being deleted. One
// that exists already is looked at, not made.
func TestStartHook(t *testing.T) {
	for name, tt := range map[string]struct {
		namespace  string
		deleting   bool
		refusal    error
		referenced bool
		fails      bool
	}{
		"made":                      {"", false, nil, true, false},
		"elsewhere":                 {"other", false, nil, false, false},
		"while it is being deleted": {"", true, nil, false, false},
		"it exists":                 {"", false, apierrors.NewAlreadyExists(schema.GroupResource{}, "a"), false, false},
		"it is refused":             {"", false, errors.New("timeout"), false, true},
	} {
		r, cr, _ := runner(t, map[string]error{"create": tt.refusal})
		if tt.deleting {
			cr.SetDeletionTimestamp(ptr.To(metav1.Now()))
		}
		hook := job(t, "a", string(postInstall))
		hook.Object.SetNamespace(tt.namespace)
		if err := r.startHook(t.Context(), cr, NextHook{Hook: hook}); (err != nil) != tt.fails {
			t.Errorf("%s: %v", name, err)
		}
		if tt.refusal != nil {
			continue
		}
		namespace := "shop"
		if tt.namespace != "" {
			namespace = tt.namespace
		}
		var made batchv1.Job
		if err := r.live.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: "a"}, &made); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if made.Annotations[handler.NamespacedNameAnnotation] != "shop/web" || made.Annotations[hookRunAnnotation] == "" ||
			made.Labels[apply.ManagedByLabel] != apply.ManagedByValue || (len(made.OwnerReferences) == 1) != tt.referenced {
			t.Errorf("%s: %+v", name, made.ObjectMeta)
		}
	}
}
