// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// endSwitchover takes away the request that was decided on, and no other one that was made since.
func (a *Actor) endSwitchover(ctx context.Context, cluster *v1alpha1.RedisCluster, step plan.EndSwitchover) error {
	if cluster.Annotations[v1alpha1.AnnotationSwitchover] != step.Instance {
		return nil
	}
	changed := cluster.DeepCopy()
	delete(changed.Annotations, v1alpha1.AnnotationSwitchover)
	patch := client.MergeFromWithOptions(cluster, client.MergeFromWithOptimisticLock{})
	if err := a.Client.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("take the annotation %s away: %w", v1alpha1.AnnotationSwitchover, err)
	}
	cluster.Annotations, cluster.ResourceVersion = changed.Annotations, changed.ResourceVersion
	return nil
}
