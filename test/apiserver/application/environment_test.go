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
	"os"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/application"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	scheme   = runtime.NewScheme()
	api      client.Client
	requests environment.Requests // what the operator asks of the API server
)

func TestMain(m *testing.M) {
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	utilruntime.Must(applicationv1.AddToScheme(scheme))
	server := &envtest.Environment{CRDDirectoryPaths: []string{"../../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	os.Exit(environment.Run(m, server, scheme, start))
}

// start runs the operator for all namespaces and all tests.
func start(ctx context.Context, admin *rest.Config, c client.Client) (<-chan error, error) {
	api = c
	mgr, children, err := environment.NewManager(requests.Of(admin), scheme)
	if err != nil {
		return nil, err
	}
	if err := application.Add(mgr, children, application.Options{}); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	return ended, nil
}

var passes = environment.Passes

var check = environment.Check

// eventually waits until what returns nothing; its last answer is the failure's reason.
var eventually = environment.Eventually

func newNamespace(t *testing.T) string {
	t.Helper()
	return environment.NewNamespace(t, api, "application")
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

// rollout writes the status that the Deployment's controller would write.
func rollout(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "the Deployment controller's write", func() string {
		d := deploymentOf(t, namespace, name)
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n,
			AvailableReplicas: n}
		if err := api.Status().Update(context.Background(), d); err != nil {
			return err.Error()
		}
		return ""
	})
}
