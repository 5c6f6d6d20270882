// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package resync has every object of a kind looked at once a period, without a reason. A cache could resend what it holds, but it
// resends everything at one moment; here each object has a moment of its own.
package resync

import (
	"context"
	"hash/fnv"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Objects are those of one kind.
type Objects struct {
	// Cache has an informer for the kind.
	Cache client.Reader
	// Kind is an empty object, in the form in which the cache holds them. It is not changed.
	Kind client.Object
	// Selected says which of them are reconciled; nil means all.
	Selected func(client.Object) bool
}

// Every returns a reconciler that reconciles each object at least once a period; zero returns next as it is. A reconciliation that fails is
// tried again by the controller, see Most. Who waits for a change goes first: what is looked at without a reason has low priority.
func Every(period time.Duration, objects Objects, next reconcile.Reconciler, now func() time.Time) reconcile.Reconciler {
	if period <= 0 {
		return next
	}
	return reconcile.Func(func(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
		result, err := next.Reconcile(ctx, request)
		if err != nil {
			return result, err
		}
		object := objects.Kind.DeepCopyObject().(client.Object)
		if err := objects.Cache.Get(ctx, request.NamespacedName, object); err != nil {
			return result, client.IgnoreNotFound(err) // what is gone is not looked at again
		}
		if objects.Selected != nil && !objects.Selected(object) {
			return result, nil
		}
		if after := untilNext(object.GetUID(), period, now()); result.RequeueAfter <= 0 || after < result.RequeueAfter {
			result.RequeueAfter, result.Priority = after, ptr.To(handler.LowPriority)
		}
		return result, nil
	})
}

// untilNext is the time until the object's next moment: above zero, and a period at the most. The moments of an object are a period
// apart, and its UID says where in the period they are, so that those of many objects are spread evenly over it.
func untilNext(uid types.UID, period time.Duration, now time.Time) time.Duration {
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(uid))                         // it cannot fail
	moment := time.Duration(hash.Sum64() % uint64(period)) //nolint:gosec // a period is positive
	passed := (time.Duration(now.UnixNano()) - moment) % period
	if passed < 0 {
		passed += period
	}
	return period - passed
}

// Retries is how a controller tries again what failed: after 5 ms, then after twice as long each, up to 1000 s (client-go's own) or
// the period.
func Retries(period time.Duration) workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](5*time.Millisecond, Most(1000*time.Second, period))
}

// Most is how long to wait at the most before a reconciliation that failed is tried again: no longer than a period, if there is one.
func Most(most, period time.Duration) time.Duration {
	if period > 0 {
		return min(most, period)
	}
	return most
}
