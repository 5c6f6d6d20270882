// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/watches"
)

// LookupFor reads for the template function lookup; the reader must not be a cache. A resource's chart sees what the resource may
// have objects in: its own namespace, and what the watch adds.
func LookupFor(ctx context.Context, reader client.Reader, cr *unstructured.Unstructured, allow watches.Allow, namespaced func(schema.GroupVersionKind) (bool, error)) chart.Lookup {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil {
			return nil, err
		}
		gvk := gv.WithKind(kind)
		inNamespace, err := namespaced(gvk)
		if err != nil {
			return nil, fmt.Errorf("find the scope of %s: %w", gvk, err)
		}
		if err := mayLookUp(cr, allow, inNamespace, namespace); err != nil {
			return nil, &chart.Error{Stage: chart.StageTemplate, Path: fmt.Sprintf("lookup %q %q %q %q", apiVersion, kind, namespace, name), Err: err,
				Remedy: "let the watch of this kind have it: allow.namespaces, or allow.clusterScoped"}
		}
		if name == "" {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(gv.WithKind(kind + "List"))
			if err := reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return nil, fmt.Errorf("list %s: %w", kind, err)
			}
			return list.UnstructuredContent(), nil
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(gvk)
		err = reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s %s: %w", kind, name, err)
		}
		return object.Object, nil
	}
}

func mayLookUp(cr *unstructured.Unstructured, allow watches.Allow, namespaced bool, namespace string) error {
	switch {
	case !namespaced && !allow.ClusterScoped:
		return errors.New("the kind is cluster-scoped")
	case namespaced && namespace == "" && !mayReach(cr, allow, "*"):
		return errors.New("it reads all namespaces")
	case namespaced && namespace != "" && !mayReach(cr, allow, namespace):
		return fmt.Errorf("it reads namespace %q", namespace)
	}
	return nil
}
