// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// defaultID is that of instances whose IDs nobody chooses; none, where the platform does, may take its place and the other way round.
const defaultID int64 = 999

// otherUser says why StatefulSets cannot be as rendered: their instances would run as another user, who could not write the files that
// are there. nil: they can be. Admission says so before, and may have been away.
func (c *children) otherUser(ctx context.Context, cluster *v1alpha1.RedisCluster, objects []*unstructured.Unstructured) (why, err error) {
	var sets appsv1.StatefulSetList
	if err := c.observer.Children.List(ctx, &sets, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		return nil, fmt.Errorf("list the StatefulSets: %w", err)
	}
	there := map[string]*appsv1.StatefulSet{}
	for i := range sets.Items {
		if set := &sets.Items[i]; metav1.IsControlledBy(set, cluster) {
			there[set.Name] = set
		}
	}
	for _, object := range objects {
		set := there[object.GetName()]
		if object.GetKind() != statefulSet || set == nil || set.Spec.Template.Spec.SecurityContext == nil {
			continue
		}
		var rendered corev1.PodSecurityContext
		asRendered, _, err := unstructured.NestedMap(object.Object, "spec", "template", "spec", "securityContext")
		if err == nil {
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(asRendered, &rendered)
		}
		if err != nil {
			return nil, fmt.Errorf("read the security context of StatefulSet %s: %w", set.Name, err)
		}
		was := set.Spec.Template.Spec.SecurityContext
		for _, id := range [][2]*int64{{was.RunAsUser, rendered.RunAsUser}, {was.RunAsGroup, rendered.RunAsGroup},
			{was.FSGroup, rendered.FSGroup}} {
			if was, is := ptr.Deref(id[0], defaultID), ptr.Deref(id[1], defaultID); was != is {
				return fmt.Errorf("spec.pod[0].overlay.securityContext: runAsUser, runAsGroup and fsGroup cannot change, and those of StatefulSet %s "+
					"are others: put them back, or make a new RedisCluster and copy the data", set.Name), nil
			}
		}
	}
	return nil, nil
}
