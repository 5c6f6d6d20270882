// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/resync"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/shell"
	"middleware.hc.cn/operator/internal/tracing"
)

// firstRetry is how soon a reconciliation that failed is tried again; the time doubles with each.
const firstRetry = 50 * time.Millisecond

// switchoverWithin is when Redis gives a switchover up (CLUSTER_MF_TIMEOUT in cluster.c).
const switchoverWithin = 5 * time.Second

// Options of the controller.
type Options struct {
	// Chart renders the children.
	Chart *chart.Chart
	// Redis connects to instances; one pool serves all clusters.
	Redis *redis.Pool
	// ServiceAccount is the operator's own, namespace:name, for messages about missing
	// rights.
	ServiceAccount string
	// PollInterval is how often a cluster is looked at when nothing happens. Default 10 s.
	PollInterval time.Duration
	// NamedAge is how old what was read by name may be where no watch tells of changes. Default a minute.
	NamedAge time.Duration
	// InstanceMetrics has metrics of each instance.
	InstanceMetrics bool
	// CreateTimeout is how long forming may take before the phase says Failed; 0: for ever.
	CreateTimeout time.Duration
	// UpgradeTimeout is how long instances may run an older template before the phase says
	// Failed; 0: for ever.
	UpgradeTimeout time.Duration
	// SyncPeriod is how often each RedisCluster is looked at without a reason, whatever its state; zero means never.
	SyncPeriod time.Duration
	// MaxConcurrentReconciles is how many clusters are worked on at once; shares.go says whose. Default 4.
	MaxConcurrentReconciles int
	// ClusterDomain is the DNS domain of the Kubernetes cluster; empty when it is not known.
	ClusterDomain string
	// AllowHostPath admits volumes of type hostPath.
	AllowHostPath bool
	// ServiceAnnotations are the domains of annotations that Services of clients may have; nil: the default ones.
	ServiceAnnotations []string
	// ClusterIssuers are the names of those that certificates may be asked of; "*" is any.
	ClusterIssuers []string
	// Backups reports whether RedisBackups are served, BackupImage has the program that restores them and writes archives; empty: not known.
	Backups     bool
	BackupImage string
	// Shards divides the objects among replicas; nil: the leader has all.
	Shards *shards.Gate
	// Turns is where replicas that divide the objects write down whose turn they give, of a kind and for a revision; nil: there are no others.
	Turns func(kind, revision string) fleet.Ledger
	// Waves are how a change that only the operator made reaches clusters; without canaries, at once. Version is the operator's.
	Waves   fleet.Options
	Version string
}

// Add registers the controller with a manager. children is the cache of objects that
// carry the operator's label.
func Add(mgr ctrl.Manager, childCache cache.Cache, o Options) error {
	if o.PollInterval <= 0 {
		o.PollInterval = 10 * time.Second
	}
	if o.MaxConcurrentReconciles <= 0 {
		o.MaxConcurrentReconciles = 4
	}
	if err := mgr.Add(o.Redis); err != nil { // it closes its connections when the operator stops
		return fmt.Errorf("add the pool of connections: %w", err)
	}
	live, err :=
		client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	named, err := newWatches(mgr)
	if err != nil {
		return err
	}
	byCluster, err := newIndexed(childCache)
	if err != nil {
		return err
	}
	applier := apply.New(live, childCache)
	observer := &observe.Observer{Children: byCluster, Clusters: mgr.GetCache(), Secrets: live, Redis: o.Redis,
		Watched: named, Age: o.NamedAge, ServiceAccount: o.ServiceAccount, BackupImage: o.BackupImage, Ask: backupjob.Asker(observe.MostSaid)}
	if o.Backups {
		observer.Backups = mgr.GetCache()
	}
	waves, err := wavesFor(mgr, o)
	if err != nil {
		return err
	}
	r := &Reconciler{
		client: mgr.GetClient(),
		loop: &Loop{
			Observer: observer,
			Children: &children{chart: o.Chart, applier: applier, cache: byCluster, observer: observer, mapper: mgr.GetRESTMapper(),
				domain: o.ClusterDomain},
			Actor: &act.Actor{Client: live, Applier: applier, Redis: o.Redis, ServiceAccount: o.ServiceAccount, BackupImage: o.BackupImage,
				Now: time.Now, SwitchoverWithin: switchoverWithin},
			Options: plan.Options{CreateTimeout: o.CreateTimeout, UpgradeTimeout: o.UpgradeTimeout, AllowHostPath: o.AllowHostPath,
				ServiceAnnotations: o.ServiceAnnotations, ClusterIssuers: o.ClusterIssuers},
			Waves: waves, ClusterDomain: o.ClusterDomain, RetryRefused: o.PollInterval, Now: time.Now,
		},
		memory: shell.Memory[*Memory]{Forgotten: func(name types.NamespacedName, uid types.UID) {
			metrics.RedisCluster(name.Namespace, name.Name).Delete()
			applier.Forget(uid)
			waves.forget(uid)
		}},
		events:  reporter{recorder: mgr.GetEventRecorder("rediscluster")},
		shares:  &shares{workers: o.MaxConcurrentReconciles},
		options: o,
		now:     time.Now,
	}
	guard := o.Shards.Guard(shards.Kind{List: &v1alpha1.RedisClusterList{}, Cache: mgr.GetCache(), Forget: r.memory.Forget,
		Priority: r.gained, Dropped: r.dropped})
	metrics.Tell(metrics.Kind{GroupVersionKind: v1alpha1.GroupVersion.WithKind("RedisCluster"), List: &v1alpha1.RedisClusterList{},
		Reader: mgr.GetCache(), Elected: guard.Elected(mgr.Elected()), Selected: guard.Selected(nil), State: state})
	b := ctrl.NewControllerManagedBy(mgr).Named("rediscluster").
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.RedisCluster{}),
			r.fairly(metrics.Enqueue(v1alpha1.GroupVersion.WithKind("RedisCluster"))),
			predicate.And(predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}), r.woken.passing()))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles,
			NeedLeaderElection:      guard.NeedLeaderElection(),
			// What fails is tried again within the poll interval: Redis sends no event when
			// it is well again.
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry,
				resync.Most(o.PollInterval, o.SyncPeriod)),
		})
	b = b.WatchesRawSource(r.named(named, mgr.GetCache())).WatchesRawSource(guard.Source())
	if o.Backups {
		b = b.WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.RedisBackup{}), r.fairly(r.woken.by(ofBackup))))
	}
	for _, child := range []client.Object{&corev1.Pod{}, &appsv1.StatefulSet{}} {
		b = b.WatchesRawSource(source.Kind(childCache, child, r.fairly(r.instances())))
	}
	b = b.WatchesRawSource(source.Kind(childCache, client.Object(&batchv1.Job{}), r.fairly(r.woken.by(toCluster))))
	for _, kind := range optional {
		child := &metav1.PartialObjectMetadata{}
		child.SetGroupVersionKind(kind)
		b = b.WatchesRawSource(source.Kind(childCache, client.Object(child), r.fairly(r.woken.by(toCluster))))
	}
	return b.Complete(guard.Reconciler(tracing.Reconciler("rediscluster",
		resync.Every(o.SyncPeriod, resync.Objects{Cache: mgr.GetCache(), Kind: &v1alpha1.RedisCluster{}}, r, time.Now))))
}

// newWatches are those of objects that are read by name.
func newWatches(mgr ctrl.Manager) (*byname.Watches, error) {
	of, err := metadata.NewForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("make a client of metadata: %w", err)
	}
	return &byname.Watches{Client: of, Now: time.Now}, nil
}

// ofBackup maps a RedisBackup to its RedisCluster.
func ofBackup(_ context.Context, backup client.Object) []reconcile.Request {
	b, ok := backup.(*v1alpha1.RedisBackup)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: b.Namespace, Name: b.Spec.Cluster}}}
}

// toCluster maps a child to its RedisCluster by the chain of owners: the RedisCluster itself or,
// of a pod, a StatefulSet of one of its shards. A label alone wakes nobody.
func toCluster(_ context.Context, child client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(child)
	if owner == nil {
		return nil
	}
	cluster := v1alpha1.RedisCluster{}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	switch {
	case owner.Kind == "RedisCluster" && group == v1alpha1.GroupVersion.Group:
		cluster.Name = owner.Name
	case owner.Kind == "StatefulSet" && group == appsv1.GroupName:
		cluster.Name = child.GetLabels()[v1alpha1.LabelCluster]
		if _, ok := cluster.ShardOf(owner.Name); !ok {
			return nil
		}
	default:
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: child.GetNamespace(), Name: cluster.Name}}}
}

// state is what is told of a cluster as of objects of every kind.
func state(o client.Object) metrics.State {
	cluster, is := o.(*v1alpha1.RedisCluster)
	if !is {
		return metrics.State{Observed: -1}
	}
	return metrics.State{Observed: cluster.Status.ObservedGeneration, Conditions: cluster.Status.Conditions}
}
