// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package manager wires the operator: options, caches, controllers, webhooks, health and metrics.
package manager

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"

	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/fleet"
)

// Options is everything that can be set when the operator starts. DefaultOptions gives usable values; the flags of
// Options.Flags change them.
type Options struct {
	// Controllers selects the kinds to run; see Select.
	Controllers []string
	// Namespaces limits what is watched; none means all namespaces.
	Namespaces []string
	// Selector is the label selector of the custom resources, of all kinds, that are this operator's; empty means all. It is in the one
	// form in which it is printed.
	Selector string
	// Shards is into how many parts namespaces are divided, each of which one replica works on; 0: one replica works on everything.
	Shards int
	// WatchesFile lists the chart kinds. Its charts are found relative to it.
	WatchesFile string
	// SyncPeriod is how often every watched object is looked at without a reason; zero means never.
	SyncPeriod time.Duration
	// Concurrency is how many objects of a kind are worked on at once.
	Concurrency Concurrency
	// ReconcilePeriod is how often resources of chart kinds are looked at without a reason where the watches file says nothing;
	// zero means never.
	ReconcilePeriod time.Duration
	// MaxReleaseHistory is how many revisions of a release Helm's history keeps.
	MaxReleaseHistory int
	// Master is the URL of the API server; empty means the one that the kubeconfig or the pod tells.
	Master string
	// InstallCRDs applies the operator's own CRDs before anything else starts; meant for development.
	InstallCRDs bool
	// AllowHostPath lets RedisClusters keep their data in directories of the nodes.
	AllowHostPath bool
	// ServiceAnnotationDomains are those whose annotations Services of RedisClusters may have; "*" is any.
	ServiceAnnotationDomains []string
	// ClusterIssuers are the names of those that RedisClusters may ask certificates of; "*" is any.
	ClusterIssuers []string
	// PlatformUserIDs says who gives the operator's pods their user and group IDs.
	PlatformUserIDs UserIDMode
	// GracefulShutdownTimeout is how long reconciliations in flight may take to end after SIGTERM.
	GracefulShutdownTimeout time.Duration

	// Scaffolded are the Go kinds that operator-sdk wrote into cmd/main.go.
	Scaffolded Scaffolded

	RedisCluster   RedisClusterOptions
	LeaderElection LeaderElectionOptions
	Serving        ServingOptions
	Webhooks       WebhookOptions
	Log            zap.Options
}

// RedisClusterOptions are the time limits and intervals of RedisCluster, and what it shows.
type RedisClusterOptions struct {
	// ClusterDomain is the DNS domain of the Kubernetes cluster; empty: as the pod's search path says.
	ClusterDomain string
	// BackupImage takes backups; empty: the image of the operator's own pod.
	BackupImage string
	// PollInterval is how often a formed cluster's instances are asked for their state.
	PollInterval time.Duration
	// InstanceMetrics has metrics of each instance.
	InstanceMetrics bool
	// CreateTimeout and UpgradeTimeout are how long forming a cluster and changing one may take without progress before its
	// phase becomes Failed.
	CreateTimeout, UpgradeTimeout time.Duration
	// UpgradeCanaries is how many clusters, and objects of each chart kind, take what is new in the operator first, UpgradeWave how many at
	// once after that, and UpgradePause how long all of a wave are well before the next. Without canaries there are no waves.
	UpgradeCanaries, UpgradeWave int
	UpgradePause                 time.Duration
}

// waves are how clusters take what is new in the operator.
func (o RedisClusterOptions) waves() fleet.Options {
	return fleet.Options{Canaries: o.UpgradeCanaries, Wave: o.UpgradeWave, Pause: o.UpgradePause, Stuck: o.UpgradeTimeout}
}

// LeaderElectionOptions are those of a Lease based election.
type LeaderElectionOptions struct {
	Enabled bool
	// ID is the name of the Lease, Namespace where it is; an empty Namespace is the operator's own.
	ID, Namespace string
	// LeaseDuration > RenewDeadline > RetryPeriod, as client-go demands.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
}

// ServingOptions are the addresses of the operator's own endpoints; "0" turns one off.
type ServingOptions struct {
	MetricsAddress string
	// MetricsSecure serves metrics over TLS and to authenticated and authorized clients only.
	MetricsSecure bool
	HealthAddress string
	PprofAddress  string
}

// WebhookMode says that the admission webhooks are served.
type WebhookMode string

const (
	// WebhooksAuto serves them when the operator runs in a pod.
	WebhooksAuto WebhookMode = "auto"
	// WebhooksOn serves them always.
	WebhooksOn WebhookMode = "on"
	// WebhooksOff never serves them; the rules of the CRDs and of the reconcilers remain.
	WebhooksOff WebhookMode = "off"
)

// WebhookOptions say whether and where admission is served.
type WebhookOptions struct {
	Mode WebhookMode
	Port int
	// CertDir may hold tls.crt and tls.key (cert-manager and OLM mount them). Without them the operator makes its own.
	CertDir string
}

// DefaultOptions are the values that the flags start from.
func DefaultOptions() Options {
	return Options{
		Controllers:             []string{"*"},
		WatchesFile:             "watches.yaml",
		PlatformUserIDs:         UserIDsAuto,
		Concurrency:             Concurrency{Default: 8},
		MaxReleaseHistory:       10,
		GracefulShutdownTimeout: 30 * time.Second,

		ServiceAnnotationDomains: admission.DefaultServiceAnnotationDomains,
		RedisCluster: RedisClusterOptions{
			PollInterval:    10 * time.Second,
			InstanceMetrics: true,
			CreateTimeout:   10 * time.Minute,
			UpgradeTimeout:  30 * time.Minute,
			UpgradeCanaries: 1,
			UpgradeWave:     10,
			UpgradePause:    time.Minute,
		},
		LeaderElection: LeaderElectionOptions{
			Enabled:       true,
			ID:            "middleware-operator",
			LeaseDuration: 15 * time.Second,
			RenewDeadline: 10 * time.Second,
			RetryPeriod:   2 * time.Second,
		},
		Serving: ServingOptions{
			MetricsAddress: ":8443",
			MetricsSecure:  true,
			HealthAddress:  ":8081",
			PprofAddress:   off,
		},
		Webhooks: WebhookOptions{
			Mode:    WebhooksAuto,
			Port:    9443,
			CertDir: "/tmp/k8s-webhook-server/serving-certs",
		},
	}
}

// off is the address that turns an endpoint off, as in controller-runtime.
const off = "0"

// Validate returns every mistake in the options, each naming its flag and what would be right.
func (o Options) Validate() error {
	var errs []error
	for _, rule := range optionRules {
		errs = append(errs, rule(o)...)
	}
	return errors.Join(errs...)
}

// optionRules are checked in this order.
var optionRules = []func(Options) []error{
	validateNamespaces,
	validateSelector,
	validateHistory,
	validateClusterDomain,
	validateDurations,
	validateWaves,
	validateLeaderElection,
	validateShards,
	validateAddresses,
	validateWebhooks,
	validateUserIDs,
	validateMaster,
	func(o Options) []error { return o.Concurrency.validate() },
}

func validateNamespaces(o Options) []error {
	var errs []error
	for _, namespace := range o.Namespaces {
		if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
			errs = append(errs, fmt.Errorf("--watch-namespaces: %q is not the name of a namespace: %s", namespace, strings.Join(reasons, "; ")))
		}
	}
	return errs
}

func validateHistory(o Options) []error {
	if o.MaxReleaseHistory < 1 {
		return []error{fmt.Errorf("--max-release-history: %d is too few; give 1 or more", o.MaxReleaseHistory)}
	}
	return nil
}

func validateDurations(o Options) []error {
	var errs []error
	positive := []struct {
		flag  string
		value time.Duration
	}{
		{"cluster-create-timeout", o.RedisCluster.CreateTimeout},
		{"cluster-upgrade-timeout", o.RedisCluster.UpgradeTimeout},
		{"redis-poll-interval", o.RedisCluster.PollInterval},
	}
	for _, d := range positive {
		if d.value < time.Second {
			errs = append(errs, fmt.Errorf("--%s: %v is too short; give 1s or more", d.flag, d.value))
		}
	}
	if o.ReconcilePeriod != 0 && o.ReconcilePeriod < time.Second {
		errs = append(errs, fmt.Errorf("--reconcile-period: %v is too short; give 1s or more, or 0 for no period", o.ReconcilePeriod))
	}
	if o.SyncPeriod != 0 && o.SyncPeriod < 10*time.Second {
		errs = append(errs, fmt.Errorf("--sync-period: %v is too short; give 10s or more, or 0 for no resync", o.SyncPeriod))
	}
	if o.GracefulShutdownTimeout < 0 {
		errs = append(errs, fmt.Errorf("--graceful-shutdown-timeout: %v is negative; give 0 or more", o.GracefulShutdownTimeout))
	}
	return errs
}

func validateWaves(o Options) []error {
	const most = 1000
	var errs []error
	r := o.RedisCluster
	if r.UpgradeCanaries < 0 || r.UpgradeCanaries > most {
		errs = append(errs, fmt.Errorf("--cluster-upgrade-canaries: %d is not between 0 and %d; 0 means that all clusters are upgraded at once",
			r.UpgradeCanaries, most))
	}
	if r.UpgradeWave < 1 || r.UpgradeWave > most {
		errs = append(errs, fmt.Errorf("--cluster-upgrade-wave: %d is not between 1 and %d; --cluster-upgrade-canaries=0 upgrades all at once",
			r.UpgradeWave, most))
	}
	if r.UpgradePause < 0 || r.UpgradePause > time.Hour {
		errs = append(errs, fmt.Errorf("--cluster-upgrade-pause: %v is not between 0 and 1h", r.UpgradePause))
	}
	return errs
}

func validateLeaderElection(o Options) []error {
	l := o.LeaderElection
	if !l.Enabled {
		return nil
	}
	var errs []error
	if reasons := validation.IsDNS1123Subdomain(l.ID); len(reasons) > 0 {
		errs = append(errs, fmt.Errorf("--leader-election-id: %q cannot name a Lease: %s", l.ID, strings.Join(reasons, "; ")))
	}
	if l.LeaseDuration <= l.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-election-lease-duration: %v must be longer than --leader-election-renew-deadline (%v)",
			l.LeaseDuration, l.RenewDeadline))
	}
	// The factor is client-go's: attempts to renew are spread by up to 1.2 times the period.
	if l.RetryPeriod <= 0 || float64(l.RenewDeadline) <= 1.2*float64(l.RetryPeriod) {
		errs = append(errs,
			fmt.Errorf("--leader-election-renew-deadline: %v must be longer than 1.2 times --leader-election-retry-period (%v, which must be above 0)", l.RenewDeadline, l.RetryPeriod))
	}
	return errs
}

func validateAddresses(o Options) []error {
	var errs []error
	addresses := []struct{ flag, value string }{
		{"metrics-bind-address", o.Serving.MetricsAddress},
		{"health-probe-bind-address", o.Serving.HealthAddress},
		{"pprof-bind-address", o.Serving.PprofAddress},
	}
	for _, a := range addresses {
		if a.value == off {
			continue
		}
		if _, port, err := net.SplitHostPort(a.value); err != nil || port == "" {
			errs = append(errs, fmt.Errorf("--%s: %q is not an address; give host:port, :port, or 0 to turn it off", a.flag, a.value))
		}
	}
	return errs
}

func validateWebhooks(o Options) []error {
	var errs []error
	if modes := []WebhookMode{WebhooksAuto, WebhooksOn, WebhooksOff}; !slices.Contains(modes, o.Webhooks.Mode) {
		errs = append(errs, fmt.Errorf("--webhooks: %q is unknown; give auto, on or off", o.Webhooks.Mode))
	}
	if o.Webhooks.Port < 1 || o.Webhooks.Port > 65535 {
		errs = append(errs, fmt.Errorf("--webhook-port: %d is not a port; give 1 to 65535", o.Webhooks.Port))
	}
	return errs
}
