// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
)

const (
	// Finalizer is how helm-operator-plugins spells it; LegacyFinalizer is helm-operator's. Neither is put on anything: children
	// and history carry owner references, so Kubernetes removes them, also while no operator runs. Both are honoured on
	// resources that carry them from before.
	Finalizer       = "helm.sdk.operatorframework.io/uninstall-helm-release"
	LegacyFinalizer = "uninstall-helm-release"

	// PauseAnnotation with the value "true" makes the operator leave a resource and its children as they are.
	PauseAnnotation = "middleware.hc.cn/pause"

	// cacheTimeout bounds the wait for a cache that is being filled for the first time.
	cacheTimeout = 30 * time.Second
)

// Snapshot is what was seen of a resource and its release.
type Snapshot struct {
	Deleting, Paused bool
	// Finalizers are ours among those of the resource.
	Finalizers []string
	Deployed   Deployed
	// Inventory are the objects that belong to the release, as its status records them.
	Inventory []apply.Ref
	// Children are what the cache shows of the inventory, in its order.
	Children []Child
	// Drifted are the children that are no longer as this process applied them.
	Drifted []apply.Ref
	// Applied is the digest of the rendering this process applied completely; empty when it has not, or when a later attempt
	// failed midway.
	Applied string
	// History is the condition HistoryRecorded, nil before the first attempt.
	History *metav1.Condition
	// HistoryTried tells whether this process tried to record the current revision.
	HistoryTried bool
}

// Deployed is the release the status records.
type Deployed struct {
	Name     string
	Revision int64
	Digest   string
}

// Child is one object of the inventory.
type Child struct {
	apply.Ref
	// Object is nil while the cache does not show it. It holds metadata only for kinds that have no status.
	Object *unstructured.Unstructured
}

// observe reads everything a pass decides on, from caches and memory only.
func (r *Reconciler) observe(ctx context.Context, cr *unstructured.Unstructured) (Snapshot, error) {
	seen := Snapshot{
		Deleting: cr.GetDeletionTimestamp() != nil,
		Paused:   cr.GetAnnotations()[PauseAnnotation] == "true",
		Deployed: readDeployed(cr), Inventory: readInventory(cr),
		History: conditions.Find(conditions.Read(cr), TypeHistoryRecorded),
	}
	for _, finalizer := range []string{Finalizer, LegacyFinalizer} {
		if slices.Contains(cr.GetFinalizers(), finalizer) {
			seen.Finalizers = append(seen.Finalizers, finalizer)
		}
	}
	if seen.Deleting {
		return seen, nil
	}
	remembered := r.memory.get(cr.GetUID())
	seen.Applied, seen.HistoryTried = remembered.applied, remembered.historyTried
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	var err error
	if seen.Children, err = r.observeChildren(ctx, seen.Inventory); err != nil {
		return seen, err
	}
	if seen.Drifted, _, err = r.applier.Drifted(ctx, cr); err != nil {
		return seen, err
	}
	return seen, nil
}

func (r *Reconciler) observeChildren(ctx context.Context, inventory []apply.Ref) ([]Child, error) {
	children := make([]Child, 0, len(inventory))
	for _, ref := range inventory {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(ref.GroupVersionKind)
		err := r.children.get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, object)
		if meta.IsNoMatchError(err) { // its whole kind is gone
			children = append(children, Child{Ref: ref})
			continue
		}
		if apierrors.IsNotFound(err) {
			object, err = nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s from the cache: %w (may the operator list and watch this kind?)", ref, err)
		}
		if err := r.watch(ref.GroupVersionKind); err != nil {
			return nil, err
		}
		children = append(children, Child{Ref: ref, Object: object})
	}
	return children, nil
}

// childReader reads children from the cache in the form in which they are watched: whole where a status may matter, metadata
// where the kind has none. One informer a kind is enough for both its readers.
type childReader struct{ client.Reader }

// get fills the object with what the cache holds.
func (c childReader) get(ctx context.Context, key client.ObjectKey, object *unstructured.Unstructured) error {
	gvk := object.GroupVersionKind()
	if hasStatus(gvk.GroupKind()) {
		return c.Reader.Get(ctx, key, object)
	}
	metadata := &metav1.PartialObjectMetadata{}
	metadata.SetGroupVersionKind(gvk)
	if err := c.Reader.Get(ctx, key, metadata); err != nil {
		return err
	}
	content, err := toUnstructured(metadata)
	object.Object = content
	object.SetGroupVersionKind(gvk)
	return err
}

// Get serves apply's reads of metadata.
func (c childReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok || !hasStatus(metadata.GroupVersionKind().GroupKind()) {
		return c.Reader.Get(ctx, key, object, options...)
	}
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(metadata.GroupVersionKind())
	if err := c.Reader.Get(ctx, key, whole, options...); err != nil {
		return err
	}
	return fromUnstructured(map[string]any{"apiVersion": whole.GetAPIVersion(), "kind": whole.GetKind(), "metadata": whole.Object["metadata"]}, metadata)
}
