// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	appv1alpha1 "middleware.hc.cn/operator/api/app/v1alpha1"
	clientset "middleware.hc.cn/operator/pkg/generated/clientset/versioned"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// The example is built in a module of its own, as other programs are; it needs nothing of the operator but types and clients, and
// it tells what becomes of an App.
func TestTheExample(t *testing.T) {
	dir := foreignModule(t)
	for _, dependency := range strings.Fields(run(t, dir, "go", "list", "-deps", ".")) {
		if strings.HasPrefix(dependency, "middleware.hc.cn/operator/internal") ||
			strings.HasPrefix(dependency, "sigs.k8s.io/controller-runtime") {
			t.Errorf("the clients bring %s with them", dependency)
		}
	}
	run(t, dir, "go", "build", "-o", "watch-apps", ".")

	ctx, namespace := t.Context(), shared.NewNamespace(t, api, "clients")
	program, next := start(t, filepath.Join(dir, "watch-apps"), namespace)
	clients, err := clientset.NewForConfig(admin)
	shared.Check(t, err)
	apps := clients.AppcontrollerV1alpha1().Apps(namespace)
	expect := func(line string) {
		t.Helper()
		if got := next(); got != line {
			t.Fatalf("the program says %q, not %q", got, line)
		}
	}
	expect("watching; 0 Apps so far")

	app, err := apps.Create(ctx, &appv1alpha1.App{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appv1alpha1.AppSpec{Image: "web:1"}},
		metav1.CreateOptions{})
	shared.Check(t, err)
	expect("added " + namespace + "/web: image web:1, 0 ready")
	app.Spec.Image = "web:2"
	app, err = apps.Update(ctx, app, metav1.UpdateOptions{})
	shared.Check(t, err)
	expect("changed " + namespace + "/web: image web:2, 0 ready")
	app.Status.ReadyReplicas = 1
	_, err = apps.UpdateStatus(ctx, app, metav1.UpdateOptions{})
	shared.Check(t, err)
	expect("changed " + namespace + "/web: image web:2, 1 ready")
	shared.Check(t, apps.Delete(ctx, "web", metav1.DeleteOptions{}))
	expect("deleted " + namespace + "/web: image web:2, 1 ready")

	shared.Check(t, program.Process.Signal(syscall.SIGTERM))
	if err := program.Wait(); err != nil {
		t.Errorf("the program did not end well after SIGTERM: %v", err)
	}
}

// foreignModule is a folder with the example as another module's program. Versions are the operator's own, so nothing is fetched.
func foreignModule(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	here, err := filepath.Abs(root)
	shared.Check(t, err)
	for from, to := range map[string]string{"examples/watch-apps/main.go": "main.go", "go.mod": "go.mod", "go.sum": "go.sum"} {
		text, err := os.ReadFile(filepath.Join(here, from))
		shared.Check(t, err)
		shared.Check(t, os.WriteFile(filepath.Join(dir, to), text, 0o600))
	}
	run(t, dir, "go", "mod", "edit", "-module=example.com/watch-apps", "-require=middleware.hc.cn/operator@v0.0.0",
		"-replace=middleware.hc.cn/operator="+here)
	return dir
}

// run runs a command in a folder and returns its output.
func run(t *testing.T, dir, name string, arguments ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, arguments...)
	command.Dir = dir
	command.Env = append(os.Environ(), "GOFLAGS=-mod=mod -buildvcs=false", "GOWORK=off")
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(arguments, " "), err, out)
	}
	return string(out)
}

// start runs the program; next waits for a line of its output. It is killed with the test.
func start(t *testing.T, program, namespace string) (process *exec.Cmd, next func() string) {
	t.Helper()
	administrator, err := server.AddUser(envtest.User{Name: "example", Groups: []string{"system:masters"}}, admin)
	shared.Check(t, err)
	text, err := administrator.KubeConfig()
	shared.Check(t, err)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Check(t, os.WriteFile(kubeconfig, text, 0o600))
	process = exec.CommandContext(t.Context(), program, "--kubeconfig="+kubeconfig, "--namespace="+namespace)
	process.Stderr = os.Stderr
	out, err := process.StdoutPipe()
	shared.Check(t, err)
	shared.Check(t, process.Start())
	lines := bufio.NewScanner(out)
	return process, func() string {
		if !lines.Scan() {
			t.Fatalf("the program ended: %v", lines.Err())
		}
		return lines.Text()
	}
}
