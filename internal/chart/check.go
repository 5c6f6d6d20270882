// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// AllNamespaces in Allowed.Namespaces allows every namespace.
const AllNamespaces = "*"

// Allowed is what one CR may cause to exist.
type Allowed struct {
	// Namespace is the CR's own. An object of a namespaced kind that names none is in it.
	Namespace string
	// Namespaces are further ones; AllNamespaces allows all.
	Namespaces []string
	// ClusterScoped allows objects that live in no namespace.
	ClusterScoped bool
	// Kinds are all the kinds that may be created, usually Chart.Kinds and those the watch adds.
	Kinds []string
	// Namespaced reports whether a kind lives in namespaces.
	Namespaced func(schema.GroupVersionKind) (bool, error)
}

// Check refuses a rendering with an object its CR may not create: one of a kind the chart does not write, a cluster-scoped one
// or one in another namespace where that is not allowed. Hooks count, but for Helm's test hooks, which are never run. Every
// refusal is an *Error; an error of Allowed.Namespaced is returned wrapped.
func Check(rendered *Rendered, allowed Allowed) error {
	var failed []error
	for _, object := range rendered.Objects {
		failed = append(failed, check(object, allowed))
	}
	for _, hook := range rendered.Hooks {
		if !hook.isTest() {
			failed = append(failed, check(hook.Object, allowed))
		}
	}
	return errors.Join(failed...)
}

func check(object *unstructured.Unstructured, allowed Allowed) error {
	name := object.GetKind() + " " + object.GetName()
	refuse := func(problem, remedy string) error {
		return &Error{Stage: StageCheck, Path: name, Err: errors.New(problem), Remedy: remedy}
	}
	if !slices.Contains(allowed.Kinds, object.GetKind()) {
		return refuse("the chart does not write this kind literally",
			"write the kind into the template instead of taking it from a value, or name it in allow.kinds of watches.yaml")
	}
	namespaced, err := allowed.Namespaced(object.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("find the scope of %s: %w", name, err)
	}
	if !namespaced {
		if !allowed.ClusterScoped {
			return refuse("it is cluster-scoped", "install it apart, or set allow.clusterScoped in watches.yaml")
		}
		return nil
	}
	namespace := object.GetNamespace()
	if namespace == "" || namespace == allowed.Namespace || slices.Contains(allowed.Namespaces, namespace) ||
		slices.Contains(allowed.Namespaces, AllNamespaces) {
		return nil
	}
	return refuse(fmt.Sprintf("it would be made in namespace %q", namespace),
		fmt.Sprintf("a resource makes objects in its own namespace, %q; name others in allow.namespaces of watches.yaml", allowed.Namespace))
}
