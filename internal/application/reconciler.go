// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application reconciles Applications: each one keeps a Deployment as its
// template says. One pass is observe, Plan, act, ComputeStatus, one status patch,
// events; Plan and ComputeStatus are pure.
package application

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/outcome"
)

var (
	applicationKind = applicationv1.GroupVersion.WithKind("Application")
	deploymentKind  = appsv1.SchemeGroupVersion.WithKind("Deployment")
)

type reconciler struct {
	applications client.Reader // custom resources, cached
	children     client.Reader // what the operator made, cached
	live         client.Reader // the API server
	writer       client.Client // status
	applier      *apply.Applier
	recorder     events.EventRecorder
	now          func() time.Time
	// uids are those of the Applications that were seen, by name, so that what is
	// remembered about one can be dropped when it is gone.
	uids sync.Map
	// written are the versions that the last status writes made, by the Application's UID.
	written sync.Map
	// untold are the events, by the Application's UID, of passes whose status could not be
	// written: what was done is told once, by the pass that reports it.
	untold sync.Map
}

// event is one that is to be written.
type event struct{ kind, reason, action, note string }

// Reconcile runs one pass.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(applicationKind)
	if err := r.applications.Get(ctx, request.NamespacedName, object); err != nil {
		if uid, seen := r.uids.LoadAndDelete(request.NamespacedName); seen && apierrors.IsNotFound(err) {
			r.applier.Forget(uid.(types.UID))
			r.untold.Delete(uid)
			r.written.Delete(uid)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	r.uids.Store(request.NamespacedName, object.GetUID())
	if written, ok := r.written.Load(object.GetUID()); ok {
		if again, behind := written.(apply.Written).Behind(object.GetResourceVersion(), r.now()); behind {
			return outcome.Wait("the cache does not show our own write yet", again).Result()
		}
	}
	snapshot, err := r.observe(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := Plan(snapshot)
	done := r.act(ctx, object, snapshot, step)
	log.FromContext(ctx).V(1).Info("Reconciled", "step", fmt.Sprintf("%T", step), "changes", done.changes.String(), "reason", done.outcome.Reason())

	status := ComputeStatus(snapshot, step, done, r.now())
	news := append(r.takeUntold(object.GetUID()), eventsOf(snapshot, step, done, &status)...)
	if err := r.write(ctx, object, &snapshot.Status, &status); err != nil {
		r.untold.Store(object.GetUID(), changesOnly(news))
		// A conflict means that somebody else wrote meanwhile. The pass is repeated on what
		// they wrote, so that no count is lost or doubled.
		if apierrors.IsConflict(err) {
			return outcome.Wait("the Application changed during the pass", conflictAfter).Result()
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, e := range news {
		r.recorder.Eventf(object, nil, e.kind, e.reason, e.action, "%s", e.note)
	}
	if snapshot.Lagging && done.outcome.Kind() == outcome.KindDone {
		return outcome.Wait("waiting to see the Deployment as it was applied", lagAfter).Result()
	}
	return done.outcome.Result()
}

const (
	// conflictAfter is when to look again after somebody else changed the Application during a
	// pass: the change is an event too.
	conflictAfter = time.Second
	// lagAfter is when to look again for a Deployment that the cache does not show as it was
	// applied.
	lagAfter = apply.Lag + time.Second
)

// write patches the status when it differs.
func (r *reconciler) write(ctx context.Context, object *unstructured.Unstructured, old, status *applicationv1.ApplicationStatus) error {
	if !statusDiffers(old, status) {
		return nil
	}
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	changed := object.DeepCopy()
	changed.Object["status"] = encoded
	patch := client.MergeFromWithOptions(object, client.MergeFromWithOptimisticLock{})
	if err := r.writer.Status().Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("write the status: %w", err)
	}
	r.written.Store(object.GetUID(), apply.Written{Version: changed.GetResourceVersion(), At: r.now()})
	return nil
}

// changesOnly leaves out what the next pass finds again by itself: only what was done is
// done once.
func changesOnly(news []event) []event {
	return slices.DeleteFunc(news, func(e event) bool { return e.kind == corev1.EventTypeWarning })
}

func (r *reconciler) takeUntold(uid types.UID) []event {
	untold, ok := r.untold.LoadAndDelete(uid)
	if !ok {
		return nil
	}
	return untold.([]event)
}

// eventsOf are the events of a pass: one for each change of the Deployment, one when what
// keeps the Application from being ready is new.
func eventsOf(s *Snapshot, step Step, d done, status *applicationv1.ApplicationStatus) []event {
	var news []event
	for _, change := range d.changes.Changed() {
		reason := string(change.Action)
		if _, restoring := step.(Restore); restoring && change.Action == apply.Configured {
			reason = "Updated"
			if s.Status.ObservedGeneration == s.Generation {
				reason = "Restored"
			}
		}
		news = append(news, event{corev1.EventTypeNormal, reason, "Apply", reason + " " + change.String()})
	}
	was, is := readyCondition(&s.Status), readyCondition(status)
	if is.Reason == was.Reason && is.Message == was.Message {
		return news
	}
	switch is.Reason {
	case applicationv1.ReasonInvalid, applicationv1.ReasonConflict, applicationv1.ReasonApplyFailed, applicationv1.ReasonDeploymentFailed:
		news = append(news, event{corev1.EventTypeWarning, is.Reason, "Reconcile", limit(is.Message)})
	}
	return news
}

// limit keeps a message within what an Event takes (1024 bytes).
func limit(message string) string {
	const most = 1000
	if len(message) <= most {
		return message
	}
	return message[:most] + "…"
}
