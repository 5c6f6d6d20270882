// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/internal/apply"
)

var (
	webs   = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Web"}
	sites  = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Site"} // in no namespace
	routes = schema.GroupVersionKind{Group: "gateway.networking.k8s.io", Version: "v1", Kind: "HTTPRoute"}
	crds   = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}
)

// known are the types of what the tests read by their types. Those of all kinds would take longer than the tests.
var known = func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, metav1.AddMetaToScheme} {
		if err := add(s); err != nil {
			panic(err)
		}
	}
	s.AddKnownTypeWithName(schema.GroupVersionKind{Group: "a", Version: "v1", Kind: "WebList"}, &unstructured.UnstructuredList{})
	return s
}()

func mapper() meta.RESTMapper {
	m := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		webs, routes, corev1.SchemeGroupVersion.WithKind("ConfigMap"), corev1.SchemeGroupVersion.WithKind("Secret"),
		corev1.SchemeGroupVersion.WithKind("Service"), corev1.SchemeGroupVersion.WithKind("Pod"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("StatefulSet"),
		batchv1.SchemeGroupVersion.WithKind("Job"),
	} {
		m.Add(kind, meta.RESTScopeNamespace)
	}
	for _, kind := range []schema.GroupVersionKind{
		sites, crds, corev1.SchemeGroupVersion.WithKind("Namespace"), rbacv1.SchemeGroupVersion.WithKind("ClusterRole"),
	} {
		m.Add(kind, meta.RESTScopeRoot)
	}
	return m
}

// server stands in for an API server: it keeps objects, and every request that came over its client, in words.
type server struct {
	t *testing.T
	// WithWatch is the store itself: what is asked of it is neither noted nor refused.
	client.WithWatch
	// wrote are the requests that write, read the others.
	wrote, read []string
	// refusals answer requests that begin with these words. A nil error is none.
	refusals map[string]error
	// unseen are objects that the cache does not show, by kind and name.
	unseen map[string]bool
	// former are objects that the cache shows as they were, likewise.
	former map[string]*unstructured.Unstructured
	// prunes is a field of statuses, or field.field, that the schema of their kind does not keep.
	prunes string
	// on is called before a request that writes is answered.
	on func(request string)
	// ends is the request that writes, counted from 1, with which the process ends: from then on nobody answers it.
	ends  int
	made  int
	clock time.Time
}

func newServer(t *testing.T, objects ...client.Object) *server {
	t.Helper()
	return &server{t: t, clock: now, refusals: map[string]error{}, unseen: map[string]bool{},
		WithWatch: store(objects).WithStatusSubresource(kindOf(webs), kindOf(sites)).Build()}
}

func store(objects []client.Object) *fake.ClientBuilder {
	event := func(field func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{field(o.(*corev1.Event))} }
	}
	return fake.NewClientBuilder().WithScheme(known).WithRESTMapper(mapper()).WithReturnManagedFields().
		WithTypeConverters(managedfields.NewDeducedTypeConverter()).WithObjects(objects...).
		WithIndex(kindOf(webs), metav1.ObjectNameField, byName).
		WithIndex(&corev1.Event{}, "involvedObject.uid", event(func(e *corev1.Event) string { return string(e.InvolvedObject.UID) })).
		WithIndex(&corev1.Event{}, "type", event(func(e *corev1.Event) string { return e.Type }))
}

// about is an object in words.
func about(o runtime.Object) string {
	accessor := o.(metav1.Object)
	kind := o.GetObjectKind().GroupVersionKind().Kind
	if kind == "" {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1.")
	}
	if accessor.GetNamespace() == "" {
		return kind + " " + accessor.GetName()
	}
	return kind + " " + accessor.GetNamespace() + "/" + accessor.GetName()
}

func (s *server) refused(request string) error {
	for _, begin := range slices.Sorted(maps.Keys(s.refusals)) {
		if strings.HasPrefix(request, begin) {
			return s.refusals[begin]
		}
	}
	return nil
}

// writes notes a request that writes; the error is the answer.
func (s *server) writes(request string) error {
	if s.on != nil {
		s.on(request)
	}
	if s.ends > 0 && len(s.wrote) >= s.ends {
		return errAway
	}
	if s.wrote = append(s.wrote, request); s.ends > 0 && len(s.wrote) == s.ends {
		return errAway
	}
	return s.refused(request)
}

func (s *server) reads(request string) error {
	s.read = append(s.read, request)
	return s.refused(request)
}

// live is what the engine's client reads and writes with.
func (s *server) live() client.WithWatch {
	return interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
			named := into.DeepCopyObject().(client.Object)
			named.SetNamespace(key.Namespace)
			named.SetName(key.Name)
			if err := s.reads("get " + about(named)); err != nil {
				return err
			}
			return c.Get(ctx, key, into, how...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, how ...client.ListOption) error {
			kind := list.GetObjectKind().GroupVersionKind().Kind
			if kind == "" {
				kind = strings.TrimPrefix(fmt.Sprintf("%T", list), "*v1.")
			}
			options := (&client.ListOptions{}).ApplyOptions(how)
			if err := s.reads("list " + kind + " " + options.Namespace); err != nil {
				return err
			}
			return c.List(ctx, list, how...)
		},
		Create: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.CreateOption) error {
			if err := s.writes("create " + about(o)); err != nil {
				return err
			}
			return s.put(o)
		},
		Update: func(ctx context.Context, c client.WithWatch, o client.Object, how ...client.UpdateOption) error {
			if err := s.writes("update " + about(o)); err != nil {
				return err
			}
			return c.Update(ctx, o, how...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, how ...client.PatchOption) error {
			if err := s.writes("patch " + about(o)); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, how...)
		},
		SubResourcePatch: s.patchPart,
		Apply: func(ctx context.Context, _ client.WithWatch, sent runtime.ApplyConfiguration, how ...client.ApplyOption) error {
			return s.apply(ctx, sent, (&client.ApplyOptions{}).ApplyOptions(how))
		},
		Delete: s.delete,
	})
}

// patchPart patches a subresource; the request names the fields of the status that it changes.
func (s *server) patchPart(ctx context.Context, c client.Client, part string, o client.Object, patch client.Patch,
	how ...client.SubResourcePatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	var body struct{ Status map[string]any }
	if err := json.Unmarshal(data, &body); err != nil {
		return err
	}
	fields := strings.Join(slices.Sorted(maps.Keys(body.Status)), " ")
	if err := s.writes(part + " of " + about(o) + ": " + fields); err != nil {
		return err
	}
	if err := c.SubResource(part).Patch(ctx, o, patch, how...); err != nil || s.prunes == "" {
		return err
	}
	pruned := o.(*unstructured.Unstructured)
	unstructured.RemoveNestedField(pruned.Object, append([]string{"status"}, strings.Split(s.prunes, ".")...)...)
	return c.Status().Update(ctx, pruned)
}

// put makes an object with a UID of its own.
func (s *server) put(o client.Object) error {
	if o.GetUID() == "" {
		s.made++
		o.SetUID(types.UID("made-" + strconv.Itoa(s.made)))
	}
	if o.GetCreationTimestamp().Time.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(s.clock))
	}
	return s.Create(s.t.Context(), o)
}

// delete carries out a deletion only of the very object that somebody read.
func (s *server) delete(ctx context.Context, c client.WithWatch, o client.Object, how ...client.DeleteOption) error {
	if err := s.writes("delete " + about(o)); err != nil {
		return err
	}
	wanted := (&client.DeleteOptions{}).ApplyOptions(how)
	if wanted.Preconditions == nil || wanted.Preconditions.UID == nil {
		s.t.Errorf("%s was to be deleted whosever it is", about(o))
		return apierrors.NewBadRequest("no precondition")
	}
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	if now.Kind == "" {
		now.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(strings.Fields(about(o))[0]))
	}
	if err := c.Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
		return err
	}
	if now.GetUID() != *wanted.Preconditions.UID {
		return apierrors.NewConflict(schema.GroupResource{Resource: o.GetName()}, o.GetName(), nil)
	}
	return c.Delete(ctx, now)
}

// apply is a server-side apply with the conditions that the engine sends along: a UID is that of the object, none is no object.
func (s *server) apply(ctx context.Context, sent runtime.ApplyConfiguration, how *client.ApplyOptions) error {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(sent)
	if err != nil {
		return err
	}
	object := &unstructured.Unstructured{Object: content}
	if err := s.writes("apply " + about(object)); err != nil {
		return err
	}
	was := kindOf(object.GroupVersionKind())
	err = s.Get(ctx, client.ObjectKeyFromObject(object), was)
	if client.IgnoreNotFound(err) != nil {
		return err
	}
	there := err == nil
	if uid := object.GetUID(); there && uid == "" || !there && uid != "" || uid != "" && uid != was.GetUID() {
		return apierrors.NewConflict(schema.GroupResource{Resource: object.GetKind()}, object.GetName(), nil)
	}
	object.SetResourceVersion("") // with which the engine says that there must be no such object
	if err := s.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), how); err != nil {
		return err
	}
	s.made++
	if !there {
		object.SetUID(types.UID("made-" + strconv.Itoa(s.made)))
	}
	same := there && sameBut(was, object)
	if entries := object.GetManagedFields(); same { // an apply that changes nothing is no write
		object.SetManagedFields(was.GetManagedFields())
	} else {
		for i := range entries {
			entries[i].Time = timeOf(now.Add(time.Duration(s.made) * time.Second))
		}
		object.SetManagedFields(entries)
	}
	if err := s.Update(ctx, object); err != nil {
		return err
	}
	if same {
		object.SetResourceVersion(was.GetResourceVersion())
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, sent)
}

// sameBut reports whether two states of an object say the same, but for their versions and who wrote which field when.
func sameBut(a, b *unstructured.Unstructured) bool {
	plain := func(o *unstructured.Unstructured) *unstructured.Unstructured {
		o = o.DeepCopy()
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
		return o
	}
	return reflect.DeepEqual(plain(a), plain(b))
}

// cache is what a cache of the server shows.
func (s *server) cache() client.Reader {
	return interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
			kind := into.GetObjectKind().GroupVersionKind()
			if err := s.refused("cache " + kind.Kind + " " + key.Name); err != nil {
				return err
			}
			if s.unseen[kind.Kind+" "+key.Name] {
				return apierrors.NewNotFound(schema.GroupResource{Resource: kind.Kind}, key.Name)
			}
			if _, whole := into.(*unstructured.Unstructured); whole && !hasStatus(kind.GroupKind()) {
				s.t.Errorf("%s %s was read whole, where only metadata is cached", kind.Kind, key.Name)
			}
			if was := s.former[kind.Kind+" "+key.Name]; was != nil {
				was.DeepCopyInto(into.(*unstructured.Unstructured))
				return nil
			}
			return c.Get(ctx, key, into, how...)
		},
	})
}

// object is what the server has.
func (s *server) object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	s.t.Helper()
	o := kindOf(kind)
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, o); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		s.t.Fatal(err)
	}
	return o
}

// change changes what the server has, its status too, as somebody else would.
func (s *server) change(kind schema.GroupVersionKind, namespace, name string, how func(*unstructured.Unstructured)) {
	s.t.Helper()
	o := s.object(kind, namespace, name)
	if o == nil {
		s.t.Fatalf("there is no %s %s", kind.Kind, name)
	}
	how(o)
	status := o.Object["status"]
	if err := s.Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
	if o = s.object(kind, namespace, name); o == nil || reflect.DeepEqual(o.Object["status"], status) {
		return
	}
	o.Object["status"] = status
	if err := s.Status().Update(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// remove deletes what the server has, as somebody else would.
func (s *server) remove(kind schema.GroupVersionKind, namespace, name string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), s.object(kind, namespace, name)); err != nil {
		s.t.Fatal(err)
	}
}

// sets gives an object a status, as its controller would.
func (s *server) sets(kind schema.GroupVersionKind, name, status string) {
	s.t.Helper()
	text := parse(s.t, "{apiVersion: v1, kind: X, status: "+status+"}")
	namespace := "shop"
	if kind == crds {
		namespace = ""
	}
	o := s.object(kind, namespace, name)
	o.Object["status"] = text.Object["status"]
	err := s.Status().Update(s.t.Context(), o)
	if apierrors.IsNotFound(err) { // this kind has no such subresource
		err = s.Update(s.t.Context(), o)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// ofOurs marks an object as one of resource web.
func ofOurs(o *unstructured.Unstructured) {
	controls := true
	o.SetOwnerReferences([]metav1.OwnerReference{
		{APIVersion: "example.com/v1", Kind: "Web", Name: "web", UID: "u", Controller: &controls}})
	o.SetLabels(map[string]string{apply.ManagedByLabel: apply.ManagedByValue})
}
