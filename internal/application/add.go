// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/metrics"
	"middleware.hc.cn/operator/internal/resync"
	"middleware.hc.cn/operator/internal/shards"
	"middleware.hc.cn/operator/internal/shell"
	"middleware.hc.cn/operator/internal/tracing"
)

// Options configures the controller of Applications.
type Options struct {
	// MaxConcurrentReconciles is the number of Applications that are reconciled at
	// the same time. Default: 1.
	MaxConcurrentReconciles int
	// SyncPeriod is how often each Application is looked at without a reason; zero means never.
	SyncPeriod time.Duration
	// Shards divides the objects among replicas; nil: the leader has all.
	Shards *shards.Gate
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// Add registers the controller with a manager. The children are the objects that
// carry apply.ManagedByLabel.
//
// Applications are read as they were written, not as their Go type: a single one
// whose pod spec has a wrong type would otherwise keep every one from being listed.
func Add(mgr ctrl.Manager, children cache.Cache, o Options) error {
	if o.Now == nil {
		o.Now = time.Now
	}
	applier, err := apply.ForManager(mgr, whole{children})
	if err != nil {
		return fmt.Errorf("set up Application: %w", err)
	}
	r := &reconciler{
		applications: mgr.GetCache(),
		children:     children,
		live:         mgr.GetAPIReader(),
		writer:       mgr.GetClient(),
		applier:      applier,
		recorder:     mgr.GetEventRecorder("application"),
		now:          o.Now,
	}
	r.memory.Forgotten = func(_ types.NamespacedName, uid types.UID) { applier.Forget(uid) }
	application := &unstructured.Unstructured{}
	application.SetGroupVersionKind(applicationKind)
	deployment := &unstructured.Unstructured{}
	deployment.SetGroupVersionKind(deploymentKind)
	owner := handler.EnqueueRequestForOwner(mgr.GetScheme(), mgr.GetRESTMapper(), application, handler.OnlyControllerOwner())

	guard := o.Shards.Guard(shards.Kind{List: shell.ListOf(applicationKind), Cache: mgr.GetCache(), Forget: r.memory.Forget})
	shell.Tell(mgr, applicationKind, guard.Elected(mgr.Elected()), guard.Selected(nil))

	err = ctrl.NewControllerManagedBy(mgr).
		Named("application").
		WithOptions(controller.Options{
			MaxConcurrentReconciles: o.MaxConcurrentReconciles,
			RateLimiter:             resync.Retries(o.SyncPeriod),
			NeedLeaderElection:      guard.NeedLeaderElection(),
		}).
		WatchesRawSource(source.Kind(mgr.GetCache(), client.Object(application), metrics.Enqueue(applicationKind),
			predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}))).
		WatchesRawSource(source.Kind[client.Object](children, deployment, owner)).
		WatchesRawSource(guard.Source()).
		Complete(guard.Reconciler(tracing.Reconciler("application",
			resync.Every(o.SyncPeriod, resync.Objects{Cache: mgr.GetCache(), Kind: application}, r, o.Now))))
	if err != nil {
		return fmt.Errorf("set up Application: %w", err)
	}
	return nil
}

// whole reads metadata of Deployments where their status is read: of two watches, either may lag behind.
type whole struct{ client.Reader }

func (w whole) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	if metadata, is := object.(*metav1.PartialObjectMetadata); is {
		return apply.GetMetadata(ctx, w.Reader, key, metadata, options...)
	}
	return w.Reader.Get(ctx, key, object, options...)
}
