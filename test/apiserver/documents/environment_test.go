// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package documents types what the pages tell to type, against a real API server:
// `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/documents`.
package documents

import (
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const root = "../../.."

var (
	server = &envtest.Environment{CRDDirectoryPaths: []string{filepath.Join(root, "config", "crd", "bases")}, ErrorIfCRDPathMissing: true}
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	os.Exit(shared.Run(m, server, scheme.Scheme, shared.Into(&admin, &api)))
}
