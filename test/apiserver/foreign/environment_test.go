// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foreign asks of every child of every kind what happens when it is not the operator's alone: its name is somebody's, its
// fields are edited, its owner is another, its namespace goes. KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/foreign.
//
// The whole operator runs, without Redis and without the controllers of Kubernetes: children are made, and no pods.
package foreign

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

var (
	api client.Client
	// requests are those of the operator.
	requests environment.Requests
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "12") // the tests mostly wait; the flag exists in every test binary
	server := &envtest.Environment{CRDDirectoryPaths: []string{"../../../config/crd/bases"}, ErrorIfCRDPathMissing: true}
	os.Exit(environment.Run(m, server, scheme.Scheme, start))
}

// start runs the operator for all namespaces and all tests.
func start(ctx context.Context, admin *rest.Config, c client.Client) (<-chan error, error) {
	api = c
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, requests.Of(admin), environment.Options(), environment.Nowhere) }()
	return ended, nil
}

// kinds are the samples that have the most children, and how many those are.
var kinds = map[string]int{
	"appcontroller_v1alpha1_app_full.yaml":  7,
	"controller_v1_application_full.yaml":   1,
	"k8s_v1_foobar_full.yaml":               2,
	"stable_v1beta1_crontab_full.yaml":      1,
	"redis_v1alpha1_rediscluster_full.yaml": 9,
}

// childKinds are those that children have.
var childKinds = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"}, {Version: "v1", Kind: "Secret"},
	{Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"}, {Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"}, {Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
}

// newResource reads a sample into a new namespace; it is not created yet.
func newResource(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../config/samples", file))
	environment.Check(t, err)
	resource := &unstructured.Unstructured{}
	environment.Check(t, yaml.Unmarshal(text, &resource.Object))
	resource.SetNamespace(environment.NewNamespace(t, api, "foreign"))
	if resource.GetKind() == "RedisCluster" { // nobody collects what a deletion in the foreground waits for
		environment.Check(t, unstructured.SetNestedField(resource.Object, "background", "spec", "finalizers"))
	}
	return resource
}

// children are what a resource controls, but for Helm's records.
func children(t *testing.T, resource *unstructured.Unstructured) (found []*unstructured.Unstructured) {
	t.Helper()
	for _, kind := range childKinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		environment.Check(t, api.List(context.Background(), list, client.InNamespace(resource.GetNamespace())))
		for i := range list.Items {
			if metav1.IsControlledBy(&list.Items[i], resource) {
				found = append(found, &list.Items[i])
			}
		}
	}
	return found
}

// making creates a resource and waits for its children.
func making(t *testing.T, file string) (*unstructured.Unstructured, []*unstructured.Unstructured) {
	t.Helper()
	resource := newResource(t, file)
	environment.Check(t, api.Create(context.Background(), resource))
	var made []*unstructured.Unstructured
	environment.Eventually(t, "the children of "+file, func() string {
		if made = children(t, resource); len(made) < kinds[file] {
			return statusOf(t, resource)
		}
		return ""
	})
	return resource, made
}

// statusOf is the text of a resource's status.
func statusOf(t *testing.T, resource *unstructured.Unstructured) string {
	t.Helper()
	resource = resource.DeepCopy() // tests of its children share it
	if !environment.Get(t, api, resource) {
		return "it is gone"
	}
	text, err := yaml.Marshal(resource.Object["status"])
	environment.Check(t, err)
	return string(text)
}
