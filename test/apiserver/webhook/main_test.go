// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook runs the whole operator against a real API server and asks what a user sees of its admission. It needs
// KUBEBUILDER_ASSETS (make test-apiserver).
package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/manager"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root      = "../../.."
	namespace = "middleware-operator-system"
)

var (
	restConfig *rest.Config
	kubeconfig []byte
	kube       client.Client
)

func TestMain(m *testing.M) {
	if path := os.Getenv(operatorVariable); path != "" {
		if err := operatorProcess(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "webhook tests: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// run starts an API server and the operator, with every controller and the webhooks, then the tests.
func run(m *testing.M) (code int, err error) {
	if os.Getenv("KUBEBUILDER_ASSETS") == "" {
		return 1, errors.New("KUBEBUILDER_ASSETS is not set; run them with make test-apiserver")
	}
	ctrl.SetLogger(zap.New(zap.WriteTo(os.Stderr)))
	server := &envtest.Environment{
		CRDDirectoryPaths:     []string{root + "/config/crd/bases"},
		ErrorIfCRDPathMissing: true,
		WebhookInstallOptions: envtest.WebhookInstallOptions{Paths: []string{root + "/config/webhook"}},
	}
	// Off by default, and on in OpenShift: who sets blockOwnerDeletion must be allowed to update the owner's finalizers.
	server.ControlPlane.GetAPIServer().Configure().Append("enable-admission-plugins", "OwnerReferencesPermissionEnforcement")
	if restConfig, err = environment.Serve(server); err != nil {
		return 1, fmt.Errorf("starting an API server: %w", err)
	}
	kubeconfig = server.KubeConfig
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	defer func() {
		cancel()
		err = errors.Join(err, <-stopped, server.Stop())
	}()
	if kube, err = client.New(restConfig, client.Options{}); err != nil {
		return 1, err
	}
	if err := grant(ctx); err != nil {
		return 1, fmt.Errorf("applying config/rbac: %w", err)
	}
	hook := server.WebhookInstallOptions
	probes, err := freeAddress()
	if err != nil {
		return 1, err
	}
	go func() { stopped <- manager.Run(ctx, operatorConfig(), options(hook, probes), inPod) }()
	if err := ready(ctx, "http://"+probes+"/readyz", stopped); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// operatorConfig has the rights of config/rbac and no others.
func operatorConfig() *rest.Config {
	config := rest.CopyConfig(restConfig)
	config.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":middleware-operator",
		Groups:   []string{"system:serviceaccounts", "system:authenticated"},
	}
	return config
}

// grant applies the operator's namespace and its roles.
func grant(ctx context.Context) error {
	files, err := filepath.Glob(root + "/config/rbac/*.yaml")
	if err != nil {
		return err
	}
	for _, file := range append([]string{root + "/config/manager/namespace.yaml"}, files...) {
		if filepath.Base(file) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(text, []byte("\n---\n")) {
			object := &unstructured.Unstructured{}
			if err := yaml.UnmarshalStrict(document, &object.Object); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
			if err := kube.Create(ctx, object); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
	}
	return nil
}

// options are those of the Deployment, but for addresses, and for the certificate, which is mounted here.
func options(hook envtest.WebhookInstallOptions, probes string) manager.Options {
	o := manager.DefaultOptions()
	o.WatchesFile = filepath.Join(root, "watches.yaml")
	o.Serving.MetricsAddress = "0"
	o.Serving.HealthAddress = probes
	o.Webhooks = manager.WebhookOptions{Mode: manager.WebhooksOn, Port: hook.LocalServingPort, CertDir: hook.LocalServingCertDir}
	o.GracefulShutdownTimeout = 5 * time.Second
	return o
}

// The images of resources that name none are those of a mirror.
const (
	mirror = "mirror.example.com:5000/library"
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func inPod(name string) (string, bool) {
	value, set := map[string]string{
		"POD_NAMESPACE":              namespace,
		"RELATED_IMAGE_REDIS":        mirror + "/redis:8.0.6@" + digest,
		"RELATED_IMAGE_FOOBAR_SHELL": mirror + "/busybox@" + digest,
	}[name]
	return value, set
}

// ready waits until the operator says that it is ready, or ends.
func ready(ctx context.Context, url string, stopped chan error) error {
	quick := &http.Client{Timeout: time.Second}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 5*time.Minute, true, func(context.Context) (bool, error) {
		select {
		case err := <-stopped:
			stopped <- nil
			return false, fmt.Errorf("the operator ended: %w", err)
		default:
		}
		response, err := quick.Get(url)
		if err != nil {
			return false, nil //nolint:nilerr // it does not listen yet
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), listener.Close()
}

// eventually waits until a check passes, a minute at most, and reports its last error.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 5*time.Minute, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatalf("%s: %v", what, last)
	}
}
