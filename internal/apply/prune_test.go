// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-lib/handler"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var (
	shop         = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "shop", UID: "shop"}}
	configs      = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	statefulSets = schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}
)

// owned is a ConfigMap that the shop controls, changed.
func owned(name string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: types.UID(name),
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "shop", UID: "shop", Controller: ptr.To(true)}}}}
	change(object)
	return object
}

func unchanged(*corev1.ConfigMap) {}

func foreign(o *corev1.ConfigMap) { o.OwnerReferences[0].UID = "another" }

func kept(o *corev1.ConfigMap) { o.Annotations = map[string]string{keepAnnotation: keepValue} }

func going(o *corev1.ConfigMap) {
	o.DeletionTimestamp, o.Finalizers = ptr.To(metav1.Now()), []string{"example.com/held"}
}

func nobodys(o *corev1.ConfigMap) { o.OwnerReferences = nil }

// shelf is an Applier on objects, and what was deleted, with the UID that it had to have.
func shelf(answer error, objects ...client.Object) (*Applier, *[]string) {
	deleted := &[]string{}
	kube := fake.NewClientBuilder().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			wanted := (&client.DeleteOptions{}).ApplyOptions(options)
			if wanted.Preconditions == nil || wanted.Preconditions.UID == nil || wanted.PropagationPolicy == nil {
				return errors.New("deleted whatever is there")
			}
			*deleted = append(*deleted, o.GetName()+" if "+string(*wanted.Preconditions.UID))
			if answer != nil {
				return answer
			}
			return c.Delete(ctx, o)
		},
	}).Build()
	return New(kube, kube), deleted
}

// renewed is a client that reads an object under another UID from the second time on.
type renewed struct {
	client.Client
	read map[string]bool
}

func (r renewed) Get(ctx context.Context, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
	err := r.Client.Get(ctx, key, into, options...)
	if r.read[key.Name] {
		into.SetUID("another")
	}
	r.read[key.Name] = true
	return err
}

func refs(names ...string) []Ref {
	refs := make([]Ref, len(names))
	for i, name := range names {
		refs[i] = Ref{GroupVersionKind: configs, Namespace: "n", Name: name}
	}
	return refs
}

// What is pruned is the owner's and nobody else's, the last one first, and only what is not to stay.
func TestPrune(t *testing.T) {
	a, deleted := shelf(nil, owned("a", unchanged), owned("b", unchanged), owned("stays", unchanged), owned("foreign", foreign),
		owned("kept", kept), owned("going", going), owned("nobodys", nobodys))
	asked := refs("a", "b", "stays", "foreign", "kept", "going", "nobodys", "gone")
	for i := range asked {
		asked[i].UID = "recorded"
	}
	changes, err := a.Prune(t.Context(), shop, asked, refs("stays"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b if b", "a if a"}, *deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	if len(changes) != 2 || changes[0].Name != "b" || changes[0].UID != "b" || changes[0].Action != Deleted {
		t.Errorf("told %v", changes)
	}
	var stays corev1.ConfigMap
	err = a.client.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: "kept"}, &stays)
	if err != nil || len(stays.OwnerReferences) > 0 || stays.Annotations[handler.NamespacedNameAnnotation] != "n/shop" ||
		stays.Annotations[handler.TypeAnnotation] != "ConfigMap" {
		t.Errorf("what is kept: %v, %v", stays.ObjectMeta, err)
	}
}

// One that cannot be deleted does not hold back the others; one that is another by now is no error. A conflict about the very object
// that was read is one: to take it for gone would leave it for ever.
func TestPruneGoesOn(t *testing.T) {
	refused := errors.New("refused")
	conflict := apierrors.NewConflict(schema.GroupResource{}, "a", refused)
	for _, tt := range []struct {
		answer, want error
		replaced     bool
	}{
		{answer: refused, want: refused},
		{answer: conflict, want: conflict},
		{answer: conflict, replaced: true},
		{answer: apierrors.NewNotFound(schema.GroupResource{}, "a")},
	} {
		a, deleted := shelf(tt.answer, owned("a", unchanged), owned("b", unchanged))
		if tt.replaced {
			a.client = renewed{a.client, map[string]bool{}}
		}
		changes, err := a.Prune(t.Context(), shop, refs("a", "b"), nil)
		if !errors.Is(err, tt.want) || tt.want == nil && err != nil || len(changes) > 0 || len(*deleted) != 2 {
			t.Errorf("%v: got %v, %v after %v", tt.answer, changes, err, *deleted)
		}
	}
}

// What still has to go: the owner's own, and not others of the name, nor what is kept.
func TestGone(t *testing.T) {
	a, _ := shelf(nil, owned("a", unchanged), owned("foreign", foreign), owned("kept", kept), owned("nobodys", nobodys),
		owned("renewed", unchanged), owned("going", func(o *corev1.ConfigMap) { going(o); kept(o) }))
	asked := refs("a", "foreign", "kept", "nobodys", "renewed", "gone", "going")
	asked[0].UID, asked[4].UID = "a", "before"
	got, err := a.Gone(t.Context(), shop, asked)
	if err != nil {
		t.Fatal(err)
	}
	want := refs("a", "going")
	want[0].UID, want[1].UID = "a", "going"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("remaining (-want +got):\n%s", diff)
	}
	unread := errors.New("timeout")
	kube := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return unread
		}}).Build()
	if _, err := New(kube, kube).Gone(t.Context(), shop, refs("a")); !errors.Is(err, unread) {
		t.Errorf("what could not be read is taken for gone: %v", err)
	}
	if _, err := New(kube, kube).Prune(t.Context(), shop, refs("a"), nil); !errors.Is(err, unread) {
		t.Errorf("what could not be read is taken for pruned: %v", err)
	}
}

// What is kept loses the reference to its owner, by which the garbage collector would delete it, and nothing else; once.
func TestPruneOfWhatIsKept(t *testing.T) {
	another := metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}
	both := func(o *unstructured.Unstructured) { o.SetOwnerReferences(append(o.GetOwnerReferences(), another)) }
	d := newDesk(existing(t, configText, keeps, both), nil)
	changes, err := d.Prune(t.Context(), shop, refs("a"), nil)
	const freed = `patch a {"metadata":{"annotations":{"operator-sdk/primary-resource":"n/shop",` +
		`"operator-sdk/primary-resource-type":"ConfigMap"},` +
		`"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"other","uid":"other"}],"resourceVersion":"100"}}`
	if diff := cmp.Diff([]string{freed}, d.said); diff != "" || err != nil || len(changes) > 0 {
		t.Errorf("%v, %v (-want +got):\n%s", changes, err, diff)
	}
	d = newDesk(existing(t, configText, keeps, func(o *unstructured.Unstructured) {
		o.SetOwnerReferences(nil)
		annotate(o, shop, configs)
	}), nil)
	if changes, err := d.Prune(t.Context(), shop, refs("a"), nil); err != nil || len(changes) > 0 || len(d.said) > 0 {
		t.Errorf("a second time: %v, %v, asked %v", changes, err, d.said)
	}
}

// Of a kind that is gone there is nothing left.
func TestPruneOfAKindThatIsGone(t *testing.T) {
	d := newDesk(existing(t, configText), nil)
	gone := error(&meta.NoKindMatchError{})
	d.refusals["get"] = []error{gone, gone}
	if changes, err := d.Prune(t.Context(), shop, refs("a"), nil); err != nil || len(changes) > 0 {
		t.Errorf("pruned: %v, %v", changes, err)
	}
	if remaining, err := d.Gone(t.Context(), shop, refs("a")); err != nil || len(remaining) > 0 {
		t.Errorf("remaining: %v, %v", remaining, err)
	}
}

// A conflict at a deletion says that another object has the name, if that is so, or none has it; what cannot be looked at is not gone.
func TestPruneThatConflicts(t *testing.T) {
	timeout := errors.New("timeout")
	for name, tt := range map[string]struct{ look, fails error }{
		"it is gone": {notFound(), nil}, "it cannot be looked at": {timeout, conflict()}, "it is there": {nil, conflict()},
	} {
		d := newDesk(existing(t, configText), nil)
		d.refusals["delete"], d.refusals["get"] = []error{conflict()}, []error{nil, tt.look}
		changes, err := d.Prune(t.Context(), shop, refs("a"), nil)
		if (err != nil) != (tt.fails != nil) || err != nil && !apierrors.IsConflict(err) || len(changes) > 0 {
			t.Errorf("%s: %v, %v", name, changes, err)
		}
	}
}
