// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// claims reads the instances' claims, which StatefulSets name after them: a claim of another
// name is somebody else's, whatever its labels say.
func (o *Observer) claims(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) error {
	if cluster.Spec.Claim() == nil {
		return nil
	}
	var claims corev1.PersistentVolumeClaimList
	if err := o.Children.List(ctx, &claims, onlyRead(cluster)...); err != nil {
		return fmt.Errorf("list the claims: %w", err)
	}
	for i := range claims.Items {
		claim := &claims.Items[i]
		pod, named := strings.CutPrefix(claim.Name, "data-")
		if shard, ordinal, ours := cluster.InstanceOf(pod); named && ours {
			s.Claims = append(s.Claims, snapshot.Claim{Name: claim.Name, UID: string(claim.UID), Shard: shard, Ordinal: ordinal,
				Requested: claim.Spec.Resources.Requests.Storage().Value(), Terminating: claim.DeletionTimestamp != nil,
				Pending:   claim.Status.Phase == corev1.ClaimPending,
				ToRestore: claim.Annotations[v1alpha1.AnnotationRestoredFor] == string(cluster.UID), Job: jobOf(claim)})
		}
	}
	slices.SortFunc(s.Claims, func(a, b snapshot.Claim) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// jobOf is the UID of the Job that a claim goes with; empty: it stays.
func jobOf(claim *corev1.PersistentVolumeClaim) string {
	for _, owner := range claim.OwnerReferences {
		if owner.Kind == "Job" {
			return string(owner.UID)
		}
	}
	return ""
}

// claimSize is what the claim template of a StatefulSet requests; empty when it has none.
func claimSize(set *appsv1.StatefulSet) string {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return ""
	}
	return set.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
}
