// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"path/filepath"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"middleware.hc.cn/operator/internal/manager"
)

// NewManager makes the operator's own manager and cache of children, without endpoints, for the named namespaces, or all. It does not
// run yet.
func NewManager(as *rest.Config, scheme *runtime.Scheme, namespaces ...string) (ctrl.Manager, cache.Cache, error) {
	return manager.Options{Namespaces: namespaces}.NewManager(as, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // several operators run in one test process
	})
}

// Options are the operator's defaults with the charts of this checkout, for tests in a folder of test/apiserver: without endpoints,
// webhooks and leader election.
func Options() manager.Options {
	o := manager.DefaultOptions()
	o.WatchesFile = filepath.Join("..", "..", "..", "watches.yaml")
	o.LeaderElection.Enabled, o.Webhooks.Mode = false, manager.WebhooksOff
	o.Serving = manager.ServingOptions{MetricsAddress: "0", HealthAddress: "0", PprofAddress: "0"}
	return o
}

// Nowhere is the environment of an operator that runs outside of a cluster.
func Nowhere(string) (string, bool) { return "", false }

// Start runs a manager until the returned function is called, which waits for its end, or the test ends.
func Start(t testing.TB, mgr ctrl.Manager) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the operator ended with: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// Passes is the number of reconciliations that have ended, of all operators of this process.
func Passes(t testing.TB) float64 { return count(t, "controller_runtime_reconcile_total") }

// Errors is the number of reconciliations that have ended with an error, of all operators of this process.
func Errors(t testing.TB) float64 { return count(t, "controller_runtime_reconcile_errors_total") }

// count is the sum of a counter over all its labels.
func count(t testing.TB, name string) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	Check(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}
