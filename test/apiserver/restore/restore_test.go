// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package restore restores etcd from a backup under the running operator: KUBEBUILDER_ASSETS=$(hack/envtest.sh) go test
// ./test/apiserver/restore.
package restore

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

const (
	root = "../../.."
	// operatorVariable makes this test's binary run the operator instead of the tests, with the kubeconfig that it names.
	operatorVariable = "RUN_OPERATOR_WITH"
)

var (
	appKind         = schema.GroupVersionKind{Group: "appcontroller.middleware.hc.cn", Version: "v1alpha1", Kind: "App"}
	applicationKind = schema.GroupVersionKind{Group: "controller.controller.daocloud.io", Version: "v1", Kind: "Application"}

	server = &envtest.Environment{CRDDirectoryPaths: []string{root + "/config/crd/bases"}, ErrorIfCRDPathMissing: true}
	api    client.Client
)

func TestMain(m *testing.M) {
	if path := os.Getenv(operatorVariable); path != "" {
		if err := operatorProcess(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	dir, err := os.MkdirTemp("", "restore")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Directories of our own outlive a stop of the processes.
	server.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(dir, "etcd")}
	server.ControlPlane.GetAPIServer().CertDir = filepath.Join(dir, "certificates")
	for _, sub := range []string{"etcd", "certificates"} {
		if err := os.Mkdir(filepath.Join(dir, sub), 0o700); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	server.ControlPlane.GetAPIServer().Configure().Set("request-timeout", "10s") // so long it waits for watches when it stops
	server.ControlPlaneStopTimeout = 2 * time.Minute
	code := shared.Run(m, server, scheme.Scheme, func(_ context.Context, _ *rest.Config, c client.Client) (<-chan error, error) {
		api = c
		return nil, nil
	})
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// operatorProcess is `manager run` outside of a cluster.
func operatorProcess(kubeconfig string) error {
	ctrl.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	return manager.Run(ctrl.SetupSignalHandler(), config, shared.Options(), shared.Nowhere)
}

// supervise runs the operator until the test ends, and starts it again when it ends, as a kubelet does. It returns how often it
// ended by itself.
func supervise(t *testing.T) *atomic.Int32 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	shared.Check(t, os.WriteFile(path, server.KubeConfig, 0o600))
	var ends atomic.Int32
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil {
			process := exec.CommandContext(ctx, os.Args[0])
			process.Env = append(os.Environ(), operatorVariable+"="+path)
			said, _ := process.CombinedOutput() // why it ended is what it said
			if ctx.Err() == nil {
				ends.Add(1)
				t.Logf("the operator ended: %s", said)
			}
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	return &ends
}

// stopped does something while etcd and the API server are stopped.
func stopped(t *testing.T, what func(data string)) {
	t.Helper()
	data := server.ControlPlane.Etcd.DataDir
	shared.Check(t, server.ControlPlane.Stop())
	what(data)
	shared.Check(t, server.ControlPlane.Start())
}

func app(name, image string) *unstructured.Unstructured {
	o := shared.Object(appKind, "default", name)
	o.Object["spec"] = map[string]any{"image": image}
	return o
}

func application(name, image string) *unstructured.Unstructured {
	o := shared.Object(applicationKind, "default", name)
	labels := map[string]any{"app": name}
	o.Object["spec"] = map[string]any{"selector": map[string]any{"matchLabels": labels}, "template": map[string]any{"spec": map[string]any{
		"template": map[string]any{"metadata": map[string]any{"labels": labels},
			"spec": map[string]any{"containers": []any{map[string]any{"name": "c", "image": image}}}}}}}
	return o
}

// awaitImage waits until the Deployment of a resource exists with an image.
func awaitImage(t *testing.T, name, image string) {
	t.Helper()
	shared.Eventually(t, fmt.Sprintf("Deployment %s runs %s", name, image), func() string {
		d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if !shared.Get(t, api, d) {
			return "there is none"
		}
		if is := d.Spec.Template.Spec.Containers[0].Image; is != image {
			return "it runs " + is
		}
		return ""
	})
}

// meddle gives a Deployment another image, as another client would, and awaits that it is put back.
func meddle(t *testing.T, name, image string) {
	t.Helper()
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	shared.Change(t, api, d, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "meddled:1" })
	awaitImage(t, name, image)
	shared.Check(t, api.Delete(t.Context(), d))
	awaitImage(t, name, image)
}

func setImage(t *testing.T, o *unstructured.Unstructured, image string) {
	t.Helper()
	kind := application
	if o.GetKind() == appKind.Kind {
		kind = app
	}
	shared.Change(t, api, o, func(o *unstructured.Unstructured) { o.Object["spec"] = kind(o.GetName(), image).Object["spec"] })
}

// After etcd was restored from a backup the operator goes on from what the API server says then: the past comes back, nothing of
// it is deleted, and drift is put back. An API server that was only restarted does not make it start anew.
func TestRestoredEtcd(t *testing.T) {
	ends := supervise(t)
	kinds := map[string]func(string, string) *unstructured.Unstructured{"web": app, "api": application}
	for name, kind := range kinds {
		shared.Check(t, api.Create(t.Context(), kind(name, "image:1")))
		shared.Check(t, api.Create(t.Context(), kind("former-"+name, "image:1")))
		awaitImage(t, name, "image:1")
		awaitImage(t, "former-"+name, "image:1")
	}
	backup := filepath.Join(t.TempDir(), "backup")
	stopped(t, func(data string) { shared.Check(t, os.CopyFS(backup, os.DirFS(data))) })
	for name := range kinds {
		meddle(t, name, "image:1")
	}
	if n := ends.Load(); n != 0 {
		t.Errorf("the operator ended %d times when the API server was restarted", n)
	}

	// What comes now, never was.
	for name, kind := range kinds {
		setImage(t, kind(name, ""), "image:2")
		awaitImage(t, name, "image:2")
		shared.Check(t, api.Delete(t.Context(), kind("former-"+name, "")))
		shared.Check(t, api.Create(t.Context(), kind("late-"+name, "image:2")))
		awaitImage(t, "late-"+name, "image:2")
	}
	stopped(t, func(data string) {
		shared.Check(t, os.RemoveAll(data))
		shared.Check(t, os.CopyFS(data, os.DirFS(backup)))
	})
	shared.Eventually(t, "the operator notices", func() string {
		if ends.Load() == 0 {
			return "it has not"
		}
		return ""
	})
	for name := range kinds {
		for _, of := range []string{name, "former-" + name} {
			awaitImage(t, of, "image:1")
			meddle(t, of, "image:1")
		}
		setImage(t, kinds[name](name, ""), "image:3")
		awaitImage(t, name, "image:3")
	}
	var late []string
	all := &appsv1.DeploymentList{}
	shared.Check(t, api.List(t.Context(), all, client.InNamespace("default")))
	for i := range all.Items {
		if strings.HasPrefix(all.Items[i].Name, "late-") {
			late = append(late, all.Items[i].Name)
		}
	}
	if n := ends.Load(); n != 1 || len(late) > 0 {
		t.Errorf("the operator ended %d times; made for what is not there: %v", n, late)
	}
}
