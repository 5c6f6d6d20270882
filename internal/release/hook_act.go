// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"

	"github.com/operator-framework/operator-lib/handler"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// helmHookAnnotation is on the object of every hook, whoever made it.
const helmHookAnnotation = "helm.sh/hook"

// observeHook reads the object of the hook whose turn it is, past the cache: a hook must not run twice because the cache lags.
func (r *Reconciler) observeHook(ctx context.Context, cr *unstructured.Unstructured, next *NextHook) (*unstructured.Unstructured, error) {
	ref, err := r.refOf(next.Object, cr)
	if err != nil {
		return nil, err
	}
	if err := r.watch(ref.GroupVersionKind); err != nil { // a former process may have started it
		return nil, err
	}
	live := &unstructured.Unstructured{}
	live.SetGroupVersionKind(ref.GroupVersionKind)
	err = r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, live)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", next, err)
	}
	return live, r.hookIsOurs(cr, ref, live)
}

// hookIsOurs refuses an object that is not the resource's. One that Helm or another Helm operator made as a hook has no owner; it
// may be replaced in the resource's own namespace, as Helm would.
func (r *Reconciler) hookIsOurs(cr *unstructured.Unstructured, ref apply.Ref, live *unstructured.Unstructured) error {
	err := apply.OwnedBy(cr, live)
	_, hook := live.GetAnnotations()[helmHookAnnotation]
	_, owned := live.GetAnnotations()[handler.NamespacedNameAnnotation]
	nobodys := hook && !owned && metav1.GetControllerOf(live) == nil
	if nobodys && ref.Namespace != "" && ref.Namespace == cr.GetNamespace() {
		return nil
	}
	return err
}

// startHook makes the object of a hook.
func (r *Reconciler) startHook(ctx context.Context, cr *unstructured.Unstructured, next NextHook) error {
	object, err := r.hookObject(cr, next.Hook)
	if err != nil {
		return err
	}
	annotations := object.GetAnnotations()
	annotations[hookRunAnnotation] = next.run()
	object.SetAnnotations(annotations)
	err = r.live.Create(ctx, object, client.FieldOwner(apply.FieldManager))
	switch {
	case apierrors.IsAlreadyExists(err): // it is looked at in the next reconciliation
		return nil
	case err != nil:
		return fmt.Errorf("start %s: %w", next, err)
	case cr.GetDeletionTimestamp() != nil:
		return r.withdrawHook(ctx, cr, object)
	}
	return nil
}

// withdrawHook deletes the object of a hook of a deletion if the resource is gone when it was made. That is so when this process was
// stopped, and another one brought the deletion to its end: nobody would ever look at the object, to which no reference leads.
func (r *Reconciler) withdrawHook(ctx context.Context, cr, object *unstructured.Unstructured) error {
	version, err := r.versionOf(ctx, cr)
	if err != nil || version != "" {
		return err
	}
	return r.deleteHook(ctx, object)
}

// hookObject is the object of a hook as it is made, without its run. Every one is annotated with its owner, whose event its end
// becomes; one that Kubernetes can remove with the resource is referenced too, unless it runs while the resource is being deleted.
func (r *Reconciler) hookObject(cr *unstructured.Unstructured, hook chart.Hook) (*unstructured.Unstructured, error) {
	ref, err := r.refOf(hook.Object, cr)
	if err != nil {
		return nil, err
	}
	object := hook.Object.DeepCopy()
	object.SetNamespace(ref.Namespace)
	if err := handler.SetOwnerAnnotations(cr, object); err != nil {
		return nil, fmt.Errorf("annotate %s: %w", ref, err)
	}
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	labels[apply.ManagedByLabel] = apply.ManagedByValue
	object.SetLabels(labels)
	if ref.Namespace == cr.GetNamespace() && cr.GetDeletionTimestamp() == nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(cr, r.gvk)})
	}
	return object, nil
}

// endHook records how a hook ended, then deletes its object if its policy says so: a crash between the two leaves an object, never
// a hook that runs again.
func (r *Reconciler) endHook(ctx context.Context, cr *unstructured.Unstructured, desired Desired, step EndHook, seen Snapshot,
	done *effect) {
	progress := step.Hook.Progress
	policy := "hook-succeeded"
	if step.Failure == "" {
		progress.Completed++
		progress.Failures, progress.Message = 0, ""
	} else {
		progress.Failures++
		progress.Message, progress.FailedAt = step.Failure, r.options.Now()
		policy = "hook-failed"
	}
	event := hookEvent(progress.Event)
	if last := progress.Completed >= int64(len(hooksOf(desired, event))); last && (event == postInstall || event == postUpgrade) {
		progress = Progress{}
	}
	done.hooks, done.again = progress, goOn
	done.mayForget(seen)
	if err := r.recordProgress(ctx, cr, progress); err != nil {
		done.failure = classify(fmt.Errorf("record that %s ended: %w", step.Hook, err))
		return
	}
	if step.Failure != "" {
		done.hookFailure = fmt.Sprintf("%s failed: %s", step.Hook, step.Failure)
	}
	if step.Hook.has(policy) {
		done.failure = classify(r.deleteHook(ctx, seen.Hook))
	}
}

// deleteHooks removes the objects of all hooks that are left. Helm leaves them; here they end with the resource.
func (r *Reconciler) deleteHooks(ctx context.Context, cr *unstructured.Unstructured, desired Desired) error {
	if desired.Rendered == nil {
		return nil
	}
	for _, hook := range desired.Rendered.Hooks {
		ref, err := r.refOf(hook.Object, cr)
		if err != nil {
			return err
		}
		live := &metav1.PartialObjectMetadata{}
		live.SetGroupVersionKind(ref.GroupVersionKind)
		err = r.live.Get(ctx, client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}, live)
		if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("look for %s: %w", ref, err)
		}
		if apply.OwnedBy(cr, live) != nil {
			continue
		}
		if err := r.deleteHook(ctx, live); err != nil {
			return err
		}
	}
	return nil
}

// deleteHook asks for the deletion of the very object that was read.
func (r *Reconciler) deleteHook(ctx context.Context, live client.Object) error {
	uid := live.GetUID()
	err := r.live.Delete(ctx, live, client.Preconditions{UID: &uid}, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) && r.replaced(ctx, live, uid) {
		return nil
	}
	return fmt.Errorf("delete %s %s: %w", live.GetObjectKind().GroupVersionKind().Kind, live.GetName(), err)
}

// replaced reports whether an object that was read is gone by now, or another one has its name. A conflict alone does not say so:
// an admission webhook may answer with one, too.
func (r *Reconciler) replaced(ctx context.Context, was client.Object, uid types.UID) bool {
	now := &metav1.PartialObjectMetadata{}
	now.SetGroupVersionKind(was.GetObjectKind().GroupVersionKind())
	err := r.live.Get(ctx, client.ObjectKeyFromObject(was), now)
	return apierrors.IsNotFound(err) || err == nil && now.GetUID() != uid
}
