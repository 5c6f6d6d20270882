// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recreate deletes an object whose change the API server has refused because of immutable fields, if the chart or the caller
// allows it. Its disappearance is an event; the Apply that follows makes the new one. An object that is kept by policy is not
// deleted for it.
func (a *Applier) recreate(ctx context.Context, owner client.Object, child child, refusal error) (Change, error) {
	change := Change{Ref: RefOf(child.object), Action: Deleted}
	if !child.recreate {
		return change, &ImmutableError{Ref: change.Ref, Err: refusal}
	}
	live, err := a.whole(ctx, change.Ref)
	if err != nil {
		return change, describe(err, "look at what cannot be changed in place:", change.Ref)
	}
	if err := child.ownedBy(owner, live); err != nil {
		return change, err
	}
	change.UID = live.GetUID()
	switch {
	case live.GetDeletionTimestamp() != nil:
		change.Action = Deleting
		return change, nil
	case IsKept(live.GetAnnotations()):
		return change,
			&ImmutableError{Ref: change.Ref, Err: fmt.Errorf("%w (it is not deleted because of %s: %s)", refusal, keepAnnotation, keepValue)}
	}
	asked, err := a.delete(ctx, metadataOnly(live), propagationOf(live, child.object))
	if err != nil {
		return change, describe(err, "delete what cannot be changed in place:", change.Ref)
	}
	if !asked {
		return change, fmt.Errorf("%s disappeared before it could be deleted; it is made anew next", change.Ref)
	}
	return change, nil
}

// propagationOf tells what becomes of an object's dependents. The pods of a StatefulSet stay if the new one selects them as
// well: it adopts them, and replaces them one by one if its template differs. In all other cases they go: nobody would own
// them (a Deployment and a DaemonSet are only ever refused a new selector), and a run is made anew with its pods.
func propagationOf(live, desired *unstructured.Unstructured) metav1.DeletionPropagation {
	statefulSet := schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	if live.GroupVersionKind().GroupKind() != statefulSet {
		return metav1.DeletePropagationBackground
	}
	had, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	wants, _, _ := unstructured.NestedMap(desired.Object, "spec", "selector")
	if !reflect.DeepEqual(had, wants) {
		return metav1.DeletePropagationBackground
	}
	return metav1.DeletePropagationOrphan
}

func metadataOnly(object *unstructured.Unstructured) *metav1.PartialObjectMetadata {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(object.GroupVersionKind())
	partial.SetNamespace(object.GetNamespace())
	partial.SetName(object.GetName())
	partial.SetUID(object.GetUID())
	return partial
}
