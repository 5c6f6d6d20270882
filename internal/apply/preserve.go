// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ReplicasManager is the field manager that keeps the number of replicas when a chart stops rendering it.
const ReplicasManager = FieldManager + "-replicas"

// helmAnnotations are on every object that Helm made. Whoever wrote the first is Helm, whatever the name of its program.
var helmAnnotations = []string{"meta.helm.sh/release-name", "meta.helm.sh/release-namespace"}

// preserve prepares the object whose metadata is shown for an apply that would otherwise lose, or leave, more than it should.
// It makes no request in the usual case.
func (a *Applier) preserve(ctx context.Context, child child, shown *metav1.PartialObjectMetadata) error {
	own := ownFields(shown.GetManagedFields())
	if own == nil {
		folded, err := a.takeOver(ctx, RefOf(child.object))
		if err != nil {
			return fmt.Errorf("take over the fields that Helm made: %w", err)
		}
		own = folded
	}
	if slices.ContainsFunc(shown.GetManagedFields(), isSettled) {
		if err := a.foldSettled(ctx, RefOf(child.object)); err != nil {
			return fmt.Errorf("fold what was settled before: %w", err)
		}
	}
	if rendersReplicas(child.object) || !own.has("f:spec", "f:replicas") && !child.behind(shown) {
		return nil
	}
	if err := a.passReplicas(ctx, RefOf(child.object)); err != nil {
		return fmt.Errorf("keep the number of replicas: %w", err)
	}
	return nil
}

// takeOver makes the fields that Helm wrote (whichever program it was part of, by update or by apply) our own: what the chart no
// longer renders is then removed, and what it renders has one owner. Nothing but managedFields changes. It returns what is ours
// afterwards.
func (a *Applier) takeOver(ctx context.Context, ref Ref) (fieldSet, error) {
	live, err := a.live(ctx, ref)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	err = a.foldInto(ctx, live, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == "" && fieldsOf(entry).has("f:metadata", "f:annotations", "f:"+helmAnnotations[0])
	})
	return ownFields(live.GetManagedFields()), err
}

// foldSettled does what a former process had no more time for: what it settled belongs to our own entry, and goes when we apply it no more.
func (a *Applier) foldSettled(ctx context.Context, ref Ref) error {
	live, err := a.live(ctx, ref)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	return a.foldInto(ctx, live, isSettled)
}

// foldInto folds entries of an object into ours, if it still is of the version that was read.
func (a *Applier) foldInto(ctx context.Context, live client.Object, theirs func(metav1.ManagedFieldsEntry) bool) error {
	folded, err := fold(live.GetManagedFields(), theirs)
	if folded == nil || err != nil {
		return err
	}
	patch, err := json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": folded},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": live.GetResourceVersion()},
	})
	if err != nil {
		return err
	}
	return a.client.Patch(ctx, live, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldManager))
}

// passReplicas lets another field manager of ours own the present number of replicas. A chart stops rendering it when an autoscaler
// is to set it; a field that nobody owns any more would be removed, and the API server would put 1 into its place: an outage.
// No other field has both a writer who comes later and a default that stops what runs.
func (a *Applier) passReplicas(ctx context.Context, ref Ref) error {
	live, err := a.whole(ctx, ref)
	if err != nil {
		return client.IgnoreNotFound(err)
	}
	replicas, found, _ := unstructured.NestedFieldNoCopy(live.Object, "spec", "replicas") // a spec of another form has no such number
	if !found || !ownFields(live.GetManagedFields()).has("f:spec", "f:replicas") {
		return nil
	}
	kept := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": replicas}}}
	kept.SetGroupVersionKind(ref.GroupVersionKind)
	kept.SetNamespace(ref.Namespace)
	kept.SetName(ref.Name)
	_, err = a.sendAs(ctx, kept, live.GetUID(), "", client.FieldOwner(ReplicasManager))
	if apierrors.IsConflict(err) {
		return nil // somebody has set another number meanwhile, and owns it
	}
	return err
}

func rendersReplicas(object *unstructured.Unstructured) bool {
	_, found, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "replicas") // nothing is found in a spec of another form
	return found
}

// whole reads an object from the API server.
func (a *Applier) whole(ctx context.Context, ref Ref) (*unstructured.Unstructured, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(ref.GroupVersionKind)
	err := a.client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, object)
	return object, err
}
