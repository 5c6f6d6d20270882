// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// asked is a cache that notes which fields it was asked for, and which kinds it keeps an index of.
type asked struct {
	cache.Cache
	fields string
	kinds  map[string]client.IndexerFunc
}

func (a *asked) List(_ context.Context, _ client.ObjectList, options ...client.ListOption) error {
	o := client.ListOptions{}
	o.ApplyOptions(options)
	a.fields = ""
	if o.FieldSelector != nil {
		a.fields = o.FieldSelector.String()
	}
	return nil
}

func (a *asked) IndexField(_ context.Context, object client.Object, _ string, of client.IndexerFunc) error {
	a.kinds[object.GetObjectKind().GroupVersionKind().Kind] = of
	return nil
}

func TestChildrenAreFoundByTheirCluster(t *testing.T) {
	under := &asked{kinds: map[string]client.IndexerFunc{}}
	i, err := newIndexed(under)
	if err != nil {
		t.Fatal(err)
	}
	of := under.kinds["Service"]
	pod := &corev1.Pod{}
	if found := of(pod); len(found) != 0 {
		t.Errorf("a child of no cluster is found by %q", found)
	}
	pod.Labels = map[string]string{v1alpha1.LabelCluster: "cache"}
	if found := of(pod); len(found) != 1 || found[0] != "cache" {
		t.Errorf("a child of cache is found by %q", found)
	}
	for _, tt := range []struct {
		options []client.ListOption
		fields  string
	}{
		{[]client.ListOption{client.InNamespace("n"), client.MatchingLabels{v1alpha1.LabelCluster: "cache"}}, v1alpha1.LabelCluster + "=cache"},
		{[]client.ListOption{client.InNamespace("n"), client.MatchingLabels{v1alpha1.LabelGateway: "cache"}}, ""},
		{[]client.ListOption{client.InNamespace("n")}, ""},
	} {
		if err := i.List(t.Context(), &corev1.PodList{}, tt.options...); err != nil || under.fields != tt.fields {
			t.Errorf("%v: by %q, %v; want %q", tt.options, under.fields, err, tt.fields)
		}
	}
}
