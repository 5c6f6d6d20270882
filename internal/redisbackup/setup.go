// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/tracing"
)

// Options configures the controller of RedisBackups.
type Options struct {
	// Image has the program that takes backups. It is the operator's own; empty: not known.
	Image string
	// ServiceAccount is the operator's own, namespace:name, for messages about missing rights.
	ServiceAccount string
	// PlatformUserIDs: pods get their user IDs from the platform.
	PlatformUserIDs bool
	// Shards divides the objects among replicas; nil: the leader has all.
	Shards *shards.Gate
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Add registers the controller with a manager. children is the cache of objects that carry the operator's label.
func Add(mgr ctrl.Manager, children cache.Cache, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	live, err :=
		client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("set up RedisBackup: %w", err)
	}
	r := &reconciler{cache: mgr.GetCache(), children: children, live: live, image: o.Image, serviceAccount: o.ServiceAccount,
		platformUserIDs: o.PlatformUserIDs, recorder: mgr.GetEventRecorder("redisbackup"), ask: backupjob.Asker(report.Most),
		now: o.Now}
	backup := &v1alpha1.RedisBackup{}
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), backup, handler.OnlyControllerOwner())
	const atOnce = 4
	guard := o.Shards.Guard(shards.Kind{List: &v1alpha1.RedisBackupList{}, Cache: mgr.GetCache(), Forget: r.memory.Forget})
	metrics.Tell(metrics.Kind{GroupVersionKind: kind, List: &v1alpha1.RedisBackupList{}, Reader: mgr.GetCache(),
		Elected: guard.Elected(mgr.Elected()), Selected: guard.Selected(nil), State: state})
	err = ctrl.NewControllerManagedBy(mgr).Named("redisbackup").
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce, NeedLeaderElection: guard.NeedLeaderElection()}).
		WatchesRawSource(guard.Source()).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(backup), metrics.Enqueue(kind), predicate.GenerationChangedPredicate{})).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.RedisCluster{}), handler.EnqueueRequestsFromMapFunc(r.waiting))).
		WatchesRawSource(source.Kind[client.Object](children, &batchv1.Job{}, owner)).
		Complete(guard.Reconciler(tracing.Reconciler("redisbackup", r)))
	if err != nil {
		return fmt.Errorf("set up RedisBackup: %w", err)
	}
	return nil
}

// state is what is told of a backup.
func state(o client.Object) metrics.State {
	backup, is := o.(*v1alpha1.RedisBackup)
	if !is {
		return metrics.State{Observed: -1}
	}
	return metrics.State{Observed: -1, Conditions: backup.Status.Conditions}
}

// waiting are the backups of a RedisCluster that have not ended.
func (r *reconciler) waiting(ctx context.Context, cluster client.Object) []reconcile.Request {
	var list v1alpha1.RedisBackupList
	if err := r.cache.List(ctx, &list, client.InNamespace(cluster.GetNamespace())); err != nil {
		return nil // each looks again by itself
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if b := &list.Items[i]; b.Spec.Cluster == cluster.GetName() && !b.Ended() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(b)})
		}
	}
	return requests
}
