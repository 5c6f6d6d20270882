// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
)

// defaultID is that of instances whose IDs nobody chooses; none, where the platform does, may take its place and the other way round.
const defaultID int64 = 999

// otherUser says why StatefulSets cannot be as rendered: their instances would run as another user, who could not write the files that
// are there. nil: they can be. Admission says so before, and may have been away. What somebody else wrote into a StatefulSet is no reason:
// that is put back.
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
		if changesUser(set, &rendered) {
			return fmt.Errorf("spec.pod[0].overlay.securityContext: runAsUser, runAsGroup and fsGroup cannot change, and those of StatefulSet %s "+
				"are others: put them back, or make a new RedisCluster and copy the data", set.Name), nil
		}
	}
	return nil, nil
}

// changesUser reports whether the IDs that the operator gave the pods of a StatefulSet are others than those rendered.
func changesUser(set *appsv1.StatefulSet, rendered *corev1.PodSecurityContext) bool {
	was := set.Spec.Template.Spec.SecurityContext
	ids := map[string][2]*int64{
		"runAsUser": {was.RunAsUser, rendered.RunAsUser}, "runAsGroup": {was.RunAsGroup, rendered.RunAsGroup},
		"fsGroup": {was.FSGroup, rendered.FSGroup},
	}
	owned, known := apply.Owned(set, "spec", "template", "spec", "securityContext")
	gaveAny := slices.ContainsFunc(owned, func(name string) bool { _, isID := ids[name]; return isID })
	for name, id := range ids {
		if ptr.Deref(id[0], defaultID) == ptr.Deref(id[1], defaultID) {
			continue
		}
		if was, theirs := id[0], known && !slices.Contains(owned, name); theirs && (was != nil || gaveAny) {
			continue // somebody wrote another, or removed it: if we give none, none is what we gave
		}
		return true
	}
	return false
}
