// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/conditions"
)

const (
	// retryForeign is how often what only a person can mend is tried again where nothing tells us that it was: a name that
	// someone else holds, a right that is missing, a refusal of somebody's admission.
	retryForeign = time.Minute
	// goOn is when to take the next step after one that left nothing to wait for.
	goOn = 10 * time.Millisecond
	// uninstallTimeout is how long a deletion waits for children that do not go, as long as helm does. They are being deleted
	// all the same; what holds them is theirs.
	uninstallTimeout = 5 * time.Minute
	// uninstallPoll is how often a deletion looks whether the children are gone; most tell it by an event.
	uninstallPoll = 2 * time.Second
)

// act carries out a Step. It never chooses one. What went wrong is in the effect, so that it reaches the status.
func (r *Reconciler) act(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot, step Step) effect {
	done := effect{step: step, deployed: seen.Deployed, inventory: seen.Inventory, children: seen.Children, hooks: progressOf(desired, seen),
		lagging: seen.Lagging, chart: desired.Chart}
	if !seen.outdated(desired.Digest) && !seen.Deleting {
		done.deployed.Chart, done.deployed.Spec = desired.Chart, desired.Spec
	}
	switch step := step.(type) {
	case Nothing, Gone, Pause, Stall:
	case AddFinalizer:
		done.failure, done.again = classify(r.addFinalizer(ctx, cr)), goOn
	case TakeOver:
		r.deploy(ctx, cr, desired, seen, step.Revision, &done)
	case Install:
		r.deploy(ctx, cr, desired, seen, 1, &done)
	case Upgrade:
		r.deploy(ctx, cr, desired, seen, step.Revision, &done)
	case TakeTurn:
		if done.again = step.Again; step.Wave > 0 {
			done.deployed.Turn = Turn{Chart: desired.Chart, Spec: desired.Spec, Wave: int64(step.Wave), At: r.options.Now().UTC()}
		}
	case Repair:
		r.deploy(ctx, cr, desired, seen, seen.Deployed.Revision, &done)
	case RecordHistory:
		done.history, done.failure = r.recordAgain(ctx, cr, desired, seen)
		done.mayForget(seen)
	case ClearHook:
		done.failure, done.again = classify(r.deleteHook(ctx, seen.Hook)), goOn
	case StartHook:
		done.hooks = step.Hook.Progress
		done.failure = classify(r.startHook(ctx, cr, step.Hook))
		done.again = goOn
	case AwaitHook:
		done.hooks = step.Hook.Progress
		done.again = max(step.Until.Sub(r.options.Now()), goOn)
	case EndHook:
		r.endHook(ctx, cr, desired, step, seen, &done)
	case Uninstall:
		r.uninstall(ctx, cr, desired, seen, &done)
	case Leave:
		if done.failure = unknownHooks(desired, seen); done.failure == nil {
			done.failure = classify(r.leave(ctx, cr, desired, seen))
		}
	}
	return done
}

// deploy makes the objects of a revision exist: inventory first (old and new objects), then apply, then prune, then history.
func (r *Reconciler) deploy(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot, revision int64,
	done *effect) {
	wanted, err := r.compose(ctx, cr, desired, seen, revision)
	if err != nil {
		done.failure = classify(err)
		return
	}
	done.failure = r.prepare(ctx, cr, done, wanted.refs)
	if done.failure != nil {
		return
	}
	r.memory.Update(cr.GetUID(), func(m *memory) { m.applied, m.begun = "", true })
	applied, pruned, err := r.carryOut(ctx, cr, wanted, seen)
	done.changes = slices.Concat(applied, pruned)
	if err != nil {
		done.failure = classify(err)
		return
	}
	done.inventory = nil
	for _, change := range applied {
		done.inventory = append(done.inventory, apply.Known{Ref: change.Ref, Fields: change.Fields})
	}
	if len(wanted.objects) > len(wanted.rendered.Objects) { // the revision is complete when what it replaces is gone, too
		done.held, done.again = true, retryForeign
		return
	}
	if r.complete(ctx, cr, desired, wanted.rendered, revision, done); done.failure != nil {
		return
	}
	if len(applied.Awaited()) == 0 { // what has to go first is made anew by the reconciliation that its disappearance brings
		r.memory.Update(cr.GetUID(), func(m *memory) { m.applied, m.deployed = done.deployed.Digest, m.rendered == wanted.rendered })
		done.mayForget(seen)
		if _, repair := done.step.(Repair); repair && !done.forget { // hooks or a record are left, and no event may tell of a repair
			done.again = goOn
		}
	}
}

// composition is what is to exist of a revision.
type composition struct {
	rendered *chart.Rendered
	// objects are those rendered, and stand-ins for those that are not ready.
	objects []*unstructured.Unstructured
	refs    []apply.Ref
}

func (r *Reconciler) compose(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot,
	revision int64) (composition, error) {
	rendered, err := r.rendered(ctx, cr, desired, revision)
	if err != nil {
		return composition{}, err
	}
	standIns, err := r.standIns(ctx, cr, desired, rendered, seen.Inventory, revision)
	if err != nil {
		return composition{}, err
	}
	objects := slices.Concat(rendered.Objects, standIns)
	refs, err := r.refsOf(objects, cr)
	return composition{rendered, objects, refs}, err
}

// carryOut applies what is wanted, then deletes what else was seen.
func (r *Reconciler) carryOut(ctx context.Context, cr *unstructured.Unstructured, wanted composition, seen Snapshot) (applied,
	pruned apply.ChangeSet, err error) {
	var how []apply.Option
	if cr.GetAnnotations()[UpgradeForceAnnotation] == "true" {
		how = append(how, apply.Recreate())
	}
	if applied, err = r.applier.Apply(ctx, cr, wanted.objects, how...); err != nil {
		return applied, nil, err
	}
	pruned, err = r.applier.Prune(ctx, cr, refsIn(seen.Inventory), wanted.refs)
	return applied, pruned, err
}

// mayForget notes that the rendering of a release that is done, and recorded unless it cannot be, is needed no more.
func (done *effect) mayForget(seen Snapshot) {
	history := cmp.Or(done.history, seen.History)
	unrecorded := history != nil && history.Reason == ReasonHistoryFailed
	done.forget = done.hooks.Event == "" && !unrecorded
}

// prepare does what has to be done before the first object is applied: inventory and watches.
func (r *Reconciler) prepare(ctx context.Context, cr *unstructured.Unstructured, done *effect, wanted []apply.Ref) *failure {
	all := union(done.inventory, wanted)
	if err := r.recordInventory(ctx, cr, all); err != nil {
		return classify(fmt.Errorf("record the inventory: %w", err))
	}
	done.inventory = all
	for _, ref := range wanted {
		if err := r.watch(ref.GroupVersionKind); err != nil {
			return classify(err)
		}
	}
	return nil
}

// complete notes that a revision is deployed, and begins the hooks that follow it. It is not noted as long as its digest is not known, so
// that it is tried again: its record and its hooks are to come.
func (r *Reconciler) complete(ctx context.Context, cr *unstructured.Unstructured, desired Desired, rendered *chart.Rendered, revision int64,
	done *effect) {
	_, repair := done.step.(Repair)
	digest := desired.Digest
	if !repair && r.chart.UsesLookup() { // it may look at what was just made
		var err error
		if digest, err = r.digest(ctx, cr, desired.Values, revision); err != nil {
			done.failure = classify(err)
			return
		}
	}
	done.deployed = Deployed{Name: cr.GetName(), Revision: revision, Digest: digest, Chart: desired.Chart, Spec: desired.Spec,
		Turn: done.deployed.Turn}
	if repair {
		return
	}
	if _, taken := done.step.(TakeOver); taken { // its hooks ran
		done.history = recorded(revisionOf(cr, revision))
		return
	}
	done.history = r.recordHistory(ctx, cr, rendered, revision)
	r.memory.Update(cr.GetUID(), func(m *memory) { m.historyTried = true })
	done.hooks = Progress{}
	after := postInstall
	if revision > 1 {
		after = postUpgrade
	}
	if len(hooksOf(desired, after)) > 0 {
		done.hooks = Progress{Event: string(after), Revision: revision, Digest: done.deployed.Digest}
		done.again = goOn
	}
}

// rendered returns what is to be applied or recorded. A revision that was deployed by a chart that is not deterministic is taken from
// Helm's history if it can be, else from memory, because rendering it again would give something else.
func (r *Reconciler) rendered(ctx context.Context, cr *unstructured.Unstructured, desired Desired, revision int64) (*chart.Rendered,
	error) {
	if desired.Failure != nil {
		return nil, desired.Failure
	}
	if desired.Rendered != nil {
		return desired.Rendered, nil
	}
	if !r.chart.Deterministic() {
		if known, err := r.known(ctx, cr, desired, revision); err != nil || known != nil {
			return known, err
		}
	}
	desired.Revision = revision
	return r.renderOnce(ctx, cr, desired)
}

// known is what a revision was deployed as, by Helm's history, else by memory; nil: nobody knows.
func (r *Reconciler) known(ctx context.Context, cr *unstructured.Unstructured, desired Desired, revision int64) (*chart.Rendered, error) {
	recorded, err := r.recordedRevision(ctx, cr, revision)
	if err != nil || recorded != nil {
		return recorded, err
	}
	kept := r.memory.Get(cr.GetUID())
	if kept.deployed && kept.digest == desired.Digest && kept.revision == revision {
		return kept.rendered, nil
	}
	return nil, nil
}

// recordAgain writes the current revision into the history. What was applied of a chart that is not deterministic, and is known no more,
// is not recorded: by a record that says something else, drift would be put back to that, such as another password.
func (r *Reconciler) recordAgain(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot) (*metav1.Condition,
	*failure) {
	revision, which := seen.Deployed.Revision, r.known
	if r.chart.Deterministic() {
		which = r.rendered
	}
	rendered, err := which(ctx, cr, desired, revision)
	if err != nil {
		return nil, classify(err)
	}
	r.memory.Update(cr.GetUID(), func(m *memory) { m.historyTried = true })
	if rendered == nil && seen.History.Reason != ReasonHistoryForbidden && seen.History.Reason != ReasonHistoryFailed {
		return seen.History, nil // it would not be recorded if it were known
	}
	if rendered == nil {
		record := types.NamespacedName{Namespace: cr.GetNamespace(), Name: chart.StoredName(cr.GetName(), int(revision))}
		if seen.History.Reason == ReasonHistoryForbidden && apierrors.IsForbidden(r.live.Get(ctx, record, &corev1.Secret{})) {
			return seen.History, nil // there is a remedy in it still
		}
		lost := conditions.Condition(TypeHistoryRecorded, metav1.ConditionFalse, ReasonHistoryLost, fmt.Sprintf(
			"revision %d was not recorded when it was applied, and the chart gives something else each time that it is rendered: the next one is "+
				"recorded", revision))
		return &lost, nil
	}
	return r.recordHistory(ctx, cr, rendered, revision), nil
}

// uninstall deletes what the inventory lists and waits until it is gone, but not for ever.
func (r *Reconciler) uninstall(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot, done *effect) {
	var err error
	if done.failure = unknownHooks(desired, seen); done.failure != nil {
		return
	}
	if desired.Failure != nil {
		done.hooksSkipped = desired.Failure.Error()
	}
	if done.changes, err = r.applier.Prune(ctx, cr, refsIn(done.inventory), nil); err != nil {
		done.failure = classify(err)
		return
	}
	remaining, err := r.applier.Gone(ctx, cr, refsIn(done.inventory))
	if err != nil {
		done.failure = classify(err)
		return
	}
	deadline := cr.GetDeletionTimestamp().Add(uninstallTimeout)
	if len(remaining) > 0 && r.options.Now().Before(deadline) {
		done.remaining, done.again = remaining, uninstallPoll
		return
	}
	done.remaining = remaining
	done.hooks = Progress{Event: string(postDelete), Revision: desired.Revision, Digest: desired.Digest}
	done.again = goOn
}

// unknownHooks is why hooks of a deletion that are to run are not known for the moment: something was not answered. It is nil if they are
// known, and if they cannot be known: then the deletion does without them.
func unknownHooks(desired Desired, seen Snapshot) *failure {
	if dueEvent(desired, seen) == "" || slices.Contains(desired.WithoutHooks, preDelete.action()) {
		return nil
	}
	f := classify(desired.Failure)
	if f == nil || f.reason != ReasonReconcileError {
		return nil
	}
	f.err = fmt.Errorf("the hooks of the deletion are not known (annotation %s: \"true\" goes on without them): %w",
		disableHooks["delete"], f.err)
	return f
}

// leave deletes the hooks' objects and the history, then takes our finalizers off. A history that may not be read does not hold
// a deletion up.
func (r *Reconciler) leave(ctx context.Context, cr *unstructured.Unstructured, desired Desired, seen Snapshot) error {
	if err := r.deleteHooks(ctx, cr, desired); err != nil {
		return err
	}
	if err := r.deleteHistory(ctx, cr); err != nil {
		return err
	}
	return r.removeFinalizers(ctx, cr, seen.Finalizers)
}

// remains names objects that are still there.
func remains(refs []apply.Ref) string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Kind+" "+ref.Name)
	}
	return strings.Join(names, ", ")
}

// classify tells what can be mended by trying again from what cannot.
func classify(err error) *failure {
	if err == nil {
		return nil
	}
	var refused *chart.Error
	if errors.As(err, &refused) {
		return &failure{reason: ReasonRenderFailed, final: true, err: err}
	}
	f := &failure{err: err}
	f.reason, f.final = apply.Reason(err)
	f.reason = cmp.Or(f.reason, ReasonReconcileError)
	if f.reason != apply.ReasonImmutable { // what is not final is tried again sooner
		f.again = retryForeign
	}
	return f
}
