// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package installcrds starts the operator with --install-crds on an API server that knows none of its kinds, with the rights that
// config/ gives: KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/installcrds.
package installcrds

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root      = "../../.."
	namespace = "middleware-operator-system"
)

var (
	api      client.Client
	operator *rest.Config // the operator's service account
)

func TestMain(m *testing.M) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	os.Exit(shared.Run(m, &envtest.Environment{}, known, func(ctx context.Context, admin *rest.Config, c client.Client) (<-chan error, error) {
		api, operator = c, rest.CopyConfig(admin)
		operator.Impersonate = rest.ImpersonationConfig{
			UserName: "system:serviceaccount:" + namespace + ":middleware-operator",
			Groups:   []string{"system:serviceaccounts", "system:authenticated"},
		}
		files, err := filepath.Glob(filepath.Join(root, "config", "rbac", "*.yaml"))
		return nil, errors.Join(err, apply(ctx, append([]string{filepath.Join(root, "config", "manager", "namespace.yaml")}, files...)...))
	}))
}

// apply makes the objects of files.
func apply(ctx context.Context, files ...string) error {
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.Unmarshal(document, &object.Object); err != nil {
				return err
			}
			if object.GetKind() == "" {
				continue // a kustomization
			}
			if err := api.Create(ctx, object); err != nil {
				return err
			}
		}
	}
	return nil
}

// run runs the operator with one controller (the names of controllers are taken once in a process) until it leads, or ends.
func run(t *testing.T, controller string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	o := manager.DefaultOptions()
	o.InstallCRDs, o.Controllers, o.WatchesFile = true, []string{controller}, filepath.Join(root, "watches.yaml")
	o.LeaderElection.Namespace, o.Webhooks.Mode = namespace, manager.WebhooksOff
	o.Serving.MetricsAddress, o.Serving.HealthAddress = "0", "0"
	inPod := func(name string) (string, bool) {
		value, set := map[string]string{"POD_NAMESPACE": namespace, "POD_SERVICE_ACCOUNT": "middleware-operator"}[name]
		return value, set
	}
	// One that was ended in the moment in which it took the lease has not released it.
	shared.Check(t, client.IgnoreNotFound(api.Delete(t.Context(), lease())))
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx, operator, o, inPod) }()
	for !leads(t) && ctx.Err() == nil {
		select {
		case err := <-ended:
			return err
		case <-time.After(50 * time.Millisecond):
		}
	}
	cancel()
	return <-ended
}

// leads reports whether an operator holds the lease: it takes it after the CRDs are installed, and releases it when it ends.
func leads(t *testing.T) bool {
	t.Helper()
	held := lease()
	return shared.Get(t, api, held) && ptr.Deref(held.Spec.HolderIdentity, "") != ""
}

func lease() *coordinationv1.Lease {
	lease := &coordinationv1.Lease{}
	lease.Namespace, lease.Name = namespace, "middleware-operator"
	return lease
}

// missing are the CRDs of config/crd that are not served.
func missing(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "bases", "*.yaml"))
	shared.Check(t, err)
	var names []string
	for _, file := range files {
		group, plural, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".yaml"), "_")
		crd := &apiextensionsv1.CustomResourceDefinition{}
		crd.Name = plural + "." + group
		if !shared.Get(t, api, crd) {
			names = append(names, crd.Name)
		}
	}
	return names
}

func TestInstallCRDsTakesARoleOfItsOwn(t *testing.T) {
	if len(missing(t)) != 7 {
		t.Fatalf("only %v are missing before the test", missing(t))
	}
	err := run(t, "application")
	for _, part := range []string{"--install-crds: ", "forbidden", "kubectl apply --server-side -k config/overlays/install-crds",
		"kubectl apply --server-side -k config/crd"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Fatalf("without the role it ended with: %v; want it to say %q", err, part)
		}
	}
	shared.Check(t, apply(t.Context(), filepath.Join(root, "config", "components", "install-crds", "role.yaml")))
	shared.Eventually(t, "the role's effect", func() string { // the authorizer learns of it by and by
		if err := run(t, "application"); err != nil {
			return err.Error()
		}
		return ""
	})
	if left := missing(t); len(left) > 0 {
		t.Errorf("not installed: %v", left)
	}
	if err := run(t, "crontab"); err != nil { // it applies what is there
		t.Errorf("started again: %v", err)
	}

	as, err := client.New(operator, client.Options{Scheme: api.Scheme()})
	shared.Check(t, err)
	crd := shared.FreeCRD(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Other"}, nil)
	crd.SetGroupVersionKind(apiextensionsv1.SchemeGroupVersion.WithKind("CustomResourceDefinition"))
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(crd)
	shared.Check(t, err)
	foreign := &unstructured.Unstructured{Object: content}
	if err := as.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(foreign),
		client.FieldOwner("operator")); !apierrors.IsForbidden(err) {
		t.Errorf("a CRD of others: %v, want it forbidden", err)
	}
	own := &apiextensionsv1.CustomResourceDefinition{}
	own.Name = "crontabs.stable.example.com"
	if err := as.Delete(t.Context(), own); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a CRD: %v, want it forbidden", err)
	}
}
