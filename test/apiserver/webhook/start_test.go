// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"

	"middleware.hc.cn/operator/internal/manager"
	shared "middleware.hc.cn/operator/test/apiserver/environment"
)

// outside are the options of `make run`: no pod, no election, no webhooks.
func outside() manager.Options {
	o := shared.Options()
	o.Controllers, o.Webhooks.Mode = []string{"foobar"}, manager.WebhooksAuto
	return o
}

// operatorVariable makes this test's binary run the operator instead of the tests, with the kubeconfig that it names.
const operatorVariable = "RUN_OPERATOR_WITH"

// operatorProcess is what the binary does then: `manager run` outside of a cluster, until SIGTERM.
func operatorProcess(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	o := outside()
	o.InstallCRDs = true
	o.LeaderElection.Enabled, o.LeaderElection.ID, o.LeaderElection.Namespace = true, "outside", "default"
	o.LeaderElection.LeaseDuration, o.LeaderElection.RenewDeadline, o.LeaderElection.RetryPeriod = 2*time.Hour, time.Hour, time.Second
	return manager.Run(ctrl.SetupSignalHandler(), config, o, shared.Nowhere)
}

func TestSIGTERMReleasesTheLease(t *testing.T) {
	process, said := startProcess(t)
	read := func(ctx context.Context) (lease coordinationv1.LeaseSpec, err error) {
		object := &coordinationv1.Lease{}
		err = kube.Get(ctx, types.NamespacedName{Namespace: "default", Name: "outside"}, object)
		return object.Spec, err
	}
	// One that is stopped before it hears that it has the lease cannot release it: it knows when it renews it.
	eventually(t, "it does not lead", func(ctx context.Context) error {
		lease, err := read(ctx)
		if err == nil && (lease.RenewTime == nil || lease.AcquireTime == nil || !lease.RenewTime.After(lease.AcquireTime.Time)) {
			err = errors.New("nobody has renewed the lease")
		}
		return err
	})
	if err := process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := process.Wait(); err != nil {
		t.Errorf("it ended with %v: %s", err, said)
	}
	lease, err := read(t.Context())
	if name := ptr.Deref(lease.HolderIdentity, ""); err != nil || name != "" {
		t.Errorf("the lease is held by %q (%v), want nobody", name, err)
	}
}

func TestWhatKeepsItFromStartingIsSaid(t *testing.T) {
	unknown := filepath.Join(t.TempDir(), "watches.yaml")
	if err := os.CopyFS(filepath.Dir(unknown), os.DirFS(filepath.Join(root, "helm-charts", "foobar"))); err != nil {
		t.Fatal(err)
	}
	entry := "- {group: example.com, version: v1, kind: Unknown, chart: .}\n"
	if err := os.WriteFile(unknown, []byte(entry), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		change func(*manager.Options)
		want   string
		env    map[string]string
	}{
		"an image without a tag": {func(*manager.Options) {}, "RELATED_IMAGE_REDIS: \"redis\" has neither a tag nor a sha256 digest",
			map[string]string{"RELATED_IMAGE_REDIS": "redis"}},
		"no CRD": {func(o *manager.Options) { o.WatchesFile, o.Controllers = unknown, []string{"unknown"} },
			"the API server does not know Unknown (example.com/v1): install its CRD", nil},
		"no namespace for the lease": {func(o *manager.Options) { o.LeaderElection.Enabled = true },
			"outside of a cluster the Lease needs a namespace; give --leader-election-namespace, or --leader-elect=false", nil},
		"no certificate": {func(o *manager.Options) { o.Webhooks.Mode, o.Webhooks.CertDir = manager.WebhooksOn, t.TempDir() },
			"outside of a cluster a certificate is needed; put tls.crt and tls.key into", nil},
		"no such controller": {func(o *manager.Options) { o.Controllers = []string{"mysql"} },
			`there is no controller "mysql"; there are rediscluster, application, crontab, foobar, app`, nil},
		"no watches file": {func(o *manager.Options) { o.WatchesFile = "shared.Nowhere.yaml" },
			"check the path given with --watches-file", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outside()
			test.change(&o)
			ctx, cancel := context.WithTimeoutCause(t.Context(), 5*time.Minute, errors.New("it started"))
			defer cancel()
			env := func(name string) (string, bool) { value, set := test.env[name]; return value, set }
			err := manager.Run(ctx, rest.CopyConfig(restConfig), o, env)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}
