// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/tracing"
)

// Options configures the controller of RedisBackupSchedules.
type Options struct {
	// Selector selects the custom resources that are this operator's; nil: all. What a schedule makes has its labels of these keys.
	Selector labels.Selector
	// Shards divides the objects among replicas; nil: the leader has all.
	Shards *shards.Gate
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Add registers the controller of RedisBackupSchedules with a manager.
func Add(mgr ctrl.Manager, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Selector == nil {
		o.Selector = labels.Everything()
	}
	live, err :=
		client.New(mgr.GetConfig(), client.Options{HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return fmt.Errorf("set up RedisBackupSchedule: %w", err)
	}
	r := &reconciler{cache: mgr.GetCache(), live: live, recorder: mgr.GetEventRecorder("redisbackupschedule"), selector: o.Selector,
		now: o.Now}
	schedule := &v1alpha1.RedisBackupSchedule{}
	made, cluster := handler.EnqueueRequestsFromMapFunc(maker), handler.EnqueueRequestsFromMapFunc(r.ofCluster)
	verifies := handler.EnqueueRequestsFromMapFunc(verifier)
	changed := predicate.GenerationChangedPredicate{}
	const atOnce = 2
	guard := o.Shards.Guard(shards.Kind{List: &v1alpha1.RedisBackupScheduleList{}, Cache: mgr.GetCache(), Forget: r.memory.Forget})
	metrics.Tell(metrics.Kind{GroupVersionKind: kind, List: &v1alpha1.RedisBackupScheduleList{}, Reader: mgr.GetCache(),
		Elected: guard.Elected(mgr.Elected()), Selected: guard.Selected(nil), State: state})
	err = ctrl.NewControllerManagedBy(mgr).Named("redisbackupschedule").
		WithOptions(controller.Options{MaxConcurrentReconciles: atOnce, NeedLeaderElection: guard.NeedLeaderElection()}).
		WatchesRawSource(guard.Source()).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(schedule), metrics.Enqueue(kind), changed)).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.RedisBackup{}), made)).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.RedisCluster{}), cluster, changed)).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(&v1alpha1.RedisCluster{}), verifies)).
		Complete(guard.Reconciler(tracing.Reconciler("redisbackupschedule", r)))
	if err != nil {
		return fmt.Errorf("set up RedisBackupSchedule: %w", err)
	}
	return nil
}

// state is what is told of a schedule.
func state(o client.Object) metrics.State {
	schedule, is := o.(*v1alpha1.RedisBackupSchedule)
	if !is {
		return metrics.State{Observed: -1}
	}
	told := metrics.State{Observed: -1, Conditions: schedule.Status.Conditions}
	if last := schedule.Status.LastSuccessfulBackup; last != nil {
		told.Succeeded = last.Time.Time
	}
	return told
}

// maker is the schedule that a RedisBackup says it is of.
func maker(_ context.Context, backup client.Object) []reconcile.Request {
	name := backup.GetLabels()[v1alpha1.LabelSchedule]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: backup.GetNamespace(), Name: name}}}
}

// verifier is the schedule that controls a RedisCluster, whose status it judges.
func verifier(_ context.Context, cluster client.Object) []reconcile.Request {
	owner := metav1.GetControllerOf(cluster)
	if owner == nil || owner.Kind != kind.Kind {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: cluster.GetNamespace(), Name: owner.Name}}}
}

// ofCluster are the schedules of a RedisCluster, and the one that needs its name.
func (r *reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	var list v1alpha1.RedisBackupScheduleList
	if err := r.cache.List(ctx, &list, client.InNamespace(cluster.GetNamespace())); err != nil {
		return nil // each looks again by itself
	}
	var requests []reconcile.Request
	for i := range list.Items {
		if s := &list.Items[i]; s.Spec.Cluster == cluster.GetName() || s.ThrowawayName() == cluster.GetName() {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(s)})
		}
	}
	return requests
}
