// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// addFinalizer lets deletion follow the policy.
func (a *Actor) addFinalizer(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	return a.patchFinalizers(ctx, cluster, controllerutil.AddFinalizer)
}

// removeFinalizer lets the object go. Owner references do the rest. The cache may not show
// yet what was made last, so the API server is asked before where that would be deleted too
// late, or at all.
func (a *Actor) removeFinalizer(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	if cluster.DeletionPolicy() != v1alpha1.DeletionBackground {
		sets, err := a.statefulSets(ctx, cluster)
		if err != nil {
			return err
		}
		if len(sets) > 0 {
			return fmt.Errorf("%d StatefulSets still exist", len(sets))
		}
	}
	if err := a.deleteRestored(ctx, cluster); err != nil {
		return err
	}
	return client.IgnoreNotFound(a.patchFinalizers(ctx, cluster, controllerutil.RemoveFinalizer))
}

// deleteRestored deletes the claims that were filled for the cluster to begin with, and that no StatefulSet has taken over yet, if
// claims are to go with the
// cluster: nobody else would. Until all shards are restored they go with their Jobs.
func (a *Actor) deleteRestored(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	storage := cluster.Spec.Storage
	if cluster.Spec.Bootstrap == nil || storage == nil || storage.Retain != v1alpha1.RetainDelete ||
		cluster.DeletionPolicy() == v1alpha1.DeletionOrphan {
		return nil
	}
	var claims corev1.PersistentVolumeClaimList
	if err := a.Client.List(ctx, &claims, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		return fmt.Errorf("list the claims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		ours := claim.Annotations[v1alpha1.AnnotationRestoredFor] == string(cluster.UID) && restoredInto(cluster, claim.Name)
		if !ours || len(claim.OwnerReferences) > 0 || claim.DeletionTimestamp != nil {
			continue
		}
		err := a.Client.Delete(ctx, claim, client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("delete claim %s: %w", claim.Name, err)
		}
	}
	return nil
}

// restoredInto reports whether a claim has the name of one that is restored into: labels and annotations are anybody's to write.
func restoredInto(cluster *v1alpha1.RedisCluster, claim string) bool {
	const prefix = "data-"
	shard, _, ok := cluster.InstanceOf(strings.TrimPrefix(claim, prefix))
	return ok && claim == cluster.ClaimName(shard, 0)
}

func (a *Actor) patchFinalizers(ctx context.Context, cluster *v1alpha1.RedisCluster, change func(client.Object, string) bool) error {
	changed := cluster.DeepCopy()
	if !change(changed, v1alpha1.Finalizer) {
		return nil
	}
	// The list is replaced as a whole, so the patch must fail when someone else wrote.
	patch := client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{})
	if err := a.Client.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("write the finalizers: %w", err)
	}
	cluster.Finalizers, cluster.ResourceVersion = changed.Finalizers, changed.ResourceVersion
	return nil
}

// deleteChildren deletes the StatefulSets; the API server's collector deletes their pods,
// and claims as their retention policy says. Other children go with the owner.
func (a *Actor) deleteChildren(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	sets, err := a.statefulSets(ctx, cluster)
	if err != nil {
		return err
	}
	for i := range sets {
		if err := a.deleteSet(ctx, &sets[i], nil); err != nil {
			return err
		}
	}
	return nil
}

// removeShards deletes the StatefulSets of shards that hold nothing, as deleteChildren does, if they are still the ones that were
// seen: that they hold nothing is not true any more of one that has instances in the endpoints again, when this write comes late.
func (a *Actor) removeShards(ctx context.Context, cluster *v1alpha1.RedisCluster, step plan.RemoveShards) error {
	sets, err := a.statefulSets(ctx, cluster)
	if err != nil {
		return err
	}
	for i := range sets {
		shard, _ := cluster.ShardOf(sets[i].Name)
		if version, leaves := step.Shards[shard]; leaves {
			if err := a.deleteSet(ctx, &sets[i], &version); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteSet deletes a StatefulSet that is not being deleted yet, of a version if one is given.
func (a *Actor) deleteSet(ctx context.Context, set *appsv1.StatefulSet, version *string) error {
	if set.DeletionTimestamp != nil {
		return nil
	}
	err := a.Client.Delete(ctx, set, client.PropagationPolicy(metav1.DeletePropagationForeground),
		client.Preconditions{UID: ptr.To(set.UID), ResourceVersion: version})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete StatefulSet %s: %w", set.Name, err)
	}
	return nil
}

// statefulSets are those of shards that the cluster owns, from the API server. (What else names
// it as its owner goes with it.)
func (a *Actor) statefulSets(ctx context.Context, cluster *v1alpha1.RedisCluster) ([]appsv1.StatefulSet, error) {
	var sets appsv1.StatefulSetList
	if err := a.Client.List(ctx, &sets, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		return nil, fmt.Errorf("list the StatefulSets: %w", err)
	}
	return slices.DeleteFunc(sets.Items, func(set appsv1.StatefulSet) bool {
		_, named := cluster.ShardOf(set.Name)
		return !named || !ownedBy(cluster, &set)
	}), nil
}

// orphanChildren takes the owner off every child.
func (a *Actor) orphanChildren(ctx context.Context, cluster *v1alpha1.RedisCluster) error {
	lists := []client.ObjectList{&corev1.ServiceList{}, &corev1.ConfigMapList{}, &policyv1.PodDisruptionBudgetList{},
		&networkingv1.NetworkPolicyList{}, &appsv1.DeploymentList{}}
	var children []client.Object
	if cluster.AuthEnabled() {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}}
		if err := a.Client.Get(ctx, client.ObjectKeyFromObject(secret), secret); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read the Secret of the password: %w", err)
		}
		children = append(children, secret) // one that is not there has no owner
	}
	if cluster.Status.Certificate != "" { // it is renewed on
		certificate := &unstructured.Unstructured{}
		certificate.SetGroupVersionKind(values.Certificate)
		switch err := a.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: cluster.CertificateName()}, certificate); {
		case err == nil:
			children = append(children, certificate)
		case !apierrors.IsNotFound(err) && !meta.IsNoMatchError(err):
			return fmt.Errorf("read Certificate %s: %w", cluster.CertificateName(), err)
		}
	}
	// StatefulSets last: as long as one names its owner, the step is not done.
	for _, list := range append(lists, &appsv1.StatefulSetList{}) {
		if err := a.Client.List(ctx, list, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
			return fmt.Errorf("list children: %w", err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return fmt.Errorf("read the list of children: %w", err)
		}
		for _, item := range items {
			if child := item.(client.Object); child.GetName() != cluster.ArchiveWorkload() { // nobody would end that
				children = append(children, child)
			}
		}
	}
	for _, child := range children {
		if err := a.disown(ctx, cluster, child); err != nil {
			return err
		}
	}
	return nil
}

func (a *Actor) disown(ctx context.Context, cluster *v1alpha1.RedisCluster, child client.Object) error {
	if !ownedBy(cluster, child) {
		return nil
	}
	patch := client.MergeFromWithOptions(child.DeepCopyObject().(client.Object), client.MergeFromWithOptimisticLock{})
	child.SetOwnerReferences(slices.DeleteFunc(child.GetOwnerReferences(),
		func(owner metav1.OwnerReference) bool { return owner.UID == cluster.UID }))
	if err := a.Client.Patch(ctx, child, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("take the owner off %s: %w", child.GetName(), err)
	}
	return nil
}

func ownedBy(cluster *v1alpha1.RedisCluster, child client.Object) bool {
	owner := metav1.GetControllerOf(child)
	return owner != nil && owner.UID == cluster.UID
}
