// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"middleware.hc.cn/operator/internal/manager"
)

// outside are the options of `make run`: no pod, no election, no webhooks.
func outside(t *testing.T) manager.Options {
	t.Helper()
	probes, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	o := manager.DefaultOptions()
	o.WatchesFile = filepath.Join(root, "watches.yaml")
	o.Controllers = []string{"foobar"}
	o.LeaderElection.Enabled = false
	o.Webhooks.Mode = manager.WebhooksAuto
	o.Serving = manager.ServingOptions{MetricsAddress: "0", HealthAddress: probes, PprofAddress: "0"}
	return o
}

func nowhere(string) (string, bool) { return "", false }

func TestItRunsOutsideOfAClusterAndInstallsItsCRDs(t *testing.T) {
	o := outside(t)
	o.InstallCRDs = true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	stopped := make(chan error, 1)
	go func() { stopped <- manager.Run(ctx, restConfig, o, nowhere) }()
	if err := ready(ctx, "http://"+o.Serving.HealthAddress+"/readyz", stopped); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-stopped; err != nil {
		t.Errorf("it ended with %v", err)
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
	}{
		"no CRD": {func(o *manager.Options) { o.WatchesFile, o.Controllers = unknown, []string{"unknown"} },
			"the API server does not know Unknown (example.com/v1): install its CRD"},
		"no namespace for the lease": {func(o *manager.Options) { o.LeaderElection.Enabled = true },
			"outside of a cluster the Lease needs a namespace; give --leader-election-namespace, or --leader-elect=false"},
		"no certificate": {func(o *manager.Options) { o.Webhooks.Mode, o.Webhooks.CertDir = manager.WebhooksOn, t.TempDir() },
			"outside of a cluster a certificate is needed; put tls.crt and tls.key into"},
		"no such controller": {func(o *manager.Options) { o.Controllers = []string{"mysql"} },
			`there is no controller "mysql"; there are rediscluster, application, crontab, foobar, app`},
		"no watches file": {func(o *manager.Options) { o.WatchesFile = "nowhere.yaml" },
			"check the path given with --watches-file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := outside(t)
			test.change(&o)
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, errors.New("it started"))
			defer cancel()
			err := manager.Run(ctx, rest.CopyConfig(restConfig), o, nowhere)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}
