// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// setServing sets the readiness gate of pods. A pod that is gone needs none.
func (a *Actor) setServing(ctx context.Context, s Subject, pods []string, status corev1.ConditionStatus, reason string) error {
	now := metav1.NewTime(a.Now())
	return each(ctx, pods, func(ctx context.Context, name string) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Cluster.Namespace, Name: name}}
		changed := pod.DeepCopy()
		changed.Status.Conditions = []corev1.PodCondition{
			{Type: v1alpha1.PodConditionServing, Status: status, Reason: reason, LastTransitionTime: now}}
		// Conditions are merged by type: the kubelet's own ones stay.
		if err := a.Client.Status().Patch(ctx, changed, client.StrategicMergeFrom(pod)); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("set condition %s of pod %s: %w", v1alpha1.PodConditionServing, name, err)
		}
		return nil
	})
}
