// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operatorchart installs, upgrades and uninstalls the operator's own Helm chart with Helm's command, on a real API server that
// knows none of the operator's kinds before, and compares it with what kustomize makes of config/:
// KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/operatorchart.
package operatorchart

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root                  = "../../.."
	chartFolder           = root + "/deploy/middleware-operator"
	installationNamespace = "middleware-operator-system"
)

var (
	server = &envtest.Environment{}
	admin  *rest.Config
	api    client.Client
)

func TestMain(m *testing.M) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, apiextensionsv1.AddToScheme} {
		if err := add(known); err != nil {
			panic(err)
		}
	}
	// The API server calls webhooks at the addresses of their Service's endpoints, since nothing here serves a Service's own.
	server.ControlPlane.GetAPIServer().Configure().Set("enable-aggregator-routing", "true")
	os.Exit(shared.Run(m, server, known, shared.Into(&admin, &api)))
}

var tools sync.Map // paths of the pinned tools

func tool(t *testing.T, name string) string {
	t.Helper()
	once, _ := tools.LoadOrStore(name, sync.OnceValues(func() (string, error) {
		path, err := exec.Command(filepath.Join(root, "hack", "tool.sh"), name).Output()
		return strings.TrimSpace(string(path)), err
	}))
	path, err := once.(func() (string, error))()
	shared.Check(t, err)
	return path
}

// run returns what a command says.
func run(t *testing.T, name string, arguments ...string) string {
	t.Helper()
	said, problem := try(t, name, arguments...)
	if problem != "" {
		t.Fatalf("%s %s: %s", filepath.Base(name), strings.Join(arguments, " "), problem)
	}
	return said
}

// try returns what a command says, and what it complains of if it fails.
func try(t *testing.T, name string, arguments ...string) (said, problem string) {
	t.Helper()
	command := exec.Command(name, arguments...)
	home := t.TempDir()
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "KUBECONFIG=" + kubeconfig(t)}
	var complaints strings.Builder
	command.Stderr = &complaints
	output, err := command.Output()
	if err != nil {
		return string(output), err.Error() + ": " + complaints.String()
	}
	return string(output), ""
}

func helm(t *testing.T, arguments ...string) string {
	t.Helper()
	return run(t, tool(t, "helm"), arguments...)
}

func kubeconfig(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Check(t, os.WriteFile(path, server.KubeConfig, 0o600))
	return path
}
