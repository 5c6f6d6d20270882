// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// Clusters that wait for a worker go in the order of these priorities.
const (
	// failed: an instance was lost, or the cluster is being healed.
	failed = 100
	// wanted: something changed, or is under way.
	wanted = 0
	// routine: nothing is known to have happened. Objects that the operator finds at its start have it too.
	routine = handler.LowPriority
)

// Who changes clusters, or makes them fail, can do so without an end: so many reconciliations of a namespace go before the routine of
// others at once, for each of the two reasons, and one more each time that another interval has passed; and of all namespaces together ten
// times as many. What is over that is routine, so that clusters to which nothing is known to have happened are looked at, too.
const (
	firstAtOnce   = 20
	firstInterval = 500 * time.Millisecond
	ofAll         = 10
)

// budget is how many reconciliations may go first, by namespace. It is safe for concurrent use.
type budget struct {
	mu sync.Mutex
	// spent is until when what a namespace has used is made good, all until when what all have used is.
	spent map[string]time.Time
	all   time.Time
	swept time.Time
}

// take reports whether one more reconciliation of a namespace may go before those of others.
func (b *budget) take(namespace string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spent == nil || now.Sub(b.swept) >= firstAtOnce*firstInterval {
		after := map[string]time.Time{}
		for namespace, until := range b.spent {
			if until.After(now) {
				after[namespace] = until
			}
		}
		b.spent, b.swept = after, now
	}
	spent := func(until time.Time, interval time.Duration) time.Time {
		if until.Before(now) {
			until = now
		}
		return until.Add(interval)
	}
	until, all := spent(b.spent[namespace], firstInterval), spent(b.all, firstInterval/ofAll)
	if most := now.Add(firstAtOnce * firstInterval); until.After(most) || all.After(most) {
		return false
	}
	b.spent[namespace], b.all = until, all
	return true
}

// granted are the clusters that wait and go first for what was taken from a budget, with their priorities: what else happens to them until
// they are reconciled takes nothing more. It is safe for concurrent use.
type granted struct {
	mu sync.Mutex
	of map[types.NamespacedName]int
}

// to reports whether a cluster goes with a priority: as it does already, or if there is something to take.
func (g *granted) to(cluster types.NamespacedName, priority int, take func() bool) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if has, waits := g.of[cluster]; waits && has >= priority {
		return true
	}
	if !take() {
		return false
	}
	if g.of == nil {
		g.of = map[types.NamespacedName]int{}
	}
	g.of[cluster] = priority
	return true
}

// use takes what was granted to a cluster that is reconciled now.
func (g *granted) use(cluster types.NamespacedName) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, cluster)
}

// gained is the priority of a cluster that this replica works on from now on: what became of it meanwhile nobody has seen.
func (r *Reconciler) gained(o client.Object) int {
	cluster, is := o.(*v1alpha1.RedisCluster)
	if is && !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) && r.fails(client.ObjectKeyFromObject(o)) {
		return failed
	}
	return routine
}

// dropped forgets what was noted for a reconciliation of a cluster that is another replica's.
func (r *Reconciler) dropped(cluster types.NamespacedName) {
	r.granted.use(cluster)
	r.woken.take(cluster)
}

type (
	queue      = workqueue.TypedRateLimitingInterface[reconcile.Request]
	priorities = priorityqueue.PriorityQueue[reconcile.Request]
)

// fair is a queue in which what was changed goes first, as far as its namespace may.
type fair struct {
	priorities
	r *Reconciler
}

// Add enqueues a cluster that was changed.
func (f fair) Add(request reconcile.Request) { f.AddWithOpts(priorityqueue.AddOpts{}, request) }

// AddWithOpts enqueues clusters, with the priority of changed ones unless another is given.
func (f fair) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, request := range requests {
		with := o
		if with.Priority == nil {
			with.Priority = ptr.To(f.r.changed(request.NamespacedName))
		}
		f.priorities.AddWithOpts(with, request)
	}
}

// changed is the priority of a cluster that was changed. Another replica's takes nothing of a budget.
func (r *Reconciler) changed(cluster types.NamespacedName) int {
	if r.options.Shards.Holds(cluster.Namespace) &&
		r.granted.to(cluster, wanted, func() bool { return r.changes.take(cluster.Namespace, r.now()) }) {
		return wanted
	}
	return routine
}

// fails reports whether a cluster that lost an instance, or is being healed, goes before all others.
func (r *Reconciler) fails(cluster types.NamespacedName) bool {
	return r.options.Shards.Holds(cluster.Namespace) &&
		r.granted.to(cluster, failed, func() bool { return r.failures.take(cluster.Namespace, r.now()) })
}

// fairly has a handler enqueue clusters in a fair queue.
func (r *Reconciler) fairly(h handler.EventHandler) handler.EventHandler {
	in := func(q queue) queue {
		if p, can := q.(priorities); can {
			return fair{priorities: p, r: r}
		}
		return q
	}
	return handler.Funcs{
		CreateFunc:  func(ctx context.Context, e event.CreateEvent, q queue) { h.Create(ctx, e, in(q)) },
		UpdateFunc:  func(ctx context.Context, e event.UpdateEvent, q queue) { h.Update(ctx, e, in(q)) },
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { h.Delete(ctx, e, in(q)) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { h.Generic(ctx, e, in(q)) },
	}
}

// instances wakes the clusters whose pods or StatefulSets an event is about. Those that lost an instance go first, at the operator's start
// those of which one is missing.
func (r *Reconciler) instances() handler.EventHandler {
	wake := func(ctx context.Context, q queue, o client.Object, lost bool) {
		for _, request := range toCluster(ctx, o) {
			r.woken.note(request.NamespacedName)
			if first, can := q.(priorities); can && lost && r.fails(request.NamespacedName) {
				first.AddWithOpts(priorityqueue.AddOpts{Priority: ptr.To(failed)}, request)
				continue
			}
			q.Add(request)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			wake(ctx, q, e.Object, e.IsInInitialList && !complete(e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			wake(ctx, q, e.ObjectNew, complete(e.ObjectOld) && !complete(e.ObjectNew))
		},
		DeleteFunc:  func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object, true) },
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) { wake(ctx, q, e.Object, false) },
	}
}

// complete reports whether an instance, or all of a shard, are ready, and are to stay.
func complete(o client.Object) bool {
	if o.GetDeletionTimestamp() != nil {
		return false
	}
	switch o := o.(type) {
	case *corev1.Pod:
		return pods.Ready(o)
	case *appsv1.StatefulSet:
		return o.Status.ReadyReplicas >= ptr.Deref(o.Spec.Replicas, 1)
	}
	return true
}

// next is the priority with which a cluster is looked at next, after a report.
func (r *Reconciler) next(cluster types.NamespacedName, report Report, atRest bool) int {
	switch {
	case atRest:
		return routine
	case report.Decision.Situation == plan.Healing && r.fails(cluster):
		return failed
	}
	return r.changed(cluster)
}

// in has a cluster looked at again with a priority.
func in(priority int, result ctrl.Result, err error) (ctrl.Result, error) {
	result.Priority = &priority
	return result, err
}
