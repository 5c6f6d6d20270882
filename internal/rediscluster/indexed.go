// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// indexed finds the children of one cluster in a cache without a look at those of all others in its namespace.
type indexed struct{ cache.Cache }

// newIndexed has a cache keep that index of all kinds whose objects are looked for by the label of their cluster.
func newIndexed(children cache.Cache) (indexed, error) {
	kinds := []client.Object{&appsv1.StatefulSet{}, &corev1.Pod{}, &corev1.PersistentVolumeClaim{}, &batchv1.Job{}}
	for _, kind := range optional {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		kinds = append(kinds, object)
	}
	for _, kind := range kinds {
		err := children.IndexField(context.Background(), kind, v1alpha1.LabelCluster, func(object client.Object) []string {
			if name, is := object.GetLabels()[v1alpha1.LabelCluster]; is {
				return []string{name}
			}
			return nil
		})
		if err != nil {
			return indexed{}, fmt.Errorf("index %T by cluster: %w", kind, err)
		}
	}
	return indexed{children}, nil
}

// List reads by the index when one cluster is asked for by its label.
func (i indexed) List(ctx context.Context, into client.ObjectList, options ...client.ListOption) error {
	asked := client.ListOptions{}
	asked.ApplyOptions(options)
	if asked.LabelSelector != nil && asked.FieldSelector == nil {
		if name, one := asked.LabelSelector.RequiresExactMatch(v1alpha1.LabelCluster); one {
			options = append(options, client.MatchingFields{v1alpha1.LabelCluster: name})
		}
	}
	return i.Cache.List(ctx, into, options...)
}
