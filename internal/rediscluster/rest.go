// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// A cluster at rest is not asked for everything for so many poll intervals. Of one where something follows from what instances say, however
// healthy it is, a minute is the longest.
const restPolls, longestRest = 6, time.Minute

// longest is for how long a cluster at rest is not asked for everything.
func longest(cluster *v1alpha1.RedisCluster, poll time.Duration) time.Duration {
	claim := cluster.Spec.Claim()
	if cluster.Status.Autoscale != nil || cluster.Spec.Balance != nil || claim != nil && claim.MaxSize != nil ||
		meta.IsStatusConditionFalse(cluster.Status.Conditions, v1alpha1.ConditionCertificateInUse) {
		return min(restPolls*poll, longestRest)
	}
	return restPolls * poll
}

// rest is what a reconciliation left of a cluster that it found healthy, with nothing to do. Until an event wakes the operator, or its time
// is over, the cluster is only asked whether anything happened to it. The zero value is of a cluster that is not at rest.
type rest struct {
	generation int64
	until      time.Time
	seen       *observe.Rest
	turn       int
	// changes is when the bounds of autoscaling change at the earliest; zero: they never do. It is known of any cluster.
	changes time.Time
}

// sooner is a time to wait that ends when the bounds of autoscaling may have changed, and when the rest does.
func (r rest) sooner(wait time.Duration, now time.Time) time.Duration {
	for _, end := range []time.Time{r.changes, r.until} {
		if wait > 0 && !end.IsZero() {
			wait = min(wait, max(end.Sub(now), goOn))
		}
	}
	return wait
}

// after is what a reconciliation leaves of a cluster.
func (r rest) after(cluster *v1alpha1.RedisCluster, report Report, until time.Time) rest {
	next := rest{turn: r.turn + 1, changes: report.Until}
	if atRest(cluster, report) {
		next.generation, next.until, next.seen = cluster.Generation, until, observe.RestOf(report.Snapshot, next.turn)
	}
	return next
}

// atRest reports whether a cluster is healthy, and events and what observe.Rest has tell when something is to be done next. How far an
// archive, a gateway or an import is has to be asked for.
func atRest(cluster *v1alpha1.RedisCluster, report Report) bool {
	return plan.Is[plan.None](report.Decision.Step) && report.Err == nil &&
		meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) && cluster.DeletionTimestamp == nil &&
		cluster.Archive() == nil && cluster.Spec.External == nil && cluster.Spec.Bootstrap == nil
}

// rests reports whether a cluster is as the last reconciliation left it, and nothing is to be read by name.
func (r *Reconciler) rests(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, turn *turn) bool {
	if m.rest.seen == nil || m.rest.generation != cluster.Generation || !r.now().Before(m.rest.until) ||
		!m.rest.changes.IsZero() && !r.now().Before(m.rest.changes) || r.loop.Observer.Due(cluster, &m.Memory) {
		return false
	}
	unchanged, held := r.loop.Observer.Unchanged(ctx, cluster, &m.Memory, m.rest.seen, turn.timeout())
	turn.held += held
	return unchanged
}

// woken are the clusters of which events told since they were reconciled last. It is safe for concurrent use.
type woken struct {
	mu    sync.Mutex
	names map[types.NamespacedName]bool
}

// take reports whether an event told of a cluster, and forgets that it did.
func (w *woken) take(name types.NamespacedName) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.names[name]
	delete(w.names, name)
	return was
}

func (w *woken) note(name types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.names == nil {
		w.names = map[types.NamespacedName]bool{}
	}
	w.names[name] = true
}

// by enqueues the clusters that a function finds for an object, as woken.
func (w *woken) by(clusters handler.MapFunc) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, o client.Object) []reconcile.Request {
		requests := clusters(ctx, o)
		for _, request := range requests {
			w.note(request.NamespacedName)
		}
		return requests
	})
}

// passing notes every RedisCluster that comes by, and lets it pass.
func (w *woken) passing() predicate.Predicate {
	return predicate.NewPredicateFuncs(func(o client.Object) bool {
		w.note(client.ObjectKeyFromObject(o))
		return true
	})
}
