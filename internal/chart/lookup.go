// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic" //nolint:depguard // the interface Helm's engine asks for; nothing here talks to a server
)

// Lookup answers the template function of that name: the object, or, when name is empty, the list of the objects of a kind
// (with "items"). Namespace is empty for cluster-scoped kinds and for all namespaces. Nil and no error mean there is none. It
// is up to the Lookup to bound what a chart may see.
type Lookup func(apiVersion, kind, namespace, name string) (map[string]any, error)

// lookups hands a Lookup to Helm's engine, which wants a dynamic client, and keeps the first error: the engine flattens it to
// text.
type lookups struct {
	ask    Lookup
	failed error
}

func (l *lookups) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return lookupClient{lookups: l, apiVersion: apiVersion, kind: kind}, true, nil
}

func (l *lookups) find(apiVersion, kind, namespace, name string) (map[string]any, error) {
	found, err := l.ask(apiVersion, kind, namespace, name)
	if err != nil && l.failed == nil {
		l.failed = fmt.Errorf("look up %s %s/%s: %w", kind, namespace, name, err)
	}
	return found, err
}

var errReadOnly = errors.New("templates only look objects up")

// lookupClient is a dynamic client that can Get and List. The interface it embeds is nil: Helm calls nothing else.
type lookupClient struct {
	dynamic.NamespaceableResourceInterface
	lookups                     *lookups
	apiVersion, kind, namespace string
}

func (c lookupClient) Namespace(namespace string) dynamic.ResourceInterface {
	c.namespace = namespace
	return c
}

func (c lookupClient) Get(_ context.Context, name string, _ metav1.GetOptions, subresources ...string) (*unstructured.Unstructured, error) {
	if len(subresources) > 0 {
		return nil, errReadOnly
	}
	found, err := c.lookups.find(c.apiVersion, c.kind, c.namespace, name)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, c.notFound(name)
	}
	return &unstructured.Unstructured{Object: found}, nil
}

func (c lookupClient) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	found, err := c.lookups.find(c.apiVersion, c.kind, c.namespace, "")
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, c.notFound("")
	}
	list := &unstructured.UnstructuredList{}
	list.SetUnstructuredContent(found)
	return list, nil
}

func (c lookupClient) notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: c.kind}, name)
}
