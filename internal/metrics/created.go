// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"

	"github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	crhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// queue is that of a controller.
type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Enqueue wakes the controller of a kind for its custom resources and tells when each of them was created
// (resource_created_at_seconds, operator-lib's metric). Objects of Go types do not say what kind they are, so it is given.
func Enqueue(kind schema.GroupVersionKind) crhandler.EventHandler {
	type object = *metav1.PartialObjectMetadata
	instrumented := handler.InstrumentedEnqueueRequestForObject[object]{}
	is := func(o client.Object) object {
		identified := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: o.GetNamespace(), Name: o.GetName(), ResourceVersion: o.GetResourceVersion(), CreationTimestamp: o.GetCreationTimestamp()}}
		identified.SetGroupVersionKind(kind)
		return identified
	}
	return crhandler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) {
			instrumented.Create(ctx, event.TypedCreateEvent[object]{Object: is(e.Object), IsInInitialList: e.IsInInitialList}, q)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			instrumented.Update(ctx, event.TypedUpdateEvent[object]{ObjectOld: is(e.ObjectOld), ObjectNew: is(e.ObjectNew)}, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			instrumented.Delete(ctx, event.TypedDeleteEvent[object]{Object: is(e.Object), DeleteStateUnknown: e.DeleteStateUnknown}, q)
		},
		GenericFunc: func(ctx context.Context, e event.GenericEvent, q queue) {
			instrumented.Generic(ctx, event.TypedGenericEvent[object]{Object: is(e.Object)}, q)
		},
	}
}
