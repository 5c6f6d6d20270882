// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// config is a ConfigMap with an owner.
func config(name string, owner *metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: name, UID: "made",
		OwnerReferences: []metav1.OwnerReference{*owner}}}
}

// applying is a client that answers applies so, by the name of the object.
func applying(t *testing.T, answer func(name string) error, there ...client.Object) client.Client {
	scheme, mapper := runtime.NewScheme(), meta.NewDefaultRESTMapper(nil)
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	for _, kind := range []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("ConfigMap"),
		corev1.SchemeGroupVersion.WithKind("Service"), values.Certificate} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(there...)
	return builder.WithInterceptorFuncs(interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, how ...client.ApplyOption) error {
			if err := answer(o.(interface{ GetName() string }).GetName()); err != nil {
				return err
			}
			return c.Apply(ctx, o, how...)
		}}).Build()
}

// Children are applied, and what is no longer rendered goes; whether something changed is told, and what only a person can change is
// a stall that says what.
func TestApplyChildren(t *testing.T) {
	unread := errors.New("timeout")
	immutable := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("data"), "x", "field is immutable")})
	refused := apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "a",
		field.ErrorList{field.Invalid(field.NewPath("data"), "x", "must be from 1 to 65535")})
	for name, tt := range map[string]struct {
		there    []client.Object
		obsolete bool
		answer   error
		again    bool
		acted    bool
		stall    string
		fails    error
		gone     bool
	}{
		"new":                        {acted: true},
		"as they are":                {again: true},
		"one is obsolete":            {again: true, there: []client.Object{config("old", ours)}, obsolete: true, acted: true, gone: true},
		"an obsolete one of another": {again: true, there: []client.Object{config("old", theirs)}, obsolete: true},
		"the name is another's":      {there: []client.Object{config("a", theirs)}, acted: true, stall: "NameTaken"},
		"it cannot be changed":       {answer: immutable, acted: true, stall: "CannotChange"},
		"the API server refuses it":  {answer: refused, acted: true, stall: "Rejected"},
		"an admission refuses it":    {answer: apierrors.NewForbidden(schema.GroupResource{}, "a", unread), acted: true, stall: "Rejected"},
		"it cannot be written":       {answer: unread, acted: true, fails: unread},
		"there is no right to":       {answer: &apply.ForbiddenError{Err: unread}, acted: true, fails: unread},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, interceptor.Funcs{})
			kube := applying(t, func(string) error { return tt.answer }, tt.there...)
			b.actor.Applier = apply.New(kube, kube)
			b.subject.Children = []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a", "namespace": "n"}, "data": map[string]any{"a": "b"}}}}
			if tt.again {
				b.must(plan.ApplyChildren{})
			}
			if tt.obsolete {
				b.subject.Obsolete = []apply.Ref{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "n", Name: "old"}}
			}
			result, err := b.actor.Do(t.Context(), b.subject, plan.ApplyChildren{})
			var stall *StallError
			if errors.As(err, &stall) != (tt.stall != "") || stall != nil && stall.Cause != tt.stall || stall == nil && !errors.Is(err, tt.fails) {
				t.Errorf("error %v", err)
			}
			if result.Acted != tt.acted {
				t.Errorf("acted: %t", result.Acted)
			}
			if len(tt.there) > 0 {
				err := kube.Get(t.Context(), client.ObjectKeyFromObject(tt.there[0]), &corev1.ConfigMap{})
				if apierrors.IsNotFound(err) != tt.gone {
					t.Errorf("gone: %v", err)
				}
			}
		})
	}
}

// What is obsolete and cannot be deleted is told, although all others are as they are.
func TestObsoleteChildrenThatStay(t *testing.T) {
	refused := errors.New("refused")
	b := newBench(t, interceptor.Funcs{Delete: func(context.Context, client.WithWatch, client.Object,
		...client.DeleteOption) error {
		return refused
	}},
		config("old", ours))
	b.actor.Applier = apply.New(b.actor.Client, b.actor.Client)
	b.subject.Obsolete = []apply.Ref{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "n", Name: "old"}}
	for _, outside := range [][]apply.Ref{nil, {{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "n",
		Name: b.subject.Cluster.GatewayName()}}} {
		b.subject.Obsolete = append(b.subject.Obsolete, outside...)
		if result, err := b.actor.Do(t.Context(), b.subject, plan.ApplyChildren{}); !errors.Is(err, refused) || result.Acted {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

// Whatever becomes of what is made for clients outside, the rest is applied, and what is obsolete goes; it is told whether a person has to
// help. When it is taken at last, there is something new to observe, and once it is, there is not.
func TestChildrenOutsideAreApart(t *testing.T) {
	taken := field.ErrorList{field.Invalid(field.NewPath("spec", "ports"), 1, "is taken")}
	services := schema.GroupResource{Resource: "services"}
	for name, tt := range map[string]struct {
		outside string
		answer  error
		refused *bool // whether by what a person has to change
	}{
		"it is taken":          {"c-gateway", nil, nil},
		"a webhook is away":    {"c-gateway", apierrors.NewInternalError(errors.New("failed calling webhook")), new(bool)},
		"a quota is exhausted": {"c-external", apierrors.NewForbidden(services, "a", errors.New("exceeded quota")), ptr.To(true)},
		"a port is taken":      {"c-gateway", apierrors.NewInvalid(schema.GroupKind{}, "a", taken), ptr.To(true)},
	} {
		b := newBench(t, interceptor.Funcs{})
		kube := applying(t, func(name string) error {
			if name == tt.outside {
				return tt.answer
			}
			return nil
		}, config("old", ours))
		b.actor.Applier = apply.New(kube, kube)
		b.subject.Obsolete = []apply.Ref{{GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Namespace: "n", Name: "old"}}
		for _, child := range []string{tt.outside, "a"} {
			b.subject.Children = append(b.subject.Children, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1",
				"kind": "ConfigMap", "metadata": map[string]any{"name": child, "namespace": "n"}}})
		}
		result, err := b.actor.Do(t.Context(), b.subject, plan.ApplyChildren{})
		if err != nil || !result.Acted || (result.Outside == nil) != (tt.refused == nil) ||
			result.Outside != nil && (result.Outside.Person != *tt.refused || !strings.Contains(result.Outside.Message, "spec.external asks for")) {
			t.Errorf("%s: %+v, %v", name, result, err)
		}
		for child, want := range map[string]bool{"a": true, "old": false, tt.outside: tt.answer == nil} {
			err := kube.Get(t.Context(), client.ObjectKey{Namespace: "n", Name: child}, &corev1.ConfigMap{})
			if (err == nil) != want {
				t.Errorf("%s: %s is there: %v", name, child, err)
			}
		}
		for _, acted := range []bool{tt.answer != nil, false} {
			tt.answer = nil
			if result, err := b.actor.Do(t.Context(), b.subject, plan.ApplyChildren{}); err != nil || result.Acted != acted {
				t.Errorf("%s, later: %+v, %v", name, result, err)
			}
		}
	}
	b := newBench(t, interceptor.Funcs{})
	kube := applying(t, func(string) error { return nil }, config("c-gateway", theirs))
	b.actor.Applier = apply.New(kube, kube)
	b.subject.Children = []*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": map[string]any{"name": "c-gateway", "namespace": "n"}}}}
	result, err := b.actor.Do(t.Context(), b.subject, plan.ApplyChildren{})
	if err != nil || result.Outside == nil || !result.Outside.Person || !strings.Contains(result.Outside.Message, "c-gateway") {
		t.Errorf("the name is another's: %+v, %v", result.Outside, err)
	}
}

// Gateways that are to end do, whatever becomes of the Service before them.
func TestGatewaysEndFirst(t *testing.T) {
	for _, tt := range []struct {
		kind string
		spec map[string]any
		want bool
	}{
		{"Deployment", map[string]any{"replicas": int64(0)}, true},
		{"Deployment", map[string]any{"replicas": int64(2)}, false},
		{"Deployment", nil, false},
		{"StatefulSet", map[string]any{"replicas": int64(0)}, false},
	} {
		if o := (&unstructured.Unstructured{Object: map[string]any{"kind": tt.kind, "spec": tt.spec}}); stopped(o) != tt.want {
			t.Errorf("%s of %v: it ends: %t", tt.kind, tt.spec, !tt.want)
		}
	}
}

// What is rendered is kept packed for all steps but those that write it, or make something by it.
func TestWhichStepsNeedWhatIsRendered(t *testing.T) {
	for _, step := range []plan.Step{plan.ApplyChildren{}, plan.Hibernate{}, plan.Wake{}, plan.ApplyCertificate{}, plan.RestoreShards{},
		plan.PrepareImport{}} {
		if !NeedsChildren(step) {
			t.Errorf("%s is carried out by nothing", step.Name())
		}
	}
	for _, step := range []plan.Step{plan.None{}, plan.Wait{}, plan.MoveSlots{}, plan.TakeTurn{}, plan.RemoveShards{}} {
		if NeedsChildren(step) {
			t.Errorf("all is unpacked for %s", step.Name())
		}
	}
}
