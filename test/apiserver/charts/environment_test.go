// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package charts runs charts that nobody of this project wrote through the chart engine, and compares with Helm's own command:
// what is rendered, and what is in a real API server after installing, repairing, upgrading and uninstalling.
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/charts
//
// The charts are fetched as Go modules are. No controller manager runs here: players writes what its controllers would.
package charts

import (
	"context"
	"os"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/test/apiserver/environment"
)

// root is the directory of the project.
const root = "../../.."

var (
	server  = &envtest.Environment{}
	admin   *rest.Config
	api     client.Client
	clients *kubernetes.Clientset
)

func TestMain(m *testing.M) {
	for _, life := range lives {
		server.CRDs = append(server.CRDs, environment.FreeCRD(life.kind(), environment.WithStatus()))
	}
	os.Exit(environment.Run(m, server, scheme.Scheme, func(_ context.Context, config *rest.Config, c client.Client) (<-chan error, error) {
		admin, api = config, c
		var err error
		clients, err = kubernetes.NewForConfig(config)
		return nil, err
	}))
}

var check = environment.Check
