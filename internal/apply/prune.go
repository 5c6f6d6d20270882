// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Prune deletes the objects of previous that are not in keep, in reverse order, in the background (their dependents follow).
// Each is read from the API server first: an object is only deleted as the very one that was read (UID precondition), and only
// if it carries owner's ownership. What is gone already (perhaps with its whole kind), is being deleted, or is not ours is left
// out of the change set. Every object is tried; the errors are joined.
//
// An object annotated helm.sh/resource-policy: keep stays, and so do its label and ownership annotations, as Helm's do: an
// owner of the same kind, namespace and name finds its data again, and no other owner may take them. Only a reference to the
// owner, which would let the garbage collector delete it, is replaced by the annotations.
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
		deleted, err := a.prune(ctx, owner, gvk, ref)
		var foreign *NotOursError
		if err != nil && !errors.As(err, &foreign) {
			failed = append(failed, describe(err, "delete", ref))
			continue
		}
		a.memory.drop(owner.GetUID(), ref)
		if deleted.UID != "" {
			changes = append(changes, Change{Ref: deleted, Action: Deleted})
		}
	}
	return changes, errors.Join(failed...)
}

// Gone returns those of refs that still exist and have to go: they are the owner's, are not kept by policy, and are not others
// that have taken the name of one whose UID the Ref gives. It reads each from the API server. An error means that nothing is
// known of one of them; remaining is not complete then.
func (a *Applier) Gone(ctx context.Context, owner client.Object, refs []Ref) (remaining []Ref, err error) {
	gvk, err := a.client.GroupVersionKindFor(owner)
	if err != nil {
		return nil, fmt.Errorf("find the kind of the owner %s: %w", owner.GetName(), err)
	}
	for _, ref := range refs {
		live, err := a.live(ctx, ref)
		if isAbsent(err) {
			continue
		}
		if err != nil {
			return remaining, describe(err, "look whether it is gone:", ref)
		}
		replaced := ref.UID != "" && ref.UID != live.GetUID()
		if replaced || ownedBy(owner, gvk, ref, live) != nil || IsKept(live.GetAnnotations()) && live.GetDeletionTimestamp() == nil {
			continue
		}
		ref.UID = live.GetUID()
		remaining = append(remaining, ref)
	}
	return remaining, nil
}

// prune deletes one object of owner, or lets it be if it is kept. The Ref it returns has a UID if a deletion was asked for.
func (a *Applier) prune(ctx context.Context, owner client.Object, gvk schema.GroupVersionKind, ref Ref) (Ref, error) {
	ref.UID = ""
	live, err := a.live(ctx, ref)
	if isAbsent(err) {
		return ref, nil
	}
	if err != nil {
		return ref, err
	}
	if err := ownedBy(owner, gvk, ref, live); err != nil {
		return ref, err
	}
	if live.GetDeletionTimestamp() != nil {
		return ref, nil
	}
	if IsKept(live.GetAnnotations()) {
		return ref, a.outlive(ctx, owner, gvk, live)
	}
	asked, err := a.delete(ctx, live, metav1.DeletePropagationBackground)
	if asked {
		ref.UID = live.GetUID()
	}
	return ref, err
}

// delete asks for the deletion of the very object that was read. Asked is false if it is gone, or replaced by another object,
// which is not ours to delete.
func (a *Applier) delete(ctx context.Context, live *metav1.PartialObjectMetadata, propagation metav1.DeletionPropagation) (asked bool,
	err error) {
	err = a.client.Delete(ctx, live, client.Preconditions{UID: ptr.To(live.GetUID())}, client.PropagationPolicy(propagation))
	if apierrors.IsConflict(err) && a.replaced(ctx, live) || apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// replaced reports whether an object that was read is gone by now, or another one has its name. A conflict alone does not say so:
// an admission webhook may answer with one, too.
func (a *Applier) replaced(ctx context.Context, was *metav1.PartialObjectMetadata) bool {
	now, err := a.live(ctx, Ref{GroupVersionKind: was.GroupVersionKind(), Namespace: was.GetNamespace(), Name: was.GetName()})
	return isAbsent(err) || err == nil && now.GetUID() != was.GetUID()
}

// outlive replaces an object's reference to its owner by the annotations that name it.
func (a *Applier) outlive(ctx context.Context, owner client.Object, gvk schema.GroupVersionKind, live *metav1.PartialObjectMetadata) error {
	references :=
		slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(r metav1.OwnerReference) bool { return r.UID == owner.GetUID() })
	if len(references) == len(live.GetOwnerReferences()) {
		return nil
	}
	freed := live.DeepCopy()
	freed.SetOwnerReferences(references)
	annotate(freed, owner, gvk)
	return a.client.Patch(ctx, freed, client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{}), client.FieldOwner(FieldManager))
}

// isAbsent tells from the answer to a read that an object does not exist: it is gone, perhaps with its whole kind.
func isAbsent(err error) bool { return apierrors.IsNotFound(err) || isUnknownKind(err) }
