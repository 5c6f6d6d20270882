// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package application reconciles Applications: each one keeps a Deployment as its
// template says. One reconciliation is observe, Plan, act, ComputeStatus, one status patch,
// events; Plan and ComputeStatus are pure.
package application

import (
	"context"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	applicationv1 "middleware.hc.cn/operator/api/application/v1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/shell"
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
	// memory holds the events of reconciliations whose status could not be written: what was done is told once, by the reconciliation that
	// reports it.
	memory shell.Memory[[]event]
}

// event is one that is to be written.
type event struct{ kind, reason, action, note string }

// Reconcile runs one reconciliation.
func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(applicationKind)
	if why, ok := r.memory.Begin(ctx, r.applications, request.NamespacedName, object, r.now()); !ok {
		return why.Result()
	}
	snapshot, err := r.observe(ctx, object)
	if err != nil {
		return ctrl.Result{}, err
	}
	step := Plan(snapshot)
	done := r.act(ctx, object, snapshot, step)
	if d := snapshot.Deployment; d != nil {
		snapshot.Behind = r.applier.Behind(object.GetUID(), apply.Ref{GroupVersionKind: deploymentKind, Namespace: d.Namespace, Name: d.Name},
			d.ResourceVersion)
	}
	log.FromContext(ctx).V(1).Info("Reconciled", "step", fmt.Sprintf("%T", step), "changes", done.changes.String(), "reason",
		done.outcome.Reason())

	status := ComputeStatus(snapshot, step, done, r.now())
	news := append(r.memory.Get(object.GetUID()), eventsOf(snapshot, step, done, &status)...)
	if err := r.write(ctx, object, &snapshot.Status, &status); err != nil {
		r.memory.Update(object.GetUID(), func(untold *[]event) { *untold = changesOnly(news) })
		return shell.Unwritten(err).Result()
	}
	r.memory.Update(object.GetUID(), func(untold *[]event) { *untold = nil })
	for _, e := range news {
		r.recorder.Eventf(object, nil, e.kind, e.reason, e.action, "%s", shell.Note(e.note))
	}
	if (snapshot.Lagging || snapshot.Behind) && done.outcome.Kind() == outcome.KindDone {
		return outcome.Wait("waiting to see the Deployment as it was applied", lagAfter).Result()
	}
	return done.outcome.Result()
}

// lagAfter is when to look again for a Deployment that the cache does not show as it was applied.
const lagAfter = apply.Lag + time.Second

// write patches the status when it differs.
func (r *reconciler) write(ctx context.Context, object *unstructured.Unstructured, old, status *applicationv1.ApplicationStatus) error {
	if !statusDiffers(old, status) {
		return nil
	}
	encoded, err := runtime.DefaultUnstructuredConverter.ToUnstructured(status)
	if err != nil {
		return fmt.Errorf("encode the status: %w", err)
	}
	answer, err := shell.PatchStatus(object, encoded, func(object client.Object, patch client.Patch) error {
		return r.writer.Status().Patch(ctx, object, patch)
	})
	if err == nil {
		r.memory.Wrote(answer, r.now())
	}
	return err
}

// changesOnly leaves out what the next reconciliation finds again by itself: only what was done is
// done once.
func changesOnly(news []event) []event {
	return slices.DeleteFunc(news, func(e event) bool { return e.kind == corev1.EventTypeWarning })
}

// eventsOf are the events of a reconciliation: one for each change of the Deployment, one when what
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
	if is.Reason == was.Reason && is.Message == was.Message || outcome.NamespaceGoing(d.refusal) {
		return news
	}
	switch is.Reason {
	case applicationv1.ReasonInvalid, applicationv1.ReasonConflict, applicationv1.ReasonApplyFailed, applicationv1.ReasonDeploymentFailed:
		news = append(news, event{corev1.EventTypeWarning, is.Reason, "Reconcile", is.Message})
	}
	return news
}
