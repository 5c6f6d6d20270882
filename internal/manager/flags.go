// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"cmp"
	"flag"
	"strings"

	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	"sigs.k8s.io/controller-runtime/pkg/client/config"
)

// A FlagGroup is a titled part of the help.
type FlagGroup struct {
	Title string
	*pflag.FlagSet
}

// Flags returns the flags that change o, in the groups in which the help shows them. OLM tells the
// watched namespaces in env's WATCH_NAMESPACE.
func (o *Options) Flags(env Environment) []FlagGroup {
	return []FlagGroup{
		{"What runs", o.workFlags(env)},
		{"RedisCluster", o.redisFlags()},
		{"Leader election", o.leaderElectionFlags()},
		{"Endpoints", o.servingFlags()},
		{"Admission webhooks", o.webhookFlags()},
		{"API server", o.connectionFlags()},
		{"Logs", o.logFlags()},
		{"Logs, as Kubernetes' components write them", klogFlags()},
		{"From helm-operator's command line", o.helmOperatorFlags()},
	}
}

func newFlagSet() *pflag.FlagSet {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.SortFlags = false
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	return flags
}

func (o *Options) workFlags(env Environment) *pflag.FlagSet {
	f := newFlagSet()
	f.StringSliceVar(&o.Controllers, "controllers", o.Controllers,
		"controllers to run: * is all, NAME turns one on, -NAME turns one off (*,-foobar); the names are rediscluster, application and the kinds of the watches file in lower case "+
			"(a second kind of one name is kind.group); rediscluster and application are left out if * alone turns them on and their CRD is not installed")
	if namespaces := env.Get("WATCH_NAMESPACE"); namespaces != "" {
		o.Namespaces = strings.Split(namespaces, ",")
	}
	f.StringSliceVar(&o.Namespaces, "watch-namespaces", o.Namespaces,
		"namespaces to watch, comma separated; none means all (default: the environment's WATCH_NAMESPACE)")
	f.StringVar(&o.Selector, "selector", o.Selector,
		"label selector of the custom resources that this operator works on, of all kinds (tier=gold, or tier!=gold); others are not in its caches, and its Lease has a name of its own; none means all")
	f.IntVar(&o.Shards, "shards", o.Shards,
		"into how many shards namespaces are divided, 2 to 32: all replicas work, each on shards whose Leases it has, and share them anew when one comes or goes; 0 means that the leader works on everything; stop all replicas before you change it")
	f.StringVar(&o.WatchesFile, "watches-file", o.WatchesFile, "file that lists the chart kinds; charts are found relative to it")
	f.Var(&o.Concurrency, "max-concurrent-reconciles",
		"objects worked on at once, for each kind or for named ones (4, or rediscluster=8,crontab=2, or both: 4,rediscluster=8); RedisClusters of one namespace get three quarters of theirs at the most")
	f.IntVar(&o.MaxReleaseHistory, "max-release-history", o.MaxReleaseHistory,
		"revisions that Helm's history keeps of a release of a chart kind; with the next revision of a release, older ones are deleted, also when the number was larger before")
	f.DurationVar(&o.ReconcilePeriod, "reconcile-period", o.ReconcilePeriod,
		"how long after a reconciliation a resource of a chart kind that is at rest is looked at again, unless its annotation or the watches file says otherwise; 0 means never, changes are enough")
	f.DurationVar(&o.SyncPeriod, "sync-period", o.SyncPeriod,
		"how often each object of every kind is looked at without a reason, whatever its state, 10s at the least; the moments are spread over the period; 0 means never, changes are enough")
	f.Var(&o.PlatformUserIDs, "platform-user-ids",
		"leave the user and group IDs of pods to the platform: on, off, or auto (where OpenShift's SecurityContextConstraints are served, and not with --allow-host-path)")
	f.DurationVar(&o.GracefulShutdownTimeout, "graceful-shutdown-timeout", o.GracefulShutdownTimeout,
		"how long reconciliations in flight may take to end after SIGTERM; the lease is released afterwards")
	f.BoolVar(&o.InstallCRDs, "install-crds", o.InstallCRDs,
		"apply the operator's own CRDs at start, those of this build; in a cluster it needs the role of config/components/install-crds")
	return f
}

func (o *Options) redisFlags() *pflag.FlagSet {
	f, r := newFlagSet(), &o.RedisCluster
	f.DurationVar(&r.CreateTimeout, "cluster-create-timeout", r.CreateTimeout,
		"how long forming a cluster may take before its phase is Failed")
	f.DurationVar(&r.UpgradeTimeout, "cluster-upgrade-timeout", r.UpgradeTimeout,
		"how long a rollout may make no progress before its phase is Failed")
	f.IntVar(&r.UpgradeCanaries, "cluster-upgrade-canaries", r.UpgradeCanaries,
		"how many RedisClusters, and objects of each chart kind, take first what is new in the operator: its charts, its default images; 0 means all at once")
	f.IntVar(&r.UpgradeWave, "cluster-upgrade-wave", r.UpgradeWave,
		"how many take it at once when the canaries are well; of a chart kind, a twentieth of its objects if that is more")
	f.DurationVar(&r.UpgradePause, "cluster-upgrade-pause", r.UpgradePause,
		"how long all of a wave are well before the next begins")
	f.DurationVar(&r.PollInterval, "redis-poll-interval", r.PollInterval,
		"how often the instances of a formed cluster are asked for their state; at rest, for all of it every sixth time")
	f.BoolVar(&r.InstanceMetrics, "instance-metrics", r.InstanceMetrics,
		"give metrics of each instance of a RedisCluster, some thirty series each")
	f.StringVar(&r.ClusterDomain, "cluster-domain", r.ClusterDomain,
		"DNS domain of the Kubernetes cluster, with which the status shows full names (default: from the search path of the operator's pod)")
	f.StringVar(&r.BackupImage, "backup-image", r.BackupImage,
		"image that takes backups, the operator's of this version (default: that of the operator's own pod)")
	f.BoolVar(&o.AllowHostPath, "allow-host-path", o.AllowHostPath,
		"let RedisClusters keep their data in directories of the nodes (volumes of type hostPath)")
	f.StringSliceVar(&o.ServiceAnnotationDomains, "service-annotation-domains", o.ServiceAnnotationDomains,
		"domains, with their subdomains, of annotations that RedisClusters may put on Services, comma separated; \\* is any but those of Kubernetes and this operator")
	f.StringSliceVar(&o.ClusterIssuers, "cluster-issuers", o.ClusterIssuers,
		"names of ClusterIssuers of cert-manager that RedisClusters may ask certificates of, comma separated; \\* is any (default: none)")
	return f
}

func (o *Options) leaderElectionFlags() *pflag.FlagSet {
	f, l := newFlagSet(), &o.LeaderElection
	f.BoolVar(&l.Enabled, "leader-elect", l.Enabled, "let only one of several replicas act at a time")
	f.StringVar(&l.ID, "leader-election-id", l.ID, "name of the Lease; with --selector, a digest of that is put behind it")
	f.StringVar(&l.Namespace, "leader-election-namespace", l.Namespace, "namespace of the Lease (default: the operator's own)")
	f.DurationVar(&l.LeaseDuration, "leader-election-lease-duration", l.LeaseDuration, "how long others wait for a leader that went silent")
	f.DurationVar(&l.RenewDeadline, "leader-election-renew-deadline", l.RenewDeadline, "how long a leader tries to renew before it gives up")
	f.DurationVar(&l.RetryPeriod, "leader-election-retry-period", l.RetryPeriod, "pause between two attempts to get or renew the lease")
	return f
}

func (o *Options) servingFlags() *pflag.FlagSet {
	f, s := newFlagSet(), &o.Serving
	f.StringVar(&s.MetricsAddress, "metrics-bind-address", s.MetricsAddress, "address of /metrics, 0 turns it off")
	f.BoolVar(&s.MetricsSecure, "metrics-secure", s.MetricsSecure, "serve metrics over TLS, to clients that may get the URL /metrics")
	f.StringVar(&s.HealthAddress, "health-probe-bind-address", s.HealthAddress, "address of /healthz and /readyz, 0 turns it off")
	f.StringVar(&s.PprofAddress, "pprof-bind-address", s.PprofAddress,
		"address of /debug/pprof, 0 turns it off; give a loopback address, it asks for no password")
	return f
}

func (o *Options) webhookFlags() *pflag.FlagSet {
	f, w := newFlagSet(), &o.Webhooks
	f.Var((*webhookModeFlag)(&w.Mode), "webhooks",
		"serve the admission webhooks: on, off, or auto (when running in a pod, and one of the five kinds is among the controllers)")
	f.IntVar(&w.Port, "webhook-port", w.Port, "port of the webhooks")
	f.StringVar(&w.CertDir, "webhook-cert-dir", w.CertDir,
		"directory with tls.crt and tls.key; when it has none the operator makes and rotates a certificate of its own")
	return f
}

// helmOperatorFlags let a Deployment that was made for helm-operator or helm-operator-plugins start this operator as it is.
func (o *Options) helmOperatorFlags() *pflag.FlagSet {
	f := newFlagSet()
	f.StringVar(&o.Serving.MetricsAddress, "metrics-addr", o.Serving.MetricsAddress, "the same as --metrics-bind-address")
	f.BoolVar(&o.LeaderElection.Enabled, "enable-leader-election", o.LeaderElection.Enabled, "the same as --leader-elect")
	for _, flag := range []struct{ name, why string }{
		{"metrics-require-rbac", "--metrics-secure asks for it already"},
		{"enable-http2", "the endpoints negotiate"},
		{"suppress-override-values", "overridden values make no events"},
	} {
		f.Bool(flag.name, false, "accepted, and changes nothing: "+flag.why)
	}
	return f
}

func (o *Options) connectionFlags() *pflag.FlagSet {
	f := newFlagSet()
	native := flag.NewFlagSet("", flag.ContinueOnError)
	config.RegisterFlags(native)
	f.AddGoFlagSet(native)
	f.Lookup(config.KubeconfigFlagName).Usage = "path of a kubeconfig (default: KUBECONFIG, or the pod's own, or ~/.kube/config)"
	f.StringVar(&o.Master, "master", o.Master,
		"URL of the API server, instead of the one that the kubeconfig or the pod tells; their credentials are sent there")
	f.Bool(VersionFlag, false, "print which build this is, and end")
	return f
}

// VersionFlag is the one that asks for the build; cobra acts on it.
const VersionFlag = "version"

func (o *Options) logFlags() *pflag.FlagSet {
	f := newFlagSet()
	native := flag.NewFlagSet("", flag.ContinueOnError)
	o.Log.BindFlags(native)
	f.AddGoFlagSet(native)
	return f
}

// webhookModeFlag makes `--webhooks` alone and `--webhooks=false` work too.
type webhookModeFlag WebhookMode

func (m *webhookModeFlag) String() string { return string(*m) }

func (m *webhookModeFlag) Type() string { return "auto|on|off" }

func (m *webhookModeFlag) Set(value string) error {
	alias := map[string]WebhookMode{"true": WebhooksOn, "false": WebhooksOff}
	*m = webhookModeFlag(cmp.Or(alias[value], WebhookMode(value)))
	return nil
}
