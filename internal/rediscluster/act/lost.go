// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// forceDelete deletes the object of a pod without waiting for its kubelet, if it is still the one
// that was seen.
func (a *Actor) forceDelete(ctx context.Context, s Subject, step plan.ForceDelete) error {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Cluster.Namespace, Name: step.Pod}}
	return a.deleteSeen(ctx, pod, step.UID, client.GracePeriodSeconds(0))
}

// recreate deletes an instance's claim and then its pod. The claim goes when no pod uses it any
// more, and the StatefulSet makes both anew.
func (a *Actor) recreate(ctx context.Context, s Subject, step plan.Recreate) error {
	if step.Claim.Name != "" {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.Cluster.Namespace, Name: step.Claim.Name}}
		if err := a.deleteSeen(ctx, claim, step.Claim.UID); err != nil {
			return err
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.Cluster.Namespace, Name: step.Pod}}
	return a.deleteSeen(ctx, pod, step.UID)
}

// deleteSeen deletes an object if it is still the one that was seen.
func (a *Actor) deleteSeen(ctx context.Context, object client.Object, seen string, options ...client.DeleteOption) error {
	uid := types.UID(seen)
	err := a.Client.Delete(ctx, object, append(options, client.Preconditions{UID: &uid})...)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) { // gone, or another of the name by now
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", object.GetName(), err)
	}
	return nil
}
