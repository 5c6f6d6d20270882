// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"maps"
	"strings"

	"github.com/operator-framework/operator-lib/handler"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// keepAnnotation with the value keepValue is Helm's way to say that an object outlives its release.
	keepAnnotation = "helm.sh/resource-policy"
	keepValue      = "keep"
)

// Stamp returns a copy of the object with our label, its namespace and its ownership: a controller reference where Kubernetes
// follows one (same namespace, or a cluster-scoped owner), else operator-lib's annotations. An object that is to be kept
// gets annotations too, because the garbage collector does not know that policy.
func Stamp(object *unstructured.Unstructured, owner client.Object, ownerGVK schema.GroupVersionKind,
	namespaced bool) *unstructured.Unstructured {
	stamped := object.DeepCopy()
	stamped.SetNamespace(namespaceOf(object, owner, namespaced))
	labels := stamped.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[ManagedByLabel] = ManagedByValue
	stamped.SetLabels(labels)
	if followed(owner, stamped) && !IsKept(stamped.GetAnnotations()) {
		stamped.SetOwnerReferences([]metav1.OwnerReference{{
			APIVersion: ownerGVK.GroupVersion().String(), Kind: ownerGVK.Kind, Name: owner.GetName(), UID: owner.GetUID(),
			Controller: ptr.To(true), BlockOwnerDeletion: ptr.To(true),
		}})
		return stamped
	}
	annotate(stamped, owner, ownerGVK)
	return stamped
}

// namespaceOf is the namespace that an object of an owner has.
func namespaceOf(object *unstructured.Unstructured, owner client.Object, namespaced bool) string {
	switch namespace := object.GetNamespace(); {
	case !namespaced:
		return ""
	case namespace == "":
		return owner.GetNamespace()
	default:
		return namespace
	}
}

// annotate names the owner of an object in operator-lib's annotations.
func annotate(object metav1.Object, owner client.Object, ownerGVK schema.GroupVersionKind) {
	annotations := maps.Clone(object.GetAnnotations())
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[handler.NamespacedNameAnnotation] = namespacedName(owner)
	annotations[handler.TypeAnnotation] = ownerGVK.GroupKind().String()
	object.SetAnnotations(annotations)
}

func followed(owner client.Object, object metav1.Object) bool {
	return owner.GetNamespace() == "" || owner.GetNamespace() == object.GetNamespace()
}

// IsKept reports whether an object outlives its release, by its annotations: Helm reads the value without regard to case and spaces.
func IsKept(annotations map[string]string) bool {
	return strings.EqualFold(strings.TrimSpace(annotations[keepAnnotation]), keepValue)
}

// OwnedBy returns nil when a live object belongs to owner, whose kind is set; a NotOursError otherwise.
func OwnedBy(owner client.Object, object metav1.Object) error {
	ref := Ref{Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()}
	if kinded, ok := object.(runtime.Object); ok {
		ref.GroupVersionKind = kinded.GetObjectKind().GroupVersionKind()
	}
	return ownedBy(owner, owner.GetObjectKind().GroupVersionKind(), ref, object)
}

// ownedBy returns nil when the object belongs to owner, a NotOursError otherwise.
func ownedBy(owner client.Object, ownerGVK schema.GroupVersionKind, ref Ref, object metav1.Object) error {
	controller := metav1.GetControllerOf(object)
	if controller != nil && controller.UID == owner.GetUID() {
		return nil
	}
	if controller != nil {
		return &NotOursError{Ref: ref, Owner: controller.Kind + " " + controller.Name}
	}
	annotations := object.GetAnnotations()
	ownerName, ownerType := annotations[handler.NamespacedNameAnnotation], annotations[handler.TypeAnnotation]
	if ownerName == namespacedName(owner) && ownerType == ownerGVK.GroupKind().String() {
		return nil
	}
	if ownerName != "" {
		return &NotOursError{Ref: ref, Owner: ownerType + " " + ownerName}
	}
	return &NotOursError{Ref: ref}
}

func namespacedName(owner client.Object) string {
	return fmt.Sprintf("%s/%s", owner.GetNamespace(), owner.GetName())
}
