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
	for _, object := range rendered.Made() {
		failed = append(failed, check(object, allowed))
	}
	return errors.Join(failed...)
}

// Lacks returns what of Namespaces, ClusterScoped and Kinds would have to be allowed besides, so that an object may be created.
func (a Allowed) Lacks(object *unstructured.Unstructured) (more Allowed, err error) {
	if !slices.Contains(a.Kinds, object.GetKind()) {
		more.Kinds = []string{object.GetKind()}
	}
	namespaced, err := a.Namespaced(object.GroupVersionKind())
	if err != nil {
		return more, fmt.Errorf("find the scope of %s %s: %w", object.GetKind(), object.GetName(), err)
	}
	switch namespace := object.GetNamespace(); {
	case !namespaced:
		more.ClusterScoped = !a.ClusterScoped
	case namespace != "" && namespace != a.Namespace && !slices.Contains(a.Namespaces, namespace) &&
		!slices.Contains(a.Namespaces, AllNamespaces):
		more.Namespaces = []string{namespace}
	}
	return more, nil
}

func check(object *unstructured.Unstructured, allowed Allowed) error {
	name := object.GetKind() + " " + object.GetName()
	refuse := func(problem, remedy string) error {
		return &Error{Stage: StageCheck, Path: name, Err: errors.New(problem), Remedy: remedy}
	}
	lacks, err := allowed.Lacks(object)
	switch {
	case len(lacks.Kinds) > 0:
		return refuse("the chart does not write this kind literally",
			"write the kind into the template instead of taking it from a value, or name it in allow.kinds of watches.yaml")
	case lacks.ClusterScoped:
		return refuse("it is cluster-scoped", "install it apart, or set allow.clusterScoped in watches.yaml")
	case len(lacks.Namespaces) > 0:
		return refuse(fmt.Sprintf("it would be made in namespace %q", lacks.Namespaces[0]),
			fmt.Sprintf("a resource makes objects in its own namespace, %q; name others in allow.namespaces of watches.yaml", allowed.Namespace))
	}
	return err
}
