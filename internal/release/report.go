// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/shell"
)

// statusWriter patches the status of resources, through the subresource where the kind has one.
type statusWriter struct {
	client client.Client
	// plain is set once the kind was seen to have no status subresource.
	plain atomic.Bool
}

// write makes the status of cr what is given, if it differs, and updates cr with the API server's answer. Only what differs is
// sent, on condition that nobody changed the resource since it was read.
func (w *statusWriter) write(ctx context.Context, cr *unstructured.Unstructured, status map[string]any) (changed bool, err error) {
	if reflect.DeepEqual(cr.Object["status"], any(status)) {
		return false, nil
	}
	if !w.plain.Load() {
		after, err := shell.PatchStatus(cr, status, func(object client.Object, patch client.Patch) error {
			return w.client.Status().Patch(ctx, object, patch)
		})
		if err == nil {
			cr.Object = after.Object
		}
		if !apierrors.IsNotFound(err) {
			return true, err
		}
		// Either the kind has no status subresource or the resource is gone; the patch of the resource itself tells which.
	}
	// Here each write changes the generation, so that writing which one was observed would never end.
	delete(status, fieldObservedGeneration)
	after, err :=
		shell.PatchStatus(cr, status, func(object client.Object, patch client.Patch) error { return w.client.Patch(ctx, object, patch) })
	if err != nil {
		return true, err
	}
	w.plain.Store(true)
	cr.Object = after.Object
	return true, nil
}

// generation is what status may say was observed; zero for kinds whose generation counts every write.
func (w *statusWriter) generation(cr *unstructured.Unstructured) int64 {
	if w.plain.Load() {
		return 0
	}
	return cr.GetGeneration()
}

// recordInventory writes the inventory ahead of an apply, if it names other objects than before.
func (r *Reconciler) recordInventory(ctx context.Context, cr *unstructured.Unstructured, inventory []apply.Known) error {
	same := func(a, b apply.Known) bool { return a.Same(b.Ref) }
	if slices.EqualFunc(readInventory(cr, r.entry.Allow), inventory, same) {
		return nil
	}
	return r.recordField(ctx, cr, fieldInventory, writeInventory(inventory))
}

// recordProgress writes how far the hooks are.
func (r *Reconciler) recordProgress(ctx context.Context, cr *unstructured.Unstructured, progress Progress) error {
	if progress.Event == "" {
		return r.recordField(ctx, cr, fieldHooks, nil)
	}
	return r.recordField(ctx, cr, fieldHooks, progress.write())
}

// recordField writes one field of the status in the middle of a reconciliation; nil removes it.
func (r *Reconciler) recordField(ctx context.Context, cr *unstructured.Unstructured, name string, value any) error {
	status := map[string]any{}
	if had, ok := cr.Object["status"].(map[string]any); ok {
		status = (&unstructured.Unstructured{Object: had}).DeepCopy().Object
	}
	status[name] = value
	if value == nil {
		delete(status, name)
	}
	return r.writeStatus(ctx, cr, status)
}

// writeStatus writes the status if it differs, and remembers which version of the resource that made.
func (r *Reconciler) writeStatus(ctx context.Context, cr *unstructured.Unstructured, status map[string]any) error {
	changed, err := r.status.write(ctx, cr, status)
	if err == nil && changed {
		r.wrote(cr)
	}
	return err
}

// wrote remembers which version of the resource our write made.
func (r *Reconciler) wrote(cr *unstructured.Unstructured) {
	r.memory.Wrote(cr, r.options.Now())
}

// report computes the status and writes it if it differs.
func (r *Reconciler) report(ctx context.Context, cr *unstructured.Unstructured, done effect) (before []metav1.Condition, err error) {
	before = conditions.Read(cr)
	var more extras
	if r.options.StatusExtras != nil {
		more.fields, more.conditions = r.options.StatusExtras(cr, visible(done.children), r.options.Now())
	}
	if r.noTurns.Load() { // each attempt would be a request
		done.deployed.Chart, done.deployed.Spec, done.deployed.Turn = "", "", Turn{}
	}
	status, err := computeStatus(cr, done, more, r.status.generation(cr), r.options.Now())
	if err != nil {
		return before, err
	}
	if err := r.writeStatus(ctx, cr, status); err != nil {
		return before, err
	}
	now := readDeployed(cr)
	if now.Chart != done.deployed.Chart || now.Turn.Chart != done.deployed.Turn.Chart {
		r.noTurns.Store(true)
	}
	if now.Digest != done.deployed.Digest || now.Revision != done.deployed.Revision ||
		len(readInventory(cr, r.entry.Allow)) != len(done.inventory) {
		r.events.Eventf(cr, nil, corev1.EventTypeWarning, "StatusPruned", "Reporting", "%s", errPruned.Error())
		return before, errPruned
	}
	return before, nil
}

// errPruned means that the API server does not keep what the engine has to know in its next reconciliation.
var errPruned = errors.New("the CRD of this kind drops fields of the status (deployedRelease, inventory): " +
	"let its schema keep them, with x-kubernetes-preserve-unknown-fields: true under status")

func visible(children []Child) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for _, child := range children {
		if child.Object != nil {
			objects = append(objects, child.Object)
		}
	}
	return objects
}

// tell emits events about what happened in a reconciliation whose status is written. A failure is told when it is new.
func (r *Reconciler) tell(cr *unstructured.Unstructured, done effect, before []metav1.Condition) {
	if done.failure != nil && done.failure.reason == apply.ReasonNamespaceDeleted {
		return // no Event can be made there either
	}
	tell := func(kind, reason, action, format string, args ...any) {
		r.events.Eventf(cr, nil, kind, reason, action, "%s", shell.Note(fmt.Sprintf(format, args...)))
	}
	for _, conditionType := range []string{TypeIrreconcilable, TypeReleaseFailed} {
		now, was := condition(cr, conditionType), meta.FindStatusCondition(before, conditionType)
		if now != nil && now.Status == metav1.ConditionTrue && (was == nil || was.Status != now.Status || was.Message != now.Message) {
			tell(corev1.EventTypeWarning, now.Reason, "Reconciling", "%s", now.Message)
			return
		}
	}
	if done.failure != nil || done.held {
		return
	}
	if h := done.history; h != nil && h.Status == metav1.ConditionFalse {
		if was := meta.FindStatusCondition(before, TypeHistoryRecorded); was == nil || was.Reason != h.Reason {
			tell(corev1.EventTypeWarning, "HistoryNotRecorded", "Recording", "%s", h.Message)
		}
	}
	normal := func(reason, action, note string) {
		tell(corev1.EventTypeNormal, reason, action, "%s", note)
	}
	what := done.changes.String()
	switch step := done.step.(type) {
	case Install:
		normal("Installed", "Installing", what)
	case Upgrade:
		normal("Upgraded", "Upgrading", fmt.Sprintf("revision %d: %s", step.Revision, what))
	case TakeOver:
		normal("TakenOver", "TakingOver", fmt.Sprintf("revision %d of another operator: %s", step.Revision, what))
	case Repair:
		if len(done.changes.Changed()) > 0 {
			normal("Repaired", "Repairing", what)
		}
	case StartHook:
		normal("HookStarted", "RunningHook", step.Hook.String())
	case Uninstall:
		if done.hooksSkipped != "" {
			tell(corev1.EventTypeWarning, "HooksSkipped", "Uninstalling", "the hooks of the deletion cannot be rendered: %s", done.hooksSkipped)
		}
		if done.hooks.Event == string(postDelete) && len(done.remaining) > 0 {
			tell(corev1.EventTypeWarning, "NotWaitedFor", "Uninstalling", "still being deleted after %v: %s", uninstallTimeout,
				remains(done.remaining))
		}
	case Nothing, Gone, Pause, Stall, TakeTurn, RecordHistory, AddFinalizer, ClearHook, AwaitHook, EndHook, Leave:
	}
}

// addFinalizer puts our finalizer on the resource, on condition that nobody changed it since it was read.
func (r *Reconciler) addFinalizer(ctx context.Context, cr *unstructured.Unstructured) error {
	return r.patchFinalizers(ctx, cr, append(slices.Clone(cr.GetFinalizers()), Finalizer))
}

// removeFinalizers takes the given finalizers off the resource, on the same condition.
func (r *Reconciler) removeFinalizers(ctx context.Context, cr *unstructured.Unstructured, ours []string) error {
	return r.patchFinalizers(ctx, cr,
		slices.DeleteFunc(slices.Clone(cr.GetFinalizers()), func(f string) bool { return slices.Contains(ours, f) }))
}

func (r *Reconciler) patchFinalizers(ctx context.Context, cr *unstructured.Unstructured, finalizers []string) error {
	before := cr.DeepCopy()
	cr.SetFinalizers(finalizers)
	err := r.live.Patch(ctx, cr, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err == nil {
		r.wrote(cr)
	}
	return client.IgnoreNotFound(err)
}
