// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
)

// The operator keeps two caches. The manager's holds the custom resources. The children's holds what the operator made for them,
// selected by label, so that nothing else of the cluster is ever listed or kept in memory. Secrets are in neither.

// customResources are the options of the manager's cache.
func (o Options) customResources() cache.Options {
	options := cache.Options{
		DefaultNamespaces: o.namespaces(),
		DefaultTransform:  withoutManagedFields,
		// A read of a kind that no controller watches would list that kind in the whole cluster: an error is better.
		ReaderFailOnMissingInformer: true,
	}
	if o.SyncPeriod > 0 {
		options.SyncPeriod = &o.SyncPeriod
	}
	return options
}

// newChildren makes the children's cache and has the manager run it.
func newChildren(mgr ctrl.Manager, o Options) (cache.Cache, error) {
	children, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultNamespaces:    o.namespaces(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{apply.ManagedByLabel: apply.ManagedByValue}),
		DefaultTransform:     withOwnManagedFields,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of children: %w", err)
	}
	if err := mgr.Add(managedCache{children}); err != nil {
		return nil, fmt.Errorf("adding the cache of children: %w", err)
	}
	return children, nil
}

// managedCache makes a manager start a second cache together with its own one and wait for both, before any controller.
type managedCache struct{ cache.Cache }

// GetCache is what the manager recognises a cache by.
func (c managedCache) GetCache() cache.Cache { return c.Cache }

func (o Options) namespaces() map[string]cache.Config {
	if len(o.Namespaces) == 0 {
		return nil
	}
	namespaces := map[string]cache.Config{}
	for _, namespace := range o.Namespaces {
		namespaces[namespace] = cache.Config{}
	}
	return namespaces
}

// uncached are the kinds that are always read from the API server: Secrets because they must not be kept in memory, the others
// because they are not ours and are read rarely, by name.
func uncached() *client.CacheOptions {
	return &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}, &corev1.ConfigMap{}, &corev1.Node{}, &corev1.Namespace{}}}
}

// withoutManagedFields drops what no controller reads of a custom resource.
func withoutManagedFields(object any) (any, error) {
	return keepManagedFields(object, func(metav1.ManagedFieldsEntry) bool { return false })
}

// withOwnManagedFields keeps the entries of the operator, by which internal/apply recognises drift, and drops those of the
// kubelet and of the controllers, which are most of the memory of a pod's metadata.
func withOwnManagedFields(object any) (any, error) {
	return keepManagedFields(object, func(e metav1.ManagedFieldsEntry) bool { return e.Manager == apply.FieldManager })
}

func keepManagedFields(object any, keep func(metav1.ManagedFieldsEntry) bool) (any, error) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		kept, err := keepManagedFields(tombstone.Obj, keep)
		tombstone.Obj = kept
		return tombstone, err
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return object, nil //nolint:nilerr // what has no metadata has no managed fields
	}
	if entries := accessor.GetManagedFields(); len(entries) > 0 {
		drop := func(e metav1.ManagedFieldsEntry) bool { return !keep(e) }
		accessor.SetManagedFields(slices.DeleteFunc(entries, drop))
	}
	return object, nil
}
