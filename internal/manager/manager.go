// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	ctrlwebhook "sigs.k8s.io/controller-runtime/pkg/webhook"

	"middleware.hc.cn/operator/config/crd"
	"middleware.hc.cn/operator/internal/admission/images"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/tracing"
	"middleware.hc.cn/operator/internal/webhook"
	"middleware.hc.cn/operator/internal/webhook/certs"
)

// Run starts the operator and returns when ctx ends: reconciliations in flight finish first, within GracefulShutdownTimeout, then the lease
// is released. It ends by itself, with an error, when etcd was restored from a backup, and when another operator has the lease.
// POD_NAMESPACE and KUBERNETES_SERVICE_HOST in env tell where it runs.
func Run(ctx context.Context, cfg *rest.Config, o Options, env Environment) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	cfg = rest.CopyConfig(cfg)
	cfg.Wrap((&rewinds{now: time.Now, noticed: func() { end(errRewound) }}).wrap)
	if err := run(ctx, end, cfg, o, env); err != nil {
		return err
	}
	for _, why := range []error{errRewound, errDeposed} {
		if errors.Is(context.Cause(ctx), why) {
			return why
		}
	}
	return nil
}

func run(ctx context.Context, end context.CancelCauseFunc, cfg *rest.Config, o Options, env Environment) error {
	if err := o.Validate(); err != nil {
		return err
	}
	defaultImages, err := images.FromEnvironment(env.Get)
	if err != nil {
		return err
	}
	controllers, err := o.controllers(env)
	if err != nil {
		return err
	}
	scheme, err := o.Scaffolded.scheme()
	if err != nil {
		return err
	}
	if tracing.Wanted(env.Get) {
		stop, err := tracing.Start(ctx, BuildInfo().Version)
		if err != nil {
			return err
		}
		defer stop()
		cfg = tracing.Config(cfg)
	}
	api, err := newAPI(cfg, scheme)
	if err != nil {
		return err
	}
	if controllers, err = o.prepareAPI(ctx, api, controllers); err != nil {
		return err
	}
	userIDs, err := o.platformUserIDs(api.mapper)
	if err != nil {
		return err
	}
	o.Webhooks.Mode = o.webhookMode(env, controllers)
	deposed := func() { end(errDeposed) }
	leases, err := o.leases(api.config, env.namespace(), deposed)
	if err != nil {
		return err
	}
	mgr, children, keeper, err := o.newManager(api, env, controllers, leases)
	if err != nil {
		return err
	}
	w := wiring{mgr: mgr, children: children, options: o, env: env, platformUserIDs: userIDs, shards: shards.NewGate(o.Shards),
		leases: leases}
	for _, c := range controllers {
		if err := c.add(w, o.Concurrency.For(c.name)); err != nil {
			return fmt.Errorf("controller %s: %w", c.name, err)
		}
	}
	if err := addShards(w, deposed); err != nil {
		return err
	}
	if err := addWebhooks(mgr, o, keeper, defaultImages); err != nil {
		return err
	}
	if err := o.Scaffolded.add(mgr, o.webhooks()); err != nil {
		return err
	}
	if err := addHealth(mgr, children, keeper, o.webhooks()); err != nil {
		return err
	}
	build := BuildInfo()
	if err := metrics.Register(); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	metrics.Build(build.Version, build.Commit, build.Go, o.Selector)
	mgr.GetLogger().Info("Starting the operator", "version", build.Version, "commit", build.Commit, "controllers", names(controllers),
		"namespaces", cmp.Or(strings.Join(o.Namespaces, ","), "all"), "selector", o.Selector, "shards", o.Shards,
		"webhooks", o.webhooks(), "platformUserIDs", userIDs)
	return mgr.Start(ctx)
}

// newManager makes the manager and the cache of children and, if the operator is to look after the webhooks' certificate itself, what
// does that.
func (o Options) newManager(api api, env Environment, controllers []controller, leases *leases) (ctrl.Manager, cache.Cache, *certs.Keeper,
	error) {
	own := env.namespace()
	var lease resourcelock.Interface
	if leases != nil {
		var err error
		if lease, err = leases.leader(o.leaseName()); err != nil {
			return nil, nil, nil, fmt.Errorf("making the lock of the election: %w", err)
		}
	}
	server := ctrlwebhook.Options{Port: o.Webhooks.Port, CertDir: o.Webhooks.CertDir}
	var keeper *certs.Keeper
	if o.webhooks() && !hasCertificate(o.Webhooks.CertDir) {
		if own == "" {
			return nil, nil, nil,
				fmt.Errorf("--webhooks: outside of a cluster a certificate is needed; put tls.crt and tls.key into %s, or give --webhooks=off",
					o.Webhooks.CertDir)
		}
		keeper = certs.NewKeeper(certs.Options{
			Secret:        types.NamespacedName{Namespace: own, Name: webhook.CertificateSecret},
			DNSNames:      []string{webhook.Service + "." + own + ".svc", webhook.Service + "." + own + ".svc.cluster.local"},
			Configuration: webhook.Configuration,
			Clock:         clock.RealClock{},
		})
		server.TLSOpts = append(server.TLSOpts, func(c *tls.Config) { c.GetCertificate = keeper.GetCertificate })
	}
	var reach []string
	for _, c := range controllers {
		reach = append(reach, c.reach...)
	}
	selected, err := o.selected(api, controllers)
	if err != nil {
		return nil, nil, nil, err
	}
	mgr, children, err := o.NewManager(api.config, ctrl.Options{
		Cache:                         cache.Options{ByObject: selected},
		Scheme:                        api.scheme,
		MapperProvider:                func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return api.mapper, nil },
		Metrics:                       o.metrics(),
		HealthProbeBindAddress:        o.Serving.HealthAddress,
		PprofBindAddress:              o.Serving.PprofAddress,
		WebhookServer:                 ctrlwebhook.NewServer(server),
		GracefulShutdownTimeout:       &o.GracefulShutdownTimeout,
		LeaderElection:                o.LeaderElection.Enabled,
		LeaderElectionReleaseOnCancel: true,
		LeaseDuration:                 &o.LeaderElection.LeaseDuration,
		RenewDeadline:                 &o.LeaderElection.RenewDeadline,
		RetryPeriod:                   &o.LeaderElection.RetryPeriod,

		LeaderElectionResourceLockInterface: lease,
	}, reach...)
	return mgr, children, keeper, err
}

// leases are what the locks of elections are made of; nil when there are none. deposed is called when another operator has the lease by
// now.
func (o Options) leases(config *rest.Config, own string, deposed func()) (*leases, error) {
	if !o.LeaderElection.Enabled {
		return nil, nil
	}
	namespace := cmp.Or(o.LeaderElection.Namespace, own)
	if namespace == "" {
		return nil,
			errors.New("--leader-elect: outside of a cluster the Lease needs a namespace; give --leader-election-namespace, or --leader-elect=false")
	}
	return newLeases(config, namespace, o, deposed)
}

func (o Options) metrics() metricsserver.Options {
	options := metricsserver.Options{BindAddress: o.Serving.MetricsAddress, SecureServing: o.Serving.MetricsSecure}
	if o.Serving.MetricsSecure {
		options.FilterProvider = filters.WithAuthenticationAndAuthorization
	}
	return options
}

// api is how the API server is reached before there is a manager, and what the manager takes over of it.
type api struct {
	config *rest.Config
	http   *http.Client
	scheme *runtime.Scheme
	mapper meta.RESTMapper
}

func newAPI(config *rest.Config, scheme *runtime.Scheme) (api, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return api{}, fmt.Errorf("making a client for the API server: %w", err)
	}
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	if err != nil {
		return api{}, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	return api{config, client, scheme, &rememberedMapper{RESTMapper: mapper}}, nil
}

// prepareAPI returns the controllers whose kinds the API server serves. It is an error if it does not serve one of a controller
// that was named or that the watches file lists. A Go kind that only * turned on is left out then: whoever brings charts of their
// own need not install our CRDs.
func (o Options) prepareAPI(ctx context.Context, api api, controllers []controller) ([]controller, error) {
	if o.InstallCRDs {
		direct, err := client.New(api.config, client.Options{Scheme: api.scheme, Mapper: api.mapper, HTTPClient: api.http})
		if err != nil {
			return nil, err
		}
		if err := installCRDs(ctx, direct, crd.Bases()); err != nil {
			return nil, err
		}
	}
	return served(ctx, api.mapper, controllers)
}

func addWebhooks(mgr ctrl.Manager, o Options, keeper *certs.Keeper, defaultImages images.Defaults) error {
	if !o.webhooks() {
		return nil
	}
	if err := webhook.Add(mgr, webhook.Options{AllowHostPath: o.AllowHostPath,
		ServiceAnnotationDomains: o.ServiceAnnotationDomains, ClusterIssuers: o.ClusterIssuers, Images: defaultImages}); err != nil {
		return err
	}
	if keeper == nil {
		return nil
	}
	return keeper.Add(mgr)
}

// webhookMode decides what auto means: admission is served when the operator runs in a pod and runs a kind that has rules.
func (o Options) webhookMode(env Environment, controllers []controller) WebhookMode {
	if o.Webhooks.Mode != WebhooksAuto {
		return o.Webhooks.Mode
	}
	if env.inCluster() && slices.ContainsFunc(controllers, func(c controller) bool { return c.admission }) {
		return WebhooksOn
	}
	return WebhooksOff
}

// webhooks reports whether admission is served; the mode is decided by then.
func (o Options) webhooks() bool { return o.Webhooks.Mode == WebhooksOn }

// hasCertificate reports whether somebody mounted a certificate (OLM and cert-manager do).
func hasCertificate(dir string) bool {
	for _, name := range []string{"tls.crt", "tls.key"} {
		if _, err := os.Stat(dir + "/" + name); err != nil {
			return false
		}
	}
	return true
}
