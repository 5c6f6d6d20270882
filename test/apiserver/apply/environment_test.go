// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply runs internal/apply against a real API server: `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/apply/`.
// No controller manager runs there: nothing collects garbage, and workloads get no pods.
package apply

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

const group = "test.middleware.hc.cn"

var (
	admin *rest.Config
	api   client.Client
)

func TestMain(m *testing.M) {
	web, platform := environment.FreeCRD(kindOf("Web"), nil), environment.FreeCRD(kindOf("Platform"), nil)
	platform.Spec.Scope = apiextensionsv1.ClusterScoped
	server := &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{web, platform}}
	os.Exit(environment.Run(m, server, scheme.Scheme, environment.Into(&admin, &api)))
}

func kindOf(kind string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind}
}

// operator is an Applier with what it reads and asks.
type operator struct {
	*apply.Applier
	requests *environment.Requests
}

// newOperator starts an Applier that remembers nothing, with the rights of a configuration.
func newOperator(t testing.TB, as *rest.Config) operator {
	t.Helper()
	return newOperatorWith(t, as, childrenCache{api})
}

func newOperatorWith(t testing.TB, as *rest.Config, children client.Reader) operator {
	t.Helper()
	requests := new(environment.Requests)
	live, err := client.New(requests.Of(as), client.Options{Scheme: scheme.Scheme, Mapper: api.RESTMapper()})
	check(t, err)
	return operator{apply.New(live, children), requests}
}

// childrenCache shows what the operator's cache of children shows when it has caught up: objects with our label, compacted.
type childrenCache struct{ client.Client }

func (c childrenCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if object.GetLabels()[apply.ManagedByLabel] != apply.ManagedByValue {
		return apierrors.NewNotFound(schema.GroupResource{Resource: object.GetObjectKind().GroupVersionKind().Kind}, key.Name)
	}
	compact, err := manager.CompactChild(object)
	if err == nil && compact != any(object) {
		err = fmt.Errorf("%T is kept as %T", object, compact)
	}
	return err
}

// frozenCache shows objects as they were, by kind.
type frozenCache map[string]*unstructured.Unstructured

func (c frozenCache) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	was := c[into.GetObjectKind().GroupVersionKind().Kind]
	into.(*metav1.PartialObjectMetadata).ObjectMeta = metav1.ObjectMeta{
		Namespace: was.GetNamespace(), Name: was.GetName(), UID: was.GetUID(), ResourceVersion: was.GetResourceVersion(), Labels: was.GetLabels(),
		Annotations: was.GetAnnotations(), OwnerReferences: was.GetOwnerReferences(), ManagedFields: was.GetManagedFields()}
	return nil
}

func (frozenCache) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }

var check = environment.Check

func newNamespace(t testing.TB) string {
	t.Helper()
	namespace := environment.NewNamespace(t, api, "apply")
	t.Cleanup(func() { // addresses and node ports belong to the whole cluster
		check(t, api.DeleteAllOf(context.Background(), &corev1.Service{}, client.InNamespace(namespace)))
	})
	return namespace
}

// newOwner creates a resource that owns children.
func newOwner(t testing.TB, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	owner := environment.Object(kindOf(kind), namespace, name)
	check(t, api.Create(context.Background(), owner))
	return owner
}

// manifests reads objects as a chart renders them.
func manifests(t testing.TB, text string) []*unstructured.Unstructured {
	t.Helper()
	var objects []*unstructured.Unstructured
	for document := range strings.SplitSeq(text, "\n---\n") {
		object := &unstructured.Unstructured{}
		check(t, yaml.Unmarshal([]byte(document), &object.Object))
		objects = append(objects, object)
	}
	return objects
}

// mustApply applies manifests and returns what was done to the first.
func (o operator) mustApply(t testing.TB, owner client.Object, text string, options ...apply.Option) apply.Change {
	t.Helper()
	changes, err := o.Apply(context.Background(), owner, manifests(t, text), options...)
	check(t, err)
	return changes[0]
}

// mustDrift checks which children are no longer as they were applied, without a request.
func (o operator) mustDrift(t testing.TB, owner client.Object, want ...string) {
	t.Helper()
	before := o.requests.Load()
	drift, err := o.Drifted(context.Background(), owner)
	check(t, err)
	var got []string
	for _, ref := range drift.Refs {
		got = append(got, ref.Kind+" "+ref.Name)
	}
	if !drift.Known || strings.Join(got, ",") != strings.Join(want, ",") || o.requests.Load() != before {
		t.Errorf("drifted: %v, want %v (known: %v, requests: %d)", got, want, drift.Known, o.requests.Load()-before)
	}
}

// read returns an object of a manifest as it is; nil if it is gone.
func read(t testing.TB, namespace, text string) *unstructured.Unstructured {
	t.Helper()
	object := manifests(t, text)[0]
	if object.GetNamespace() != "" {
		namespace = object.GetNamespace()
	}
	err := api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: object.GetName()}, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	check(t, err)
	return object
}

// edit changes an object of a manifest as another client would, by a merge patch.
func edit(t testing.TB, namespace, text, patch string) {
	t.Helper()
	encoded, err := yaml.YAMLToJSON([]byte(patch))
	check(t, err)
	check(t, api.Patch(context.Background(), read(t, namespace, text), client.RawPatch("application/merge-patch+json", encoded),
		client.FieldOwner("another-client")))
}

// field reads a field of an object, as text.
func field(t testing.TB, object *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(object.Object, path...)
	check(t, err)
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("%s did not come about", what)
}
