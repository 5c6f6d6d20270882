// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package uninstalled tries what docs/installation.md tells users to type when the operator is gone before its objects are:
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/uninstalled. No operator runs there. What the garbage collector and
// the controller of namespaces would remove is not looked at.
package uninstalled

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/release"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

const root = "../../.."

var api client.Client

func TestMain(m *testing.M) {
	server := &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	var admin *rest.Config
	os.Exit(environment.Run(m, server, scheme.Scheme, environment.Into(&admin, &api)))
}

// finalizers are those that the operator may have left on an object of a kind.
var finalizers = map[string][]string{
	"RedisCluster": {v1alpha1.Finalizer}, "RedisBackup": {v1alpha1.FinalizerBackup}, "RedisBackupSchedule": nil,
	"App": {release.Finalizer}, "CronTab": {release.Finalizer}, "FooBar": {release.SDKFinalizer},
	"Application": nil,
}

// The operator is gone with its namespace, and its webhook configurations are left behind. Objects are deleted all the same: those
// without a finalizer at once, the others when it is taken off. Everything else is refused until the configurations go.
func TestObjectsOutliveTheOperator(t *testing.T) {
	namespace := environment.NewNamespace(t, api, "uninstalled")
	objects := samples(t, namespace)
	for _, object := range objects {
		object.SetFinalizers(finalizers[object.GetKind()])
		environment.Check(t, api.Create(t.Context(), object))
	}
	leaveWebhooks(t)
	environment.Eventually(t, "the webhooks are asked", func() string {
		another := objects[0].DeepCopy()
		another.SetResourceVersion("")
		another.SetName("another")
		if err := api.Create(t.Context(), another, client.DryRunAll); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
			return "a new object is accepted"
		}
		return ""
	})
	for _, object := range objects {
		what := object.GetKind()
		environment.Check(t, api.Delete(t.Context(), object.DeepCopy()))
		waits := environment.Get(t, api, object)
		if waits != (len(finalizers[what]) > 0) {
			t.Errorf("%s waits: %v", what, waits)
		}
		if !waits {
			continue
		}
		if err := api.Patch(t.Context(), object.DeepCopy(), takenOff); err != nil {
			t.Errorf("the finalizer of a %s cannot be taken off: %v", what, err)
		}
		if environment.Get(t, api, object) {
			t.Errorf("the %s is still there", what)
		}
	}
}

// takenOff is what the documentation has users type.
var takenOff = client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))

// samples are the plain ones of every kind.
func samples(t *testing.T, namespace string) (objects []*unstructured.Unstructured) {
	t.Helper()
	files, err := filepath.Glob(root + "/config/samples/*_*.yaml")
	environment.Check(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_full.yaml") {
			continue
		}
		text, err := os.ReadFile(file)
		environment.Check(t, err)
		object := &unstructured.Unstructured{}
		environment.Check(t, yaml.Unmarshal(text, &object.Object))
		object.SetNamespace(namespace)
		objects = append(objects, object)
	}
	if len(objects) != len(finalizers) {
		t.Fatalf("%d samples of %d kinds", len(objects), len(finalizers))
	}
	return objects
}

// leaveWebhooks makes the configurations as they are installed; their Service is in a namespace that is gone.
func leaveWebhooks(t *testing.T) {
	t.Helper()
	for file, configuration := range map[string]client.Object{
		"mutating.yaml":   &admissionregistrationv1.MutatingWebhookConfiguration{},
		"validating.yaml": &admissionregistrationv1.ValidatingWebhookConfiguration{},
	} {
		text, err := os.ReadFile(filepath.Join(root, "config", "webhook", file))
		environment.Check(t, err)
		environment.Check(t, yaml.Unmarshal(text, configuration))
		environment.Check(t, api.Create(t.Context(), configuration))
		t.Cleanup(func() { environment.Check(t, api.Delete(context.Background(), configuration)) })
	}
}
