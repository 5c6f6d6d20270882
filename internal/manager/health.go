// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"middleware.hc.cn/operator/internal/webhook/certs"
)

// addHealth adds the probes. The operator is alive while it answers; it is ready when both caches are filled and, if it serves
// webhooks, when these are served with a certificate that the API server was told to trust.
func addHealth(mgr ctrl.Manager, children cache.Cache, keeper *certs.Keeper, webhooks bool) error {
	ready := map[string]healthz.Checker{
		"custom-resources": filled(mgr.GetCache()),
		"children":         filled(children),
	}
	if webhooks {
		ready["webhook-server"] = mgr.GetWebhookServer().StartedChecker()
	}
	if keeper != nil {
		ready["webhook-certificate"] = keeper.Ready
	}
	errs := []error{mgr.AddHealthzCheck("ping", healthz.Ping)}
	for name, check := range ready {
		errs = append(errs, mgr.AddReadyzCheck(name, check))
	}
	return errors.Join(errs...)
}

// filled checks that a cache has started and holds what its watches listed.
func filled(c cache.Cache) healthz.Checker {
	return func(request *http.Request) error {
		ctx, cancel := context.WithTimeout(request.Context(), 500*time.Millisecond)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the cache is not filled yet")
		}
		return nil
	}
}
