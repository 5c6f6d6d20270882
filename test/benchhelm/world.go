// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/tools/cache"
)

const mergePatch = types.MergePatchType

// world is what watches of a namespace have told.
type world struct {
	namespace string
	stores    map[schema.GroupVersionResource]cache.Store

	mutex   sync.Mutex
	awaited map[child]*drift
}

// child is a child of a custom resource; it has its name.
type child struct {
	resource schema.GroupVersionResource
	name     string
}

// watch follows a namespace until the context ends, and reports its Deployments as available.
func (s *server) watch(ctx context.Context, namespace string) (*world, error) {
	w := &world{namespace: namespace, stores: map[schema.GroupVersionResource]cache.Store{}, awaited: map[child]*drift{}}
	reports := s.newAvailability(namespace)
	go reports.run(ctx)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(s.dynamic, 0, namespace, nil)
	for _, resource := range append([]schema.GroupVersionResource{webs}, children...) {
		informer := factory.ForResource(resource).Informer()
		w.stores[resource] = informer.GetStore()
		seen := func(o any) {
			object, ok := o.(*unstructured.Unstructured)
			if !ok {
				return
			}
			w.seen(child{resource, object.GetName()}, object)
			if resource == deployments {
				reports.seen(object)
			}
		}
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: seen, UpdateFunc: func(_, o any) { seen(o) }}); err !=
			nil {
			return nil, err
		}
	}
	factory.Start(ctx.Done())
	for resource, synced := range factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return nil, fmt.Errorf("cannot watch %s", resource.Resource)
		}
	}
	return w, nil
}

// get returns an object, or nil.
func (w *world) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	found, exists, err := w.stores[resource].GetByKey(w.namespace + "/" + name)
	if err != nil || !exists {
		return nil
	}
	object, _ := found.(*unstructured.Unstructured)
	return object
}

// settled reports whether a custom resource is deployed and has all its children, the Deployment with a text.
func (w *world) settled(name, text string) bool {
	web := w.get(webs, name)
	return web != nil && deployed(web) && w.get(services, name) != nil && w.get(accounts, name) != nil && w.carries(name, text)
}

// carries reports whether a custom resource's Deployment has a text.
func (w *world) carries(name, text string) bool {
	deployment := w.get(deployments, name)
	return deployment != nil && textOf(deployment) == text
}

// deployed reports whether a custom resource has the condition Deployed.
func deployed(web *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(web.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		condition, _ := c.(map[string]any)
		return condition["type"] == "Deployed" && condition["status"] == "True"
	})
}

// textOf reads the chart's only environment variable.
func textOf(deployment *unstructured.Unstructured) string {
	env, _, _ := unstructured.NestedSlice(container(deployment), "env")
	if len(env) == 0 {
		return ""
	}
	variable, _ := env[0].(map[string]any)
	text, _ := variable["value"].(string)
	return text
}

// container is a Deployment's only container.
func container(deployment *unstructured.Unstructured) map[string]any {
	list, _, _ := unstructured.NestedSlice(deployment.Object, "spec", "template", "spec", "containers")
	if len(list) == 0 {
		return nil
	}
	first, _ := list[0].(map[string]any)
	return first
}

// await waits until something holds for every name, at most for some time; it returns the names for which it does not.
func await(ctx context.Context, names []string, limit time.Duration, holds func(name string) bool) ([]string, error) {
	return awaitDown(ctx, names, limit, 0, holds)
}

// awaitDown waits until at most so many names are left for which something did not hold yet.
func awaitDown(ctx context.Context, names []string, limit time.Duration, left int, holds func(name string) bool) ([]string, error) {
	rest := slices.Clone(names)
	deadline := time.After(limit)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		rest = slices.DeleteFunc(rest, holds)
		if len(rest) <= left {
			return rest, nil
		}
		select {
		case <-ctx.Done():
			return rest, ctx.Err()
		case <-deadline:
			return rest, nil
		case <-ticker.C:
		}
	}
}

// inParallel calls a function for each name, eight at a time, and returns the first error.
func inParallel(names []string, call func(i int, name string) error) error {
	var group sync.WaitGroup
	slots := make(chan struct{}, 8)
	failures := make(chan error, len(names))
	for i, name := range names {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			if err := call(i, name); err != nil {
				failures <- err
			}
		})
	}
	group.Wait()
	close(failures)
	return <-failures
}
