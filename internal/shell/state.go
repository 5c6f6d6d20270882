// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/metrics"
)

// Tell has objects of a kind that has no Go type told as metrics; elected and selected as of metrics.Kind.
func Tell(mgr ctrl.Manager, kind schema.GroupVersionKind, elected <-chan struct{}, selected func(client.Object) bool) {
	metrics.Tell(metrics.Kind{GroupVersionKind: kind, List: ListOf(kind), Reader: mgr.GetCache(), Elected: elected, Selected: selected,
		State: State})
}

// ListOf is an empty list of a kind that has no Go type.
func ListOf(kind schema.GroupVersionKind) *unstructured.UnstructuredList {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	return list
}

// State is what the status of an unstructured object says.
func State(o client.Object) metrics.State {
	object, is := o.(*unstructured.Unstructured)
	if !is {
		return metrics.State{Observed: -1}
	}
	observed, found, err := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if !found || err != nil {
		observed = -1
	}
	return metrics.State{Observed: observed, Conditions: conditions.Read(object)}
}
