// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// retryForeign is how often a name that someone else holds is tried again: nothing tells us when it becomes free.
const retryForeign = time.Minute

// act carries out a Step. It never chooses one. What went wrong is in the effect, so that it reaches the status.
func (r *Reconciler) act(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot, step Step) effect {
	done := effect{step: step, deployed: seen.Deployed, inventory: seen.Inventory, children: seen.Children}
	switch step := step.(type) {
	case Nothing, Gone, Pause, Stall:
	case Install:
		r.deploy(ctx, cr, desired, 1, &done)
	case Upgrade:
		r.deploy(ctx, cr, desired, step.Revision, &done)
	case Repair:
		r.deploy(ctx, cr, desired, seen.Deployed.Revision, &done)
	case RecordHistory:
		rendered, err := r.render(ctx, cr, desired, seen.Deployed.Revision)
		if err != nil {
			done.failure = classify(err)
			break
		}
		done.history = r.recordHistory(ctx, cr, rendered, r.releaseOf(cr, seen.Deployed.Revision))
		r.memory.update(cr.GetUID(), func(m *memory) { m.historyTried = true })
	case Uninstall:
		done.failure = classify(r.uninstall(ctx, cr, seen))
	}
	return done
}

// releaseOf is what the chart sees as .Release. It depends on the revision alone, so that rendering a revision again gives
// the same objects.
func (r *Reconciler) releaseOf(cr *unstructured.Unstructured, revision int64) chart.Release {
	return chart.Release{Name: cr.GetName(), Namespace: cr.GetNamespace(), Revision: int(revision), IsInstall: revision == 1, IsUpgrade: revision > 1}
}

// render returns what the revision consists of, checked against what the resource may create.
func (r *Reconciler) render(ctx context.Context, cr *unstructured.Unstructured, desired Desired, revision int64) (*chart.Rendered, error) {
	capabilities, err := r.capabilities(ctx)
	if err != nil {
		return nil, err
	}
	rendered, err := r.chart.Render(desired.Values, r.releaseOf(cr, revision), capabilities)
	if err != nil {
		return nil, err
	}
	if err := chart.Check(rendered, chart.Allowed{Namespace: cr.GetNamespace(), Kinds: r.chart.Kinds(), Namespaced: r.namespaced}); err != nil {
		return nil, err
	}
	for _, hook := range rendered.Hooks {
		if len(hook.Events) != 1 || hook.Events[0] != "test" {
			return nil, &chart.Error{Stage: chart.StageCheck, Path: hook.Object.GetKind() + " " + hook.Object.GetName(),
				Err: errors.New("it is a Helm hook, and hooks are not run yet"), Remedy: "take helm.sh/hook off it, or use a chart without hooks"}
		}
	}
	return rendered, nil
}

// deploy makes the objects of a revision exist: inventory first (old and new objects), then apply, then prune, then history.
func (r *Reconciler) deploy(ctx context.Context, cr *unstructured.Unstructured, desired Desired, revision int64, done *effect) {
	rendered, err := r.render(ctx, cr, desired, revision)
	if err != nil {
		done.failure = classify(err)
		return
	}
	wanted := refsOf(rendered.Objects, cr.GetNamespace())
	if err := r.recordInventory(ctx, cr, union(done.inventory, wanted)); err != nil {
		done.failure = classify(fmt.Errorf("record the inventory: %w", err))
		return
	}
	previous := done.inventory
	done.inventory = union(previous, wanted)
	for _, ref := range wanted {
		if err := r.watch(ref.GroupVersionKind); err != nil {
			done.failure = classify(err)
			return
		}
	}
	r.memory.update(cr.GetUID(), func(m *memory) { m.applied = "" })
	applied, err := r.applier.Apply(ctx, cr, rendered.Objects)
	done.changes = applied
	if err != nil {
		done.failure = classify(err)
		return
	}
	pruned, err := r.applier.Prune(ctx, cr, previous, wanted)
	done.changes = append(done.changes, pruned...)
	if err != nil {
		done.failure = classify(err)
		return
	}
	done.inventory = done.inventory[:0:0]
	for _, change := range applied {
		done.inventory = append(done.inventory, change.Ref)
	}
	done.deployed = Deployed{Name: cr.GetName(), Revision: revision, Digest: desired.Digest}
	if _, repair := done.step.(Repair); !repair {
		done.history = r.recordHistory(ctx, cr, rendered, r.releaseOf(cr, revision))
		r.memory.update(cr.GetUID(), func(m *memory) { m.historyTried = true })
	}
	if !slices.ContainsFunc(applied, func(c apply.Change) bool { return c.Action == apply.Deleted }) {
		// What was deleted because it could not be changed is made anew by the pass its disappearance brings.
		r.memory.update(cr.GetUID(), func(m *memory) { m.applied = desired.Digest })
	}
}

// uninstall deletes what the inventory lists and the history, then takes our finalizers off. A history that may not be read
// does not hold a deletion up.
func (r *Reconciler) uninstall(ctx context.Context, cr *unstructured.Unstructured, seen Snapshot) error {
	if _, err := r.applier.Prune(ctx, cr, seen.Inventory, nil); err != nil {
		return err
	}
	if err := r.deleteHistory(ctx, cr, seen.Deployed.Revision); err != nil {
		return err
	}
	return r.removeFinalizers(ctx, cr, seen.Finalizers)
}

func refsOf(objects []*unstructured.Unstructured, namespace string) []apply.Ref {
	refs := make([]apply.Ref, 0, len(objects))
	for _, object := range objects {
		ref := apply.RefOf(object)
		ref.Namespace = namespace // Check let nothing else through
		refs = append(refs, ref)
	}
	return refs
}

// classify tells what can be mended by trying again from what cannot.
func classify(err error) *failure {
	var refused *chart.Error
	var foreign *apply.NotOursError
	var immutable *apply.ImmutableError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &failure{reason: ReasonRenderFailed, final: true, err: err}
	case errors.As(err, &foreign):
		return &failure{reason: ReasonNotOurs, final: true, again: retryForeign, err: err}
	case errors.As(err, &immutable):
		return &failure{reason: ReasonImmutable, final: true, err: err}
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsRequestEntityTooLargeError(err):
		return &failure{reason: ReasonRejected, final: true, err: err}
	default:
		return &failure{reason: ReasonReconcileError, err: err}
	}
}
