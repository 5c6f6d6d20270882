// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package takeover has the real helm-operator install releases, stops it, and starts this operator's binary in its place, with the
// same watches file: `KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test ./test/apiserver/takeover/`. helm-operator and helm are tools of
// hack/tools; the first use builds them.
package takeover

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/test/apiserver/environment"
)

// root is the directory of the project.
const root = "../../.."

var (
	// shopKind has namespaced children only, some of a subchart. readerKind has a cluster-scoped one too.
	shopKind   = schema.GroupVersionKind{Group: "takeover.middleware.hc.cn", Version: "v1", Kind: "Shop"}
	readerKind = schema.GroupVersionKind{Group: "takeover.middleware.hc.cn", Version: "v1", Kind: "Reader"}

	server = &envtest.Environment{CRDs: []*apiextensionsv1.CustomResourceDefinition{
		environment.FreeCRD(shopKind, environment.WithStatus()), environment.FreeCRD(readerKind, environment.WithStatus()),
	}}
	api client.Client

	// kubeconfig is an administrator's, for programs. binaries are the programs, by name.
	kubeconfig string
	binaries   = map[string]string{}
)

func TestMain(m *testing.M) {
	directory, err := os.MkdirTemp("", "takeover-")
	if err != nil {
		panic(err)
	}
	code := environment.Run(m, server, scheme.Scheme, func(_ context.Context, _ *rest.Config, admin client.Client) (<-chan error, error) {
		api = admin
		if err := writeKubeconfig(directory); err != nil {
			return nil, err
		}
		return nil, build(directory)
	})
	_ = os.RemoveAll(directory)
	os.Exit(code)
}

func writeKubeconfig(directory string) error {
	user, err := server.AddUser(envtest.User{Name: "operator", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return err
	}
	text, err := user.KubeConfig()
	if err != nil {
		return err
	}
	kubeconfig = filepath.Join(directory, "kubeconfig")
	return os.WriteFile(kubeconfig, text, 0o600)
}

// build builds what is not built yet.
func build(directory string) error {
	for _, tool := range []string{"helm-operator", "helm"} {
		command := exec.Command(filepath.Join(root, "hack", "tool.sh"), tool)
		command.Stderr = os.Stderr
		path, err := command.Output()
		if err != nil {
			return fmt.Errorf("hack/tool.sh %s: %w", tool, err)
		}
		binaries[tool] = strings.TrimSpace(string(path))
	}
	binaries["manager"] = filepath.Join(directory, "manager")
	command := exec.Command("go", "build", "-o", binaries["manager"], "./cmd")
	command.Dir = root
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("build ./cmd: %w\n%s", err, out)
	}
	return nil
}

// start runs a program for a project until the returned function ends it, or the test ends. When the test failed, the end of its
// log is printed.
func start(t *testing.T, project, program string, arguments ...string) (stop func()) {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), program)
	environment.Check(t, err)
	command := exec.Command(binaries[program], arguments...)
	command.Dir = project
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	command.Stdout, command.Stderr = log, log
	environment.Check(t, command.Start())
	running := true
	stop = func() {
		if !running {
			return
		}
		running = false
		_ = command.Process.Signal(os.Interrupt) // if it has ended already, its log says why
		_ = command.Wait()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("%s said at the end:\n%s", program, text[max(0, len(text)-6000):])
		}
	}
	t.Cleanup(stop)
	return stop
}

func startHelmOperator(t *testing.T, project string) (stop func()) {
	t.Helper()
	return start(t, project, "helm-operator", "run", "--watches-file=watches.yaml", "--max-concurrent-reconciles=4",
		"--metrics-bind-address=0",
		"--health-probe-bind-address=0")
}

func startThisOperator(t *testing.T, project string) (stop func()) {
	t.Helper()
	return start(t, project, "manager", "run", "--watches-file=watches.yaml", "--controllers=*,-rediscluster,-application",
		"--leader-elect=false", "--cluster-upgrade-canaries=0", // no controller makes Deployments ready here
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
}

// helm is what Helm's own command line says.
func helm(t *testing.T, arguments ...string) string {
	t.Helper()
	command := exec.Command(binaries["helm"], arguments...)
	command.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	var problem strings.Builder
	command.Stderr = &problem
	out, err := command.Output()
	if err != nil {
		t.Fatalf("helm %s: %v: %s", strings.Join(arguments, " "), err, problem.String())
	}
	return string(out)
}
