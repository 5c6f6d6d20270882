// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package release runs chart kinds: a Helm chart is the whole controller of such a kind. The spec of a resource becomes chart
// values, what the chart renders becomes children, and the children's own status becomes the resource's.
//
// One reconciliation is observe → Plan → act → computeStatus → one status patch → events. A reconciliation over a resource with nothing
// to do renders nothing and makes no request.
package release

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/recorder"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/shell"
	"middleware.hc.cn/operator/internal/watches"
)

const (
	// visibleAfter is when to look again for children that were applied and that the cache does not show yet.
	visibleAfter = apply.Lag + time.Second
	// servedAfter is when to look again whether CRDs that were just made are served.
	servedAfter = 200 * time.Millisecond
	// LookupPeriod is how often a chart that calls lookup is rendered unless something else is said: helm-operator's default period.
	LookupPeriod = time.Minute
)

// Reconciler runs one chart kind. Add makes it.
type Reconciler struct {
	gvk        schema.GroupVersionKind
	chart      *chart.Chart
	options    Options
	entry      watches.Watch
	reader     client.Reader // the resources themselves, cached
	live       client.Client // reads past every cache
	children   childReader
	applier    *apply.Applier
	events     recorder.EventRecorder
	memory     shell.Memory[memory]
	watch      func(schema.GroupVersionKind) error
	cluster    *discovered
	namespaced func(schema.GroupVersionKind) (bool, error)
	lookup     func(context.Context, *unstructured.Unstructured) chart.Lookup
	status     statusWriter
	crds       crdInstaller
	waves      waves
	// noTurns is set once the API server was seen to drop from the status what turns need: resources do not wait then.
	noTurns atomic.Bool
}

// Reconcile is one reconciliation.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cr := &unstructured.Unstructured{}
	cr.SetGroupVersionKind(r.gvk)
	if why, ok := r.memory.Begin(ctx, r.reader, request.NamespacedName, cr, r.options.Now()); !ok {
		return why.Result()
	}
	if !r.entry.Selector.Matches(labelSet(cr)) { // an event of a child, or it was selected until now
		r.waves.forget(cr.GetUID())
		return ctrl.Result{}, nil
	}
	return r.reconcile(ctx, cr).Result()
}

// forget drops what is remembered of a resource that is gone.
func (r *Reconciler) forget(_ types.NamespacedName, uid types.UID) {
	r.applier.Forget(uid)
	r.waves.forget(uid)
}

func (r *Reconciler) reconcile(ctx context.Context, cr *unstructured.Unstructured) outcome.Outcome {
	seen, err := r.observe(ctx, cr)
	if err != nil {
		return r.failedObservation(ctx, cr, seen, err)
	}
	desired, err := r.desired(ctx, cr, seen)
	if err != nil {
		return r.failedObservation(ctx, cr, seen, err)
	}
	if errors.Is(desired.Failure, errNotServed) {
		return outcome.Wait(desired.Failure.Error(), servedAfter)
	}
	if next := nextHook(desired, seen); next != nil {
		if seen.Hook, err = r.observeHook(ctx, cr, next); err != nil {
			return r.failedObservation(ctx, cr, seen, err)
		}
	}
	step := Plan(desired, seen, r.options.Now())
	if _, waits := step.(TakeTurn); waits {
		if step, err = r.turn(cr, seen); err != nil {
			return outcome.Retry(err)
		}
	}
	if _, idle := step.(Nothing); !idle {
		log.FromContext(ctx).V(1).Info("Acting", "step", fmt.Sprintf("%T", step))
	}
	done := r.act(ctx, cr, desired, seen, step)
	done.awaited = desired.Awaited
	if _, gone := step.(Gone); gone {
		return outcome.Done()
	}
	if _, left := step.(Leave); left && done.failure == nil {
		return outcome.Done()
	}
	if !seen.Deleting && len(done.changes) > 0 {
		if done.children, err = r.observeChildren(ctx, cr, done.inventory); err != nil {
			return outcome.Retry(err)
		}
	}
	return r.finish(ctx, cr, done)
}

// failedObservation ends a reconciliation that could not see what it has to decide on. What only a person can mend is told.
func (r *Reconciler) failedObservation(ctx context.Context, cr *unstructured.Unstructured, seen Snapshot, err error) outcome.Outcome {
	failure := classify(err)
	if !failure.final {
		return outcome.Retry(err)
	}
	done := effect{step: Nothing{}, deployed: seen.Deployed, inventory: readInventory(cr, r.entry.Allow), hooks: seen.Hooks, failure: failure}
	return r.finish(ctx, cr, done)
}

// finish writes the status of a reconciliation, then tells about it.
func (r *Reconciler) finish(ctx context.Context, cr *unstructured.Unstructured, done effect) outcome.Outcome {
	if done.failure != nil && done.failure.reason == apply.ReasonUnknownKind {
		r.cluster.doubt()
	}
	r.diagnose(ctx, cr, &done)
	changed, err := r.report(ctx, cr, done)
	r.memory.Update(cr.GetUID(), func(m *memory) {
		switch {
		case err != nil && len(done.changes) > 0: // it may have written over what another process deployed, or this one, and does not know
			m.applied = ""
		case err == nil && done.forget:
			m.rendered = nil
		}
	})
	if err != nil {
		return shell.Unwritten(err)
	}
	r.tell(cr, done, changed)
	r.waves.report(cr)
	return r.outcomeOf(cr, done)
}

// outcomeOf turns what happened into when to look again.
func (r *Reconciler) outcomeOf(cr *unstructured.Unstructured, done effect) outcome.Outcome {
	if done.failure != nil {
		switch {
		case !done.failure.final:
			return outcome.Retry(done.failure.err)
		case done.failure.again > 0:
			return outcome.Wait(done.failure.reason, done.failure.again)
		}
		return outcome.Stalled(done.failure.reason)
	}
	if stall, ok := done.step.(Stall); ok {
		return outcome.Stalled(stall.Reason)
	}
	if done.again > 0 {
		return outcome.Wait("there is more to do", done.again)
	}
	for _, child := range done.children {
		if child.Object == nil || child.Behind {
			return outcome.Wait("waiting to see "+child.String(), visibleAfter)
		}
	}
	if done.lagging {
		return outcome.Wait("waiting to see what was applied", visibleAfter)
	}
	if len(done.awaited) > 0 {
		return outcome.Wait("waiting until "+strings.Join(done.awaited, ", ")+" is served", incompleteFor)
	}
	if period := r.period(cr); period > 0 {
		return outcome.Wait("reconcilePeriod", period)
	}
	return outcome.Done()
}
