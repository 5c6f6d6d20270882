// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/pause"
)

const (
	// Finalizer is helm-operator-plugins' own. It is put on a resource only where deleting takes more than the garbage
	// collector does: hooks of a deletion, children no owner reference reaches, a wish to wait. SDKFinalizer is the one of
	// operator-sdk's helm-operator. Both are honoured on resources that carry them from before.
	Finalizer    = "uninstall-helm-release"
	SDKFinalizer = "helm.sdk.operatorframework.io/uninstall-release"

	// cacheTimeout bounds the wait for a cache that is being filled for the first time, and otherKinds that for kinds
	// which the chart does not write: a former version of it may have, but whoever may write the status can name any, also those
	// that the operator may not list, and their caches are never filled.
	cacheTimeout = 30 * time.Second
	otherKinds   = time.Second
)

// Snapshot is what was seen of a resource and its release.
type Snapshot struct {
	Deleting, Paused bool
	// Terminating reports whether the resource's namespace is being deleted, so that nothing can be made in it.
	Terminating bool
	// Finalizers are ours among those of the resource.
	Finalizers []string
	Deployed   Deployed
	// Former is the release another operator left, nil when there is none or it was taken over.
	Former *Former
	// Inventory are the objects that belong to the release, as its status records them, or as this process has applied them since.
	Inventory []apply.Known
	// Children are what the cache shows of the inventory, in its order.
	Children []Child
	// Drifted are the children that are no longer as they were applied.
	Drifted []apply.Ref
	// Lagging reports whether the cache does not show all that was applied yet.
	Lagging bool
	// Applied is the digest of the rendering that is known to be applied completely; empty when an attempt failed midway, or
	// when a former process did not record enough to tell.
	Applied string
	// Ready is the condition Ready, nil before the first reconciliation.
	Ready *metav1.Condition
	// Hooks is how far the hooks that run are, the zero value when none do.
	Hooks Progress
	// Hook is the object of the hook whose turn it is, nil when there is none.
	Hook *unstructured.Unstructured
	// History is the condition HistoryRecorded, nil before the first attempt.
	History *metav1.Condition
	// HistoryTried reports whether this process tried to record the current revision.
	HistoryTried bool
}

// outdated reports whether the release is another one than the digest names.
func (s Snapshot) outdated(digest string) bool {
	return s.Deployed.Digest == "" || s.Deployed.Digest != digest
}

// nextRevision is the number of the next revision.
func (s Snapshot) nextRevision() int64 {
	if s.Former != nil {
		return s.Former.Revision + 1
	}
	return s.Deployed.Revision + 1
}

// Deployed is the release the status records.
type Deployed struct {
	Name     string
	Revision int64
	Digest   string
	// Chart and Spec are those of Desired that it was made by; empty: a former version of the operator did not record them.
	Chart, Spec string
	Turn        Turn
}

// Turn is the turn of a resource to take what is new in the operator.
type Turn struct {
	// Chart and Spec are those of Desired when the turn came.
	Chart, Spec string
	// Wave is the number of the wave that the resource went with, At when its turn came, and DoneAt when it was ready afterwards.
	Wave       int64
	At, DoneAt time.Time
}

// Child is one object of the inventory.
type Child struct {
	apply.Ref
	// Object is nil while the cache does not show it. It holds metadata only for kinds that have no status.
	Object *unstructured.Unstructured
	// Behind reports whether Object is as it was before it was applied the last time.
	Behind bool
	// Why is what keeps its pods from running, if somebody looked.
	Why string
}

// observe reads what a reconciliation decides on: from caches and memory only, but for a release that another operator left and for
// the namespace of a resource that is being deleted.
func (r *Reconciler) observe(ctx context.Context, cr *unstructured.Unstructured) (Snapshot, error) {
	seen, err := r.observeRelease(ctx, cr)
	if err != nil {
		return seen, err
	}
	if seen.Deleting {
		seen.Terminating, err = r.namespaceEnds(ctx, cr)
		return seen, err
	}
	ctx, cancel := context.WithTimeout(ctx, cacheTimeout)
	defer cancel()
	if seen.Children, err = r.observeChildren(ctx, cr, seen.Inventory); err != nil {
		return seen, err
	}
	r.recall(cr, seen)
	remembered := r.memory.Get(cr.GetUID())
	seen.Applied, seen.HistoryTried = remembered.applied, remembered.historyTried
	drift, err := r.applier.Drifted(ctx, cr)
	seen.Drifted, seen.Lagging = drift.Refs, drift.Lagging
	return seen, err
}

// observeRelease reads what the resource itself says of its release, and looks for one that another operator left.
func (r *Reconciler) observeRelease(ctx context.Context, cr *unstructured.Unstructured) (seen Snapshot, err error) {
	seen = Snapshot{
		Deleting: cr.GetDeletionTimestamp() != nil,
		Paused:   pause.Asked(cr),
		Deployed: readDeployed(cr), Inventory: r.applier.Latest(cr, readInventory(cr, r.entry.Allow)), Hooks: readProgress(cr),
	}
	told := conditions.Read(cr)
	seen.History, seen.Ready = meta.FindStatusCondition(told, TypeHistoryRecorded), meta.FindStatusCondition(told, TypeReady)
	for _, finalizer := range []string{Finalizer, SDKFinalizer} {
		if slices.Contains(cr.GetFinalizers(), finalizer) {
			seen.Finalizers = append(seen.Finalizers, finalizer)
		}
	}
	seen.Former, err = r.findFormer(ctx, cr, seen)
	if seen.Former != nil {
		seen.Inventory = union(seen.Inventory, seen.Former.Refs)
	}
	return seen, err
}

// recall brings back what a former process applied, once after a start, if its status tells it of every object. Then drift is
// recognised from the cache, and a resource that is as it was costs no request.
func (r *Reconciler) recall(cr *unstructured.Unstructured, seen Snapshot) {
	known := r.memory.Get(cr.GetUID()).begun
	if known || seen.Deployed.Digest == "" || seen.Former != nil {
		return
	}
	r.memory.Update(cr.GetUID(), func(m *memory) { m.begun = true })
	for _, child := range seen.Inventory {
		if child.UID == "" || child.Fields == "" {
			return
		}
	}
	r.applier.Recall(cr, seen.Inventory)
	r.memory.Update(cr.GetUID(), func(m *memory) { m.applied = seen.Deployed.Digest })
}

// namespaceEnds reports whether the namespace of a resource that holds our finalizer is being deleted.
func (r *Reconciler) namespaceEnds(ctx context.Context, cr *unstructured.Unstructured) (bool, error) {
	if !r.chart.HasHooks() || cr.GetNamespace() == "" {
		return false, nil // it makes no difference
	}
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.live.Get(ctx, types.NamespacedName{Name: cr.GetNamespace()}, namespace); err != nil {
		return false, fmt.Errorf("look at namespace %s: %w", cr.GetNamespace(), err)
	}
	return namespace.GetDeletionTimestamp() != nil, nil
}

func (r *Reconciler) observeChildren(ctx context.Context, cr *unstructured.Unstructured, inventory []apply.Known) ([]Child, error) {
	children := make([]Child, 0, len(inventory))
	own := append(r.chart.Kinds(), r.entry.Allow.Kinds...)
	others, cancel := context.WithTimeout(ctx, otherKinds)
	defer cancel()
	for _, known := range inventory {
		ref, within := known.Ref, ctx
		if !slices.Contains(own, ref.Kind) {
			within = others
		}
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(ref.GroupVersionKind)
		err := r.children.get(within, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, object)
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
		behind := object != nil && r.applier.Behind(cr.GetUID(), ref, object.GetResourceVersion())
		children = append(children, Child{Ref: ref, Object: object, Behind: behind})
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
	return apply.GetMetadata(ctx, c.Reader, key, metadata, options...)
}
