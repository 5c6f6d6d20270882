// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package platform runs the operator where the platform gives pods their user IDs, as OpenShift does, against a real API server:
// `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/platform`.
package platform

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const root = "../../.."

// constraints is the kind by which the operator knows such a platform.
var constraints = schema.GroupVersionKind{Group: "security.openshift.io", Version: "v1", Kind: "SecurityContextConstraint"}

var (
	server = &envtest.Environment{
		CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true,
		CRDs: []*apiextensionsv1.CustomResourceDefinition{scc()},
	}
	api client.Client
)

// scc is OpenShift's kind, as far as discovery shows it.
func scc() *apiextensionsv1.CustomResourceDefinition {
	crd := shared.FreeCRD(constraints, nil)
	crd.Spec.Names.Kind, crd.Spec.Names.ListKind = "SecurityContextConstraints", "SecurityContextConstraintsList"
	crd.Spec.Scope = apiextensionsv1.ClusterScoped
	return crd
}

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m, server, scheme.Scheme, func(ctx context.Context, admin *rest.Config, c client.Client) (<-chan error, error) {
		api = c
		ended := make(chan error, 1)
		go func() { ended <- manager.Run(ctx, admin, shared.Options(), shared.Nowhere) }()
		return ended, nil
	}))
}
