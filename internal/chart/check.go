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

// Allowed is what one CR may cause to exist.
type Allowed struct {
	// Namespace is the only one objects may be in.
	Namespace string
	// Kinds are the kinds that may be created, usually Chart.Kinds.
	Kinds []string
	// Namespaced tells whether a kind lives in namespaces; only such kinds may be created.
	Namespaced func(schema.GroupVersionKind) (bool, error)
}

// Check refuses a rendering with an object its CR may not create: one in another namespace, a cluster-scoped one, or one of a
// kind the chart does not write literally. It is what stands between a value that broke out of its quotes, in a chart that
// forgot them, and the cluster. Every refusal is an *Error; an error of Allowed.Namespaced is returned wrapped.
func Check(rendered *Rendered, allowed Allowed) error {
	var failed []error
	for _, object := range rendered.Objects {
		failed = append(failed, check(object, allowed))
	}
	for _, hook := range rendered.Hooks {
		failed = append(failed, check(hook.Object, allowed))
	}
	return errors.Join(failed...)
}

func check(object *unstructured.Unstructured, allowed Allowed) error {
	name := object.GetKind() + " " + object.GetName()
	refuse := func(problem, remedy string) error {
		return &Error{Stage: StageCheck, Path: name, Err: errors.New(problem), Remedy: remedy}
	}
	if !slices.Contains(allowed.Kinds, object.GetKind()) {
		return refuse("the chart does not write this kind literally", "write the kind into the template instead of taking it from a value")
	}
	if namespace := object.GetNamespace(); namespace != "" && namespace != allowed.Namespace {
		return refuse(fmt.Sprintf("it would be made in namespace %q", namespace),
			fmt.Sprintf("a resource makes objects in its own namespace only, %q", allowed.Namespace))
	}
	namespaced, err := allowed.Namespaced(object.GroupVersionKind())
	if err != nil {
		return fmt.Errorf("find the scope of %s: %w", name, err)
	}
	if !namespaced {
		return refuse("it is cluster-scoped", "a namespaced resource cannot make it; install it apart")
	}
	return nil
}
