// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

const (
	configText     = `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {text: new}}`
	deploymentText = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}}}`
	statefulText   = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: a}, spec: {selector: {matchLabels: {app: a}}}}`
)

// desk is an Applier, and what it has asked the API server to write. Nothing of that is carried out, but for whose the fields are;
// a patch is answered with version 150.
type desk struct {
	*Applier
	said []string
	sent map[string]any // by the last apply
	// refusals answer requests by their first word, each once; a nil error lets one through.
	refusals map[string][]error
	// folded are the managed fields that the last JSON patch has put into their place.
	folded []metav1.ManagedFieldsEntry
}

// newDesk is an Applier on what there is, and what its cache shows of it; nil is nothing.
func newDesk(live, shown *unstructured.Unstructured) *desk {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configs, meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	mapper.Add(rbacv1.SchemeGroupVersion.WithKind("ClusterRole"), meta.RESTScopeRoot)
	d := &desk{refusals: map[string][]error{}}
	with := func(object *unstructured.Unstructured) *fake.ClientBuilder {
		b := fake.NewClientBuilder().WithRESTMapper(mapper).WithReturnManagedFields()
		if object != nil {
			b = b.WithObjects(object)
		}
		return b
	}
	kube := with(live).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
			if err := d.answer("get"); err != nil {
				return err
			}
			err := c.Get(ctx, key, into, how...)
			if d.folded != nil {
				into.SetManagedFields(d.folded)
			}
			return err
		},
		Apply: func(_ context.Context, _ client.WithWatch, sent runtime.ApplyConfiguration, how ...client.ApplyOption) error {
			return d.apply(sent.(metav1.Object), (&client.ApplyOptions{}).ApplyOptions(how))
		},
		Patch: func(_ context.Context, _ client.WithWatch, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
			data, err := patch.Data(o)
			if err != nil {
				return err
			}
			if err := d.say("patch", o.GetName(), string(data)); err != nil {
				return err
			}
			if o.SetResourceVersion("150"); patch.Type() != types.JSONPatchType {
				return nil
			}
			var steps []struct{ Value json.RawMessage }
			if err := json.Unmarshal(data, &steps); err != nil {
				return err
			}
			err = json.Unmarshal(steps[0].Value, &d.folded)
			o.SetManagedFields(d.folded)
			return err
		},
		Delete: func(_ context.Context, _ client.WithWatch, o client.Object, how ...client.DeleteOption) error {
			wanted := (&client.DeleteOptions{}).ApplyOptions(how)
			return d.say("delete", o.GetObjectKind().GroupVersionKind().Kind, o.GetNamespace()+"/"+o.GetName(), "if",
				string(*wanted.Preconditions.UID), string(*wanted.PropagationPolicy))
		},
	}).Build()
	cache := with(shown).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, how ...client.GetOption) error {
			if err := d.answer("cache"); err != nil {
				return err
			}
			return c.Get(ctx, key, into, how...)
		},
	}).Build()
	d.Applier = New(kube, cache)
	return d
}

func (d *desk) say(words ...string) error {
	d.said = append(d.said, strings.Join(words, " "))
	return d.answer(words[0])
}

func (d *desk) answer(word string) error {
	if len(d.refusals[word]) == 0 {
		return nil
	}
	first := d.refusals[word][0]
	d.refusals[word] = d.refusals[word][1:]
	return first
}

// apply answers an apply with version 101 of an object whose fields are ours.
func (d *desk) apply(object metav1.Object, how *client.ApplyOptions) error {
	words := []string{"apply", object.GetName(), "as", how.FieldManager}
	if ptr.Deref(how.Force, false) {
		words = append(words, "by force")
	}
	if uid := string(object.GetUID()); uid != "" {
		words = append(words, "if", uid)
	}
	if version := object.GetResourceVersion(); version != "" {
		words = append(words, "at version", version)
	}
	if body, ok := object.(interface{ UnstructuredContent() map[string]any }); ok {
		d.sent = runtime.DeepCopyJSON(body.UnstructuredContent())
	}
	if err := d.say(words...); err != nil {
		return err
	}
	if d.sent["kind"] == nil || object.GetNamespace() == "" {
		return errors.New("an apply to nothing")
	}
	if object.GetUID() == "" {
		object.SetUID("made")
	}
	object.SetResourceVersion("101")
	object.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"f:data":{"f:text":{}}}`)})
	return nil
}

// desired is an object as a chart renders it.
func desired(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	return &unstructured.Unstructured{Object: decoded(t, text)}
}

// existing is an object of the shop with UID a, of which we have applied some fields, changed.
func existing(t *testing.T, text string, changes ...func(*unstructured.Unstructured)) *unstructured.Unstructured {
	t.Helper()
	o := desired(t, text)
	o.SetNamespace("n")
	o.SetUID("a")
	o.SetResourceVersion("100")
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "shop", UID: "shop", Controller: ptr.To(true)}})
	o.SetManagedFields([]metav1.ManagedFieldsEntry{entry(`{"f:data":{"f:text":{}}}`)})
	for _, change := range changes {
		change(o)
	}
	return o
}

func anothers(o *unstructured.Unstructured) {
	o.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "Shop", Name: "b", UID: "b", Controller: ptr.To(true)}})
}

func leaving(o *unstructured.Unstructured) {
	o.SetDeletionTimestamp(ptr.To(metav1.Now()))
	o.SetFinalizers([]string{"example.com/held"})
}

func keeps(o *unstructured.Unstructured) {
	o.SetAnnotations(map[string]string{keepAnnotation: keepValue})
}

// managed gives an object other entries of managed fields.
func managed(entries ...metav1.ManagedFieldsEntry) func(*unstructured.Unstructured) {
	return func(o *unstructured.Unstructured) { o.SetManagedFields(entries) }
}

// invalid is a refusal because of fields.
func invalid(message string, paths ...*field.Path) error {
	var all field.ErrorList
	for _, path := range paths {
		all = append(all, field.Invalid(path, "x", message))
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Thing"}, "a", all)
}

func notFound() error {
	return apierrors.NewNotFound(corev1.Resource("configmaps"), "a")
}

func conflict() error {
	return apierrors.NewConflict(corev1.Resource("configmaps"), "a", nil)
}
