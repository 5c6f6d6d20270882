// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"middleware.hc.cn/operator/internal/apply"
)

// NewManager makes a manager and its cache of children as the operator does (internal/manager), without endpoints, for the
// named namespaces, or all. It does not run yet.
func NewManager(as *rest.Config, scheme *runtime.Scheme, namespaces ...string) (ctrl.Manager, cache.Cache, error) {
	var only map[string]cache.Config
	for _, namespace := range namespaces {
		if only == nil {
			only = map[string]cache.Config{}
		}
		only[namespace] = cache.Config{}
	}
	mgr, err := ctrl.NewManager(as, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)}, // several operators run in one test process
		Cache:      cache.Options{DefaultNamespaces: only, ReaderFailOnMissingInformer: true},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make a manager: %w", err)
	}
	children, err := cache.New(as, cache.Options{
		Scheme: scheme, Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(), DefaultNamespaces: only,
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{apply.ManagedByLabel: apply.ManagedByValue}),
	})
	if err != nil {
		return nil, nil, fmt.Errorf("make the cache of children: %w", err)
	}
	return mgr, children, mgr.Add(managedCache{children})
}

// managedCache is started before the controllers, as the operator's own is.
type managedCache struct{ cache.Cache }

func (c managedCache) GetCache() cache.Cache { return c.Cache }

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

// Passes is the number of passes that have ended, of all operators of this process.
func Passes(t testing.TB) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	Check(t, err)
	total := 0.0
	for _, family := range families {
		if family.GetName() != "controller_runtime_reconcile_total" {
			continue
		}
		for _, metric := range family.GetMetric() {
			total += metric.GetCounter().GetValue()
		}
	}
	return total
}
