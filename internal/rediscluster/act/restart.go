// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// restart deletes a pod, if it is still the one that was seen. It asks for an eviction, so
// that a disruption budget counts this restart together with those that drains of nodes
// bring about at the same moment.
func (a *Actor) restart(ctx context.Context, s Subject, step plan.Restart) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Cluster.Namespace, Name: step.Pod}}
	if step.Failing {
		return a.deleteSeen(ctx, pod, step.UID)
	}
	uid := types.UID(step.UID)
	eviction := &policyv1.Eviction{
		ObjectMeta: pod.ObjectMeta, DeleteOptions: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}}
	err := a.Client.SubResource("eviction").Create(ctx, pod, eviction)
	switch {
	case err == nil, apierrors.IsNotFound(err), apierrors.IsConflict(err): // gone, or another pod of the name by now
		return nil
	case apierrors.IsTooManyRequests(err):
		return fmt.Errorf("restart %s: a PodDisruptionBudget does not allow it now: %w", step.Pod, err)
	default:
		return fmt.Errorf("restart %s: %w", step.Pod, err)
	}
}
