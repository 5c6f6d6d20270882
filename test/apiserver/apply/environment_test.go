// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply runs internal/apply against a real API server: `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/apply/`.
// No controller manager runs there: nothing collects garbage, and workloads get no pods.
package apply

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
)

const group = "test.middleware.hc.cn"

var (
	environment = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		newCRD("Web", apiextensionsv1.NamespaceScoped), newCRD("Platform", apiextensionsv1.ClusterScoped)}}
	admin *rest.Config
	api   client.Client
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\nset KUBEBUILDER_ASSETS to the directory hack/envtest.sh prints\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	ctrl.SetLogger(logr.Discard()) // tests tell what failed
	var err error
	if admin, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = environment.Stop() }() // its processes end with this one at the latest
	admin.QPS = -1
	if api, err = client.New(admin, client.Options{Scheme: scheme.Scheme}); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// newCRD describes a kind whose spec takes anything.
func newCRD(kind string, scope apiextensionsv1.ResourceScope) *apiextensionsv1.CustomResourceDefinition {
	singular := strings.ToLower(kind)
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: singular + "s." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: singular + "s", Singular: singular, Kind: kind, ListKind: kind + "List"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: ptr.To(true)}}}},
		},
	}
}

// operator is an Applier with what it reads and asks.
type operator struct {
	*apply.Applier
	requests *atomic.Int64
}

// newOperator starts an Applier that remembers nothing, with the rights of a configuration.
func newOperator(t testing.TB, as *rest.Config) operator {
	t.Helper()
	return newOperatorWith(t, as, childrenCache{api})
}

func newOperatorWith(t testing.TB, as *rest.Config, children client.Reader) operator {
	t.Helper()
	requests := new(atomic.Int64)
	counted := rest.CopyConfig(as)
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, requests} })
	live, err := client.New(counted, client.Options{Scheme: scheme.Scheme, Mapper: api.RESTMapper()})
	check(t, err)
	return operator{apply.New(live, children), requests}
}

type counter struct {
	next  http.RoundTripper
	count *atomic.Int64
}

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	c.count.Add(1)
	return c.next.RoundTrip(request)
}

// childrenCache shows what the operator's cache of children shows when it has caught up: objects with our label, and of their
// managedFields our own entries.
type childrenCache struct{ client.Client }

func (c childrenCache) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if err := c.Client.Get(ctx, key, object, options...); err != nil {
		return err
	}
	if object.GetLabels()[apply.ManagedByLabel] != apply.ManagedByValue {
		return apierrors.NewNotFound(schema.GroupResource{Resource: object.GetObjectKind().GroupVersionKind().Kind}, key.Name)
	}
	var own []metav1.ManagedFieldsEntry
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == apply.FieldManager {
			own = append(own, entry)
		}
	}
	object.SetManagedFields(own)
	return nil
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

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newNamespace(t testing.TB) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "apply-"}}
	check(t, api.Create(context.Background(), namespace))
	t.Cleanup(func() { // addresses and node ports belong to the whole cluster
		check(t, api.DeleteAllOf(context.Background(), &corev1.Service{}, client.InNamespace(namespace.Name)))
	})
	return namespace.Name
}

// newOwner creates a resource that owns children.
func newOwner(t testing.TB, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion(group + "/v1")
	owner.SetKind(kind)
	owner.SetNamespace(namespace)
	owner.SetName(name)
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
	check(t, api.Patch(context.Background(), read(t, namespace, text), client.RawPatch("application/merge-patch+json", encoded), client.FieldOwner("another-client")))
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
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("%s did not come about", what)
}
