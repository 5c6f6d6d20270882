// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transitions changes custom resources again and again on a real API server, with the operator and its webhooks:
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/transitions.
package transitions

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/test/admit"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/transitions"
)

// root is the directory of the project.
const root = "../../.."

var (
	api      client.Client
	kinds    map[string]*transitions.Kind
	requests environment.Requests
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // the tests mostly wait; the flag exists in every test binary
	scheme := runtime.NewScheme()
	utilruntime.Must(clientscheme.AddToScheme(scheme))
	server := &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{root + "/config/webhook"}}}
	os.Exit(environment.Run(m, server, scheme, func(ctx context.Context, admin *rest.Config, c client.Client) (<-chan error, error) {
		api = c
		defined, err := admit.Definitions()
		if err != nil {
			return nil, err
		}
		if kinds, err = transitions.Kinds(root, defined); err != nil {
			return nil, err
		}
		o, hook := environment.Options(), server.WebhookInstallOptions
		o.Webhooks = manager.WebhookOptions{Mode: manager.WebhooksOn, Port: hook.LocalServingPort, CertDir: hook.LocalServingCertDir}
		ended := make(chan error, 1)
		go func() { ended <- manager.Run(ctx, requests.Of(admin), o, environment.Nowhere) }()
		return ended, served(ctx, ended)
	}))
}

// served waits until the webhooks answer.
func served(ctx context.Context, ended chan error) error {
	var err error
	for range 600 {
		app := &chain{kind: kinds["App"], namespace: "default"}
		object := app.object(map[string]any{"image": "a:1"})
		if err = api.Create(ctx, object, client.DryRunAll); err == nil {
			return nil
		}
		select {
		case err := <-ended:
			ended <- nil
			return fmt.Errorf("the operator ended: %w", err)
		case <-time.After(100 * time.Millisecond):
		}
	}
	return err
}
