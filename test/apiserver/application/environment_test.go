// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application runs the reconciler of Applications against a real API server, with the CRDs of this project:
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/application.
//
// No controller manager runs there: tests write the status that a Deployment's controller would write, and what the garbage
// collector would remove is seen by its owner reference.
package application

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/application"
	"middleware.hc.cn/operator/internal/apply"
)

var (
	environment = &envtest.Environment{CRDDirectoryPaths: []string{"../../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	scheme      = runtime.NewScheme()
	admin       *rest.Config
	api         client.Client
	requests    atomic.Int64 // what the operator asks of the API server, watches and Events apart
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "%v\nset KUBEBUILDER_ASSETS to the directory that hack/envtest.sh prints\n", err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(applicationv1.AddToScheme(scheme))
	var err error
	if admin, err = environment.Start(); err != nil {
		return 1, fmt.Errorf("start the API server: %w", err)
	}
	defer func() { _ = environment.Stop() }() // its processes end with this one at the latest
	if api, err = client.New(admin, client.Options{Scheme: scheme}); err != nil {
		return 1, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	if err := start(ctx, ended); err != nil {
		cancel()
		return 1, err
	}
	code := m.Run()
	cancel()
	return code, <-ended
}

// start runs the operator for all namespaces.
func start(ctx context.Context, ended chan<- error) error {
	counted := rest.CopyConfig(admin)
	counted.QPS = -1
	counted.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next} })
	mgr, err := ctrl.NewManager(counted, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		return err
	}
	children, err := cache.New(counted, cache.Options{
		Scheme: scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{apply.ManagedByLabel: apply.ManagedByValue}),
	})
	if err != nil {
		return err
	}
	if err := mgr.Add(children); err != nil {
		return err
	}
	if err := application.Add(mgr, children, application.Options{}); err != nil {
		return err
	}
	go func() { ended <- mgr.Start(ctx) }()
	return nil
}

type counter struct{ next http.RoundTripper }

func (c counter) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.URL.Query().Get("watch") == "" && !strings.Contains(request.URL.Path, "/events") {
		requests.Add(1)
	}
	return c.next.RoundTrip(request)
}

// passes is the number of passes that have ended.
func passes(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	check(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually waits until what returns nothing; it says what is amiss after a minute.
func eventually(t *testing.T, name string, what func() string) {
	t.Helper()
	amiss := ""
	for range 600 {
		if amiss = what(); amiss == "" {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s: %s", name, amiss)
}

func newNamespace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "application-"}}
	check(t, api.Create(context.Background(), namespace))
	return namespace.Name
}

// sample is an Application of config/samples, in a namespace.
func sample(t *testing.T, file, namespace string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile("../../../config/samples/" + file)
	check(t, err)
	object := &unstructured.Unstructured{}
	check(t, yaml.UnmarshalStrict(text, &object.Object))
	object.SetNamespace(namespace)
	return object
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	check(t, api.Create(context.Background(), object))
}

// status reads a status without reading the spec, which may be unreadable.
func status(t *testing.T, object client.Object) applicationv1.ApplicationStatus {
	t.Helper()
	app := &unstructured.Unstructured{}
	app.SetGroupVersionKind(applicationv1.GroupVersion.WithKind("Application"))
	check(t, api.Get(context.Background(), client.ObjectKeyFromObject(object), app))
	var status applicationv1.ApplicationStatus
	if content, ok := app.Object["status"].(map[string]any); ok {
		check(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &status))
	}
	return status
}

// awaitCondition waits for a condition of an Application's present generation.
func awaitCondition(t *testing.T, object client.Object, conditionType, wanted string) {
	t.Helper()
	eventually(t, conditionType, func() string {
		got := "absent"
		for _, c := range status(t, object).Conditions {
			if c.Type == conditionType {
				got = fmt.Sprintf("%s %s: %s", c.Status, c.Reason, c.Message)
			}
		}
		if strings.HasPrefix(got, wanted) {
			return ""
		}
		return fmt.Sprintf("got %q, want %q", got, wanted)
	})
}

func deploymentOf(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	d := &appsv1.Deployment{}
	eventually(t, "Deployment "+name, func() string {
		if err := api.Get(context.Background(), client.ObjectKey{Namespace: namespace, Name: name}, d); err != nil {
			return err.Error()
		}
		return ""
	})
	return d
}

// edit changes a Deployment as another client would.
func edit(t *testing.T, namespace, name string, how func(*appsv1.Deployment)) {
	t.Helper()
	eventually(t, "another client's write", func() string {
		d := deploymentOf(t, namespace, name)
		how(d)
		if err := api.Update(context.Background(), d, client.FieldOwner("another-client")); err != nil {
			return err.Error()
		}
		return ""
	})
}

// rollOut writes the status that the Deployment's controller would write.
func rollOut(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "the Deployment controller's write", func() string {
		d := deploymentOf(t, namespace, name)
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n}
		if err := api.Status().Update(context.Background(), d); err != nil {
			return err.Error()
		}
		return ""
	})
}
