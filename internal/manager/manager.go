// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"middleware.hc.cn/operator/config/crd"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/webhook"
	"middleware.hc.cn/operator/internal/webhook/certs"
)

// Run starts the operator and returns when ctx ends: passes in flight finish first, within GracefulShutdownTimeout, then the lease
// is released. POD_NAMESPACE and KUBERNETES_SERVICE_HOST in env tell where it runs.
func Run(ctx context.Context, cfg *rest.Config, o Options, env Environment) error {
	if err := o.Validate(); err != nil {
		return err
	}
	controllers, err := o.controllers(env)
	if err != nil {
		return err
	}
	mgr, keeper, err := o.newManager(cfg, env)
	if err != nil {
		return err
	}
	if err := o.prepareAPI(ctx, mgr, controllers); err != nil {
		return err
	}
	children, err := newChildren(mgr, o)
	if err != nil {
		return err
	}
	w := wiring{mgr: mgr, children: children, options: o, env: env}
	for _, c := range controllers {
		if err := c.add(w, o.Concurrency.For(c.name)); err != nil {
			return fmt.Errorf("controller %s: %w", c.name, err)
		}
	}
	if err := addWebhooks(mgr, o, keeper, env); err != nil {
		return err
	}
	if err := addHealth(mgr, children, keeper, o.webhooks(env)); err != nil {
		return err
	}
	build := BuildInfo()
	if err := metrics.Register(); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	metrics.Build(build.Version, build.Commit, build.Go)
	mgr.GetLogger().Info("Starting the operator", "version", build.Version, "commit", build.Commit, "controllers", names(controllers),
		"namespaces", cmp.Or(strings.Join(o.Namespaces, ","), "all"), "webhooks", o.webhooks(env))
	return mgr.Start(ctx)
}

// newManager makes the manager and, if the operator is to look after the webhooks' certificate itself, what does that.
func (o Options) newManager(cfg *rest.Config, env Environment) (ctrl.Manager, *certs.Keeper, error) {
	own := env.namespace()
	if o.LeaderElection.Enabled && cmp.Or(o.LeaderElection.Namespace, own) == "" {
		return nil, nil, errors.New("--leader-elect: outside of a cluster the Lease needs a namespace; give --leader-election-namespace, or --leader-elect=false")
	}
	server := ctrlwebhook.Options{Port: o.Webhooks.Port, CertDir: o.Webhooks.CertDir}
	var keeper *certs.Keeper
	if o.webhooks(env) && !hasCertificate(o.Webhooks.CertDir) {
		if own == "" {
			return nil, nil, fmt.Errorf("--webhooks: outside of a cluster a certificate is needed; put tls.crt and tls.key into %s, or give --webhooks=off", o.Webhooks.CertDir)
		}
		keeper = certs.NewKeeper(certs.Options{
			Secret:        types.NamespacedName{Namespace: own, Name: webhook.CertificateSecret},
			DNSNames:      []string{webhook.Service + "." + own + ".svc", webhook.Service + "." + own + ".svc.cluster.local"},
			Configuration: webhook.Configuration,
			Clock:         clock.RealClock{},
		})
		server.TLSOpts = append(server.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate })
	}
	scheme, err := newScheme()
	if err != nil {
		return nil, nil, err
	}
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                        scheme,
		Cache:                         o.customResources(),
		Client:                        client.Options{Cache: uncached()},
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.Serving.HealthAddress,
		PprofBindAddress:              o.Serving.PprofAddress,
		WebhookServer:                 ctrlwebhook.NewServer(server),
		GracefulShutdownTimeout:       &o.GracefulShutdownTimeout,
		LeaderElection:                o.LeaderElection.Enabled,
		LeaderElectionID:              o.LeaderElection.ID,
		LeaderElectionNamespace:       cmp.Or(o.LeaderElection.Namespace, own),
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaderElection.LeaseDuration,
		RenewDeadline:                 &o.LeaderElection.RenewDeadline,
		RetryPeriod:                   &o.LeaderElection.RetryPeriod,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	return mgr, keeper, nil
}

func (o Options) metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.Serving.MetricsAddress, SecureServing: o.Serving.MetricsSecure}
	if o.Serving.MetricsSecure {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

// prepareAPI makes sure that the API server serves the kinds of the controllers.
func (o Options) prepareAPI(ctx context.Context, mgr ctrl.Manager, controllers []controller) error {
	if o.InstallCRDs {
		// The manager's client reads from a cache that does not run yet.
		direct, err := client.New(mgr.GetConfig(), client.Options{Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient()})
		if err != nil {
			return err
		}
		if err := installCRDs(ctx, direct, crd.Bases()); err != nil {
			return err
		}
	}
	return requireCRDs(mgr.GetRESTMapper(), controllers)
}

func addWebhooks(mgr ctrl.Manager, o Options, keeper *certs.Keeper, env Environment) error {
	if !o.webhooks(env) {
		return nil
	}
	if err := webhook.Add(mgr, webhook.Options{AllowHostPath: o.AllowHostPath}); err != nil {
		return err
	}
	if keeper == nil {
		return nil
	}
	return keeper.Add(mgr)
}

// webhooks says whether admission is served.
func (o Options) webhooks(env Environment) bool {
	if o.Webhooks.Mode == WebhooksAuto {
		return env.inCluster()
	}
	return o.Webhooks.Mode == WebhooksOn
}

// hasCertificate says whether somebody mounted a certificate (OLM and cert-manager do).
func hasCertificate(dir string) bool {
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(dir + "/" + name); err != nil {
			return false
		}
	}
	return true
}
