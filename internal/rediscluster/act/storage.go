// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// expandPVCs asks for more storage in claims that exist.
func (a *Actor) expandPVCs(ctx context.Context, s Subject, step plan.ExpandPVCs) error {
	return each(ctx, step.Claims, func(ctx context.Context, name string) error {
		var claim corev1.PersistentVolumeClaim
		if err := a.Client.Get(ctx, client.ObjectKey{Namespace: s.Cluster.Namespace, Name: name}, &claim); err != nil {
			return fmt.Errorf("read claim %s: %w", name, err)
		}
		before := claim.DeepCopy()
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = *resource.NewQuantity(step.Bytes, resource.BinarySI)
		err := a.Client.Patch(ctx, &claim, client.MergeFrom(before))
		if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) {
			why := fmt.Sprintf(
				"claim %s cannot be expanded: %v; claims are expanded only in a storage class with allowVolumeExpansion: true: allow it there, or ",
				name, err)
			if step.ByData {
				return &NotGrownError{Message: "spec.storage.maxSize: " + why + "remove maxSize"}
			}
			return &StallError{Cause: v1alpha1.ReasonCannotExpand,
				Message: fmt.Sprintf("spec.storage.size: %sset the size back to %s", why, before.Spec.Resources.Requests.Storage())}
		}
		if err != nil {
			return fmt.Errorf("expand claim %s: %w", name, err)
		}
		return nil
	})
}

// NotGrownError means that claims cannot be expanded for the data until somebody changes something. All else goes on.
type NotGrownError struct {
	// Message says what is wrong and what helps.
	Message string
}

func (e *NotGrownError) Error() string { return e.Message }
