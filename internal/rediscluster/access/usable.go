// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Needed is what a pod is to be given: the field that names it, its name (empty: none is needed), the label that says that it may be, and
// its kind (empty: a Secret).
type Needed struct{ Field, Name, Label, Kind string }

// Kinds that a pod can be given.
const (
	KindSecret         = "Secret"
	KindClaim          = "PersistentVolumeClaim"
	KindServiceAccount = "ServiceAccount"
)

// Usable says, with a field path and a remedy, which of what is needed may not go into pods; empty when all may. Who may write the object
// that names it chooses where what is in it is shown, and may not read every Secret, mount every claim, or be every ServiceAccount. Only
// metadata is read, past every cache.
func (r Reader) Usable(ctx context.Context, namespace string, needed ...Needed) (problem string, err error) {
	for _, n := range needed {
		if n.Name == "" {
			continue
		}
		if n.Kind == "" {
			n.Kind = KindSecret
		}
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(n.Kind))
		err := r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: n.Name}, object)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("%s: there is no %s %s in this namespace", n.Field, n.Kind, n.Name), nil
		case apierrors.IsForbidden(err):
			return r.Forbidden(namespace), nil
		case err != nil:
			return "", fmt.Errorf("read %s %s: %w", n.Kind, n.Name, err)
		case object.Labels[n.Label] != "true":
			return fmt.Sprintf("%s: %s %s lacks the label %s: \"true\", which says that it may be used for this", n.Field, n.Kind, n.Name,
				n.Label), nil
		case n.Kind != KindClaim:
			continue
		case object.DeletionTimestamp != nil: // no pod that is made now gets it
			return fmt.Sprintf("%s: claim %s is being deleted, as soon as no pod uses it: name another one", n.Field, n.Name), nil
		}
		if whose, err := r.instances(ctx, object); whose != "" || err != nil {
			return fmt.Sprintf("%s: claim %s holds the data of instances of RedisCluster %s: name another one", n.Field, n.Name, whose), err
		}
	}
	return "", nil
}

// instances is the RedisCluster whose instances use a claim, whatever labels it has by now; empty: none.
func (r Reader) instances(ctx context.Context, claim *metav1.PartialObjectMetadata) (string, error) {
	if cluster := claim.Labels[v1alpha1.LabelCluster]; cluster != "" {
		return cluster, nil
	}
	var clusters v1alpha1.RedisClusterList
	if err := r.Client.List(ctx, &clusters, client.InNamespace(claim.Namespace)); err != nil {
		return "", fmt.Errorf("list the RedisClusters: %w", err)
	}
	for i := range clusters.Items {
		cluster := &clusters.Items[i]
		pod, own := strings.CutPrefix(claim.Name, "data-")
		if own {
			_, _, own = cluster.InstanceOf(pod)
		}
		named := slices.ContainsFunc(cluster.Spec.Pod, func(pod v1alpha1.PodTemplate) bool {
			return pod.Volumes != nil && pod.Volumes.PersistentVolumeClaimName == claim.Name
		})
		if own || named {
			return cluster.Name, nil
		}
	}
	return "", nil
}
