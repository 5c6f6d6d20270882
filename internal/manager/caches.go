// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
)

// The operator keeps two caches. The manager's holds the custom resources. The children's holds what the operator made for them,
// selected by label, so that nothing else of the cluster is ever listed or kept in memory. Secrets are in neither.

// NewManager makes a manager that is set up as given, with the operator's two caches; of the setup of the first, ByObject counts. They
// cover the watched namespaces, and that of children those that resources may reach besides; "*" is all.
func (o Options) NewManager(as *rest.Config, setup ctrl.Options, reach ...string) (mgr ctrl.Manager, children cache.Cache, err error) {
	setup.Cache = cache.Options{
		ByObject:          setup.Cache.ByObject,
		DefaultNamespaces: o.namespaces(),
		SyncPeriod:        neverResent(),
		DefaultTransform:  compactResource,
		// A read of a kind that no controller watches would list that kind in the whole cluster: an error is better.
		ReaderFailOnMissingInformer: true,
	}
	setup.NewCache = func(as *rest.Config, o cache.Options) (cache.Cache, error) {
		c, err := cache.New(as, o)
		return packedCache{Cache: c}, err
	}
	setup.Client = client.Options{Cache: uncached()}
	if mgr, err = ctrl.NewManager(as, setup); err != nil {
		return nil, nil, fmt.Errorf("making the manager: %w", err)
	}
	children, err = o.newChildren(mgr, reach)
	return mgr, children, err
}

// neverResent is the sync period of both caches. Left out it would be ten hours, and all objects would come at one moment:
// --sync-period is package resync's.
func neverResent() *time.Duration { return ptr.To[time.Duration](0) }

// newChildren makes the children's cache and has the manager run it.
func (o Options) newChildren(mgr ctrl.Manager, reach []string) (cache.Cache, error) {
	namespaces := o.namespaces()
	for _, reached := range reach {
		switch {
		case namespaces == nil:
		case reached == "*":
			namespaces = nil
		default:
			namespaces[reached] = cache.Config{}
		}
	}
	children, err := cache.New(mgr.GetConfig(), cache.Options{
		Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(), HTTPClient: mgr.GetHTTPClient(),
		DefaultNamespaces:    namespaces,
		SyncPeriod:           neverResent(),
		DefaultLabelSelector: labels.SelectorFromSet(labels.Set{apply.ManagedByLabel: apply.ManagedByValue}),
		DefaultTransform:     CompactChild,
	})
	if err != nil {
		return nil, fmt.Errorf("making the cache of children: %w", err)
	}
	if err := mgr.Add(managedCache{children}); err != nil {
		return nil, fmt.Errorf("adding the cache of children: %w", err)
	}
	return packedCache{Cache: children, watched: &sync.Map{}}, nil
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

// compactResource drops what no controller reads of a custom resource, and packs one without a Go type.
func compactResource(object any) (any, error) {
	return transformed(object, func(object any) (any, error) {
		if whole, ok := object.(*unstructured.Unstructured); ok { // its accessors would copy every entry
			unstructured.RemoveNestedField(whole.Object, "metadata", "managedFields")
			return pack(whole)
		}
		if accessor, err := meta.Accessor(object); err == nil {
			accessor.SetManagedFields(nil)
			shareStrings(accessor)
		}
		return object, nil
	})
}

// CompactChild keeps of a child what is read: of managed fields a digest of the operator's own entry, of objects of chart kinds
// and of StatefulSets not what their pods are made from, the former packed, and of pods not what only a kubelet and a scheduler do. What
// it returned once it leaves as it is.
func CompactChild(object any) (any, error) {
	return transformed(object, func(object any) (any, error) {
		apply.TrimManagedFields(object)
		switch child := object.(type) {
		case *unstructured.Unstructured:
			unstructured.RemoveNestedField(child.Object, "spec", "template")
			unstructured.RemoveNestedField(child.Object, "spec", "jobTemplate")
			return pack(child)
		case *corev1.Pod:
			compactPod(&child.Spec)
		case *appsv1.StatefulSet: // what users instances run as may not change
			child.Spec.Template = corev1.PodTemplateSpec{Spec: corev1.PodSpec{SecurityContext: child.Spec.Template.Spec.SecurityContext}}
		}
		if accessor, err := meta.Accessor(object); err == nil {
			shareStrings(accessor)
		}
		return object, nil
	})
}

// compactPod drops what nobody reads here. What is left of a pod is only read and patched, never written as a whole; a patch that binds it
// to a node needs its node affinity.
func compactPod(pod *corev1.PodSpec) {
	for _, containers := range [][]corev1.Container{pod.InitContainers, pod.Containers} {
		for i := range containers {
			c := &containers[i]
			c.Env, c.EnvFrom, c.VolumeMounts, c.VolumeDevices = nil, nil, nil, nil
			c.LivenessProbe, c.ReadinessProbe, c.StartupProbe, c.Lifecycle = nil, nil, nil, nil
			c.SecurityContext, c.ResizePolicy = nil, nil
		}
	}
	pod.TopologySpreadConstraints, pod.Tolerations = nil, nil
	if pod.Affinity != nil {
		pod.Affinity.PodAffinity, pod.Affinity.PodAntiAffinity = nil, nil
	}
}

// transformed changes an object, or the last state of one that was deleted.
func transformed(object any, change func(any) (any, error)) (any, error) {
	if tombstone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		var err error
		tombstone.Obj, err = change(tombstone.Obj)
		return tombstone, err
	}
	return change(object)
}
