// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prune deletes the objects of previous that are not in keep, in reverse order, in the background (their dependents follow).
// Each is read from the API server first: an object is only deleted as the very one that was read (UID precondition), only
// if it carries owner's ownership, and not if it is annotated helm.sh/resource-policy: keep. What is gone already, is being
// deleted, or is not ours is left out of the change set.
func (a *Applier) Prune(ctx context.Context, owner client.Object, previous, keep []Ref) (ChangeSet, error) {
	gvk, err := a.client.GroupVersionKindFor(owner)
	if err != nil {
		return nil, fmt.Errorf("find the kind of the owner %s: %w", owner.GetName(), err)
	}
	var changes ChangeSet
	var failed []error
	for _, ref := range slices.Backward(previous) {
		if slices.ContainsFunc(keep, ref.Same) {
			continue
		}
		deleted, err := a.remove(ctx, owner, gvk, ref)
		var foreign *NotOursError
		switch {
		case errors.As(err, &foreign):
			a.memory.drop(owner.GetUID(), keyOf(ref))
		case err != nil:
			failed = append(failed, fmt.Errorf("delete %s: %w", ref, err))
		default:
			a.memory.drop(owner.GetUID(), keyOf(ref))
			if deleted.UID != "" {
				changes = append(changes, Change{Ref: deleted, Action: Deleted})
			}
		}
	}
	return changes, errors.Join(failed...)
}

// remove deletes one object of owner. The Ref it returns has a UID if a deletion was asked for.
func (a *Applier) remove(ctx context.Context, owner client.Object, gvk schema.GroupVersionKind, ref Ref) (Ref, error) {
	ref.UID = ""
	live, err := a.live(ctx, ref)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return ref, nil // gone, perhaps with its whole kind
	}
	if err != nil {
		return ref, err
	}
	if err := ownedBy(owner, gvk, ref, live); err != nil {
		return ref, err
	}
	if live.GetDeletionTimestamp() != nil || isKept(live.GetAnnotations()) {
		return ref, nil
	}
	err = a.client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID())},
		client.PropagationPolicy(metav1.DeletePropagationBackground))
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return ref, nil // gone, or replaced by another object, which is not ours to delete
	}
	if err != nil {
		return ref, err
	}
	ref.UID = live.GetUID()
	return ref, nil
}
