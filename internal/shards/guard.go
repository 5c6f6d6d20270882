// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Kind is a kind of custom resource whose objects are divided.
type Kind struct {
	// List is an empty list, in the form in which the cache holds them, and Cache has them.
	List  client.ObjectList
	Cache client.Reader
	// Forget drops all that is remembered of the objects of some namespaces.
	Forget func(of func(namespace string) bool)
	// Priority is with which priority an object is looked at when its shard is gained; nil: as what is found at the start.
	Priority func(client.Object) int
	// Dropped, if set, is called for each request that is not carried out.
	Dropped func(types.NamespacedName)
}

// Guard is the gate of one controller. A nil one is of an operator without shards, and changes nothing.
type Guard struct {
	gate *Gate
	kind Kind

	ready sync.Once
	runs  chan struct{} // closed when the controller's workers run: its caches are filled then

	mu    sync.Mutex
	queue queue
}

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// begun is the request that tells that workers run. No object has this name.
var begun = reconcile.Request{NamespacedName: types.NamespacedName{Name: "/"}}

// Guard makes the guard of a controller, before the manager starts.
func (g *Gate) Guard(kind Kind) *Guard {
	if g == nil {
		return nil
	}
	guard := &Guard{gate: g, kind: kind, runs: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.guards = append(g.guards, guard)
	return guard
}

// NeedLeaderElection is what the options of the controller say of it: with shards, the controllers of all replicas run.
func (g *Guard) NeedLeaderElection() *bool {
	if g == nil {
		return nil
	}
	return ptr.To(false)
}

// Elected is what is closed when this process may tell about objects, and Selected which of them.
func (g *Guard) Elected(leads <-chan struct{}) <-chan struct{} {
	if g == nil {
		return leads
	}
	return g.runs
}

// Selected are those of the selected objects (nil: all) that are this replica's.
func (g *Guard) Selected(selected func(client.Object) bool) func(client.Object) bool {
	if g == nil {
		return selected
	}
	return func(o client.Object) bool { return g.gate.Holds(o.GetNamespace()) && (selected == nil || selected(o)) }
}

// Reconciler carries out those requests whose objects are this replica's. Others are dropped: whoever gets a shard has all of it
// reconciled.
func (g *Guard) Reconciler(next reconcile.Reconciler) reconcile.Reconciler {
	if g == nil {
		return next
	}
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		if request == begun {
			g.ready.Do(func() { close(g.runs) })
			return ctrl.Result{}, nil
		}
		of, leave, ok := g.gate.enter(ctx, request.Namespace)
		if !ok {
			if g.kind.Dropped != nil {
				g.kind.Dropped(request.NamespacedName)
			}
			return ctrl.Result{}, nil
		}
		defer leave()
		result, err := next.Reconcile(of, request)
		if of.Err() != nil && ctx.Err() == nil {
			return ctrl.Result{}, nil // the shard is another's: nothing is tried again here
		}
		return result, err
	})
}

// Source enqueues the objects of a shard when this replica gets it.
func (g *Guard) Source() source.Source {
	return source.Func(func(_ context.Context, q queue) error {
		if g == nil {
			return nil
		}
		g.mu.Lock()
		g.queue = q
		g.mu.Unlock()
		q.Add(begun)
		return nil
	})
}

// enqueue has all objects of a shard reconciled.
func (g *Guard) enqueue(shard int) {
	g.mu.Lock()
	q := g.queue
	g.mu.Unlock()
	list, is := g.kind.List.DeepCopyObject().(client.ObjectList)
	if !is || q == nil {
		return
	}
	if err := g.kind.Cache.List(context.Background(), list, client.UnsafeDisableDeepCopy); err != nil { // it asks nobody
		log.Log.Error(err, "Cannot list the objects of a shard", "shard", shard)
		return
	}
	_ = meta.EachListItem(list, func(item runtime.Object) error { // no function below fails
		if o, is := item.(client.Object); is && g.gate.Of(o.GetNamespace()) == shard {
			g.add(q, o)
		}
		return nil
	})
}

func (g *Guard) add(q queue, o client.Object) {
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(o)}
	ordered, is := q.(priorityqueue.PriorityQueue[reconcile.Request])
	if !is {
		q.Add(request)
		return
	}
	priority := handler.LowPriority
	if g.kind.Priority != nil {
		priority = g.kind.Priority(o)
	}
	ordered.AddWithOpts(priorityqueue.AddOpts{Priority: &priority}, request)
}

func (g *Guard) forget(shard int) {
	g.kind.Forget(func(namespace string) bool { return g.gate.Of(namespace) == shard })
}

// started waits until all controllers run.
func (g *Gate) started(ctx context.Context) bool {
	g.mu.Lock()
	guards := g.guards
	g.mu.Unlock()
	for _, guard := range guards {
		select {
		case <-guard.runs:
		case <-ctx.Done():
			return false
		}
	}
	return true
}
