// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package environment is what the tests against a real API server share: the server (etcd and kube-apiserver of
// hack/envtest.sh, for one test binary), managers like the operator's own, what they ask of the server, and waiting.
package environment

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// Prepare is what a test binary does before its tests, as an administrator without a limit of requests. What it starts for all of
// them ends with ctx; the channel, if it returns one, says when.
type Prepare func(ctx context.Context, admin *rest.Config, api client.Client) (ended <-chan error, err error)

// Into is the Prepare of tests that need no more than the connections.
func Into(admin **rest.Config, api *client.Client) Prepare {
	return func(_ context.Context, as *rest.Config, c client.Client) (<-chan error, error) {
		*admin, *api = as, c
		return nil, nil
	}
}

// Run starts an API server, prepares, runs the tests and stops everything. It returns the exit code for os.Exit; what went wrong
// besides the tests is printed.
func Run(m *testing.M, server *envtest.Environment, scheme *runtime.Scheme, prepare Prepare) int {
	ctrl.SetLogger(logr.Discard()) // tests tell what failed; a logger that was set before stays
	code, err := run(m, server, scheme, prepare)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

func run(m *testing.M, server *envtest.Environment, scheme *runtime.Scheme, prepare Prepare) (code int, err error) {
	// The server's processes are in groups of their own: whoever ends this one would leave them behind.
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-told
		_ = server.Stop()
		os.Exit(1)
	}()
	admin, err := Serve(server)
	if err != nil {
		return 1, fmt.Errorf("start the API server: %w\nset KUBEBUILDER_ASSETS to the directory that hack/envtest.sh prints", err)
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	admin.QPS = -1
	own := rest.CopyConfig(admin)
	own.Wrap(func(next http.RoundTripper) http.RoundTripper { return patient{next} })
	api, err := client.New(own, client.Options{Scheme: scheme})
	if err != nil {
		return 1, fmt.Errorf("make a client: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ended, err := prepare(ctx, admin, api)
	if err != nil {
		return 1, fmt.Errorf("prepare the tests: %w", err)
	}
	code = m.Run()
	if cancel(); ended != nil {
		err = <-ended
	}
	return code, err
}

// Serve starts an API server. Envtest gives it 20 seconds to start, 10 to serve CRDs, and 5 to make the namespace default; beside much else
// each takes longer.
func Serve(server *envtest.Environment) (*rest.Config, error) {
	const tries = 24
	server.ControlPlaneStartTimeout, server.ControlPlaneStopTimeout, server.CRDInstallOptions.MaxTime = timeout, timeout, timeout
	admin, err := server.Start()
	for range tries {
		if err == nil || !strings.Contains(err.Error(), "default namespace") {
			break
		}
		server.UseExistingCluster = ptr.To(true)
		admin, err = server.Start()
		server.UseExistingCluster = nil // it is stopped, too
	}
	return admin, err
}

// Check ends a test that met an error.
func Check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// timeout is how long Eventually waits: far longer than anything takes, as machines may be busy with all else that make test runs.
const timeout = 10 * time.Minute

// Eventually waits until holds returns the empty string; its last answer is the failure's reason.
func Eventually(t testing.TB, what string, holds func() string) {
	t.Helper()
	last := ""
	const soonest, latest = 20 * time.Millisecond, 100 * time.Millisecond // a hundred that ask all the time keep the API server busy
	pause := soonest
	for deadline := time.Now().Add(timeout); time.Now().Before(deadline); time.Sleep(pause) {
		if last = holds(); last == "" {
			return
		}
		pause = min(latest, pause*5/4)
	}
	t.Fatalf("%s did not happen: %s", what, last)
}

// NewNamespace makes a namespace whose name begins with a prefix, and returns its name.
func NewNamespace(t testing.TB, api client.Client, prefix string) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix + "-"}}
	Check(t, api.Create(context.Background(), namespace))
	return namespace.Name
}

// Object is a reference to an object of any kind; Namespace is empty for cluster-scoped ones.
func Object(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

// Get reads an object again; it returns false if there is none.
func Get(t testing.TB, api client.Reader, o client.Object) bool {
	t.Helper()
	err := api.Get(context.Background(), client.ObjectKeyFromObject(o), o)
	Check(t, client.IgnoreNotFound(err))
	return err == nil
}

// Change reads an object, changes it and writes it, as another client than the operator would. It tries again when somebody
// else wrote in between.
func Change[T client.Object](t testing.TB, api client.Client, o T, how func(T)) {
	t.Helper()
	Eventually(t, "another client's write", func() string {
		if !Get(t, api, o) {
			return "it is gone"
		}
		how(o)
		if err := api.Update(context.Background(), o, client.FieldOwner("another-client")); err != nil {
			return err.Error()
		}
		return ""
	})
}
