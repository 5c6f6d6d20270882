// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/chart"
)

// Step is what one reconciliation does. The set of Steps is sealed: Plan returns one, act carries it out, status reports it.
//
//sumtype:decl
type Step interface{ isStep() }

type (
	// Nothing is to be done: the release is what the resource asks for.
	Nothing struct{}
	// Gone means that the resource is being deleted and holds no finalizer of ours: the garbage collector does the rest.
	Gone struct{}
	// Pause means that a person asked to leave everything as it is.
	Pause struct{}
	// Stall means that the resource cannot be carried out as it is written.
	Stall struct{ Reason, Message string }
	// AddFinalizer makes a deletion of the resource wait for us, before anything exists that only we would delete.
	AddFinalizer struct{}
	// TakeOver makes the release of another operator ours as it is: its revision stays the current one.
	TakeOver struct{ Revision int64 }
	// Install makes the first revision.
	Install struct{}
	// Upgrade makes the next revision.
	Upgrade struct{ Revision int64 }
	// TakeTurn waits until it is the resource's turn to take a change that only the operator made, and writes its turn down: see fleet.
	TakeTurn struct {
		// Wave is the number of the wave that it goes with; 0: it is not its turn yet. Stopped and Why say how far the others are.
		Wave    int
		Stopped bool
		Why     string
		// Again is when to ask again.
		Again time.Duration
	}
	// Repair applies the current revision again; Drifted are the children that were found changed or missing.
	Repair struct {
		Reason  string
		Drifted []apply.Ref
	}
	// RecordHistory writes the current revision into Helm's history, which failed before.
	RecordHistory struct{}
	// ClearHook deletes what an earlier run left of the hook that is next.
	ClearHook struct{ Hook NextHook }
	// StartHook makes the object of the hook that is next.
	StartHook struct{ Hook NextHook }
	// AwaitHook waits for the hook that runs, or until a failed one is tried again.
	AwaitHook struct {
		Hook    NextHook
		Message string
		// Until is when to look again without an event.
		Until time.Time
		// Failed reports whether the hook failed before, so that the release counts as failed until it succeeds.
		Failed bool
	}
	// EndHook notes how the hook ended; Failure is empty if it succeeded.
	EndHook struct {
		Hook    NextHook
		Failure string
	}
	// Uninstall deletes the objects of the release.
	Uninstall struct{}
	// Leave deletes what else belongs to the release, Helm's history above all, and takes our finalizers off the resource.
	Leave struct{}
)

func (Nothing) isStep()       {}
func (Gone) isStep()          {}
func (Pause) isStep()         {}
func (Stall) isStep()         {}
func (AddFinalizer) isStep()  {}
func (TakeOver) isStep()      {}
func (Install) isStep()       {}
func (Upgrade) isStep()       {}
func (TakeTurn) isStep()      {}
func (Repair) isStep()        {}
func (RecordHistory) isStep() {}
func (ClearHook) isStep()     {}
func (StartHook) isStep()     {}
func (AwaitHook) isStep()     {}
func (EndHook) isStep()       {}
func (Uninstall) isStep()     {}
func (Leave) isStep()         {}

// Desired is what the resource asks for.
type Desired struct {
	// Invalid are the reasons why the resource cannot be carried out.
	Invalid field.ErrorList
	Values  map[string]any
	// Digest identifies what the chart would render.
	Digest string
	// Chart identifies the chart and what the operator gives it besides the spec, Spec the spec of the resource.
	Chart, Spec string
	// InWaves reports whether a change that only the operator made waits for the resource's turn.
	InWaves bool
	// Revision is the one that Rendered is for.
	Revision int64
	// Rendered is nil when the digest alone tells that nothing has to be rendered, and when rendering failed.
	Rendered *chart.Rendered
	// Failure is why rendering failed.
	Failure error
	// Awaited are the APIs that the resource asks for and the cluster does not serve.
	Awaited []string
	// WithoutHooks are Helm's names of the actions (install, upgrade, delete) whose hooks a person switched off.
	WithoutHooks []string
	// WaitForDeletion reports whether a person asked that the deletion waits until the children are gone.
	WaitForDeletion bool
	// OutOfReach reports whether objects of the rendering would stay when the resource is deleted while no operator runs: those
	// that no owner reference can reach.
	OutOfReach bool
}

// Plan chooses the Step of a reconciliation: the first rule that has one wins. It is pure.
func Plan(desired Desired, seen Snapshot, now time.Time) Step {
	for _, rule := range []func(Desired, Snapshot, time.Time) Step{
		planDeletion, planPause, planInvalid, planFinalizer, planTakeOver, planRelease, planRepair, planHook, planHistory,
	} {
		if step := rule(desired, seen, now); step != nil {
			return step
		}
	}
	return Nothing{}
}

func planDeletion(desired Desired, seen Snapshot, now time.Time) Step {
	if !seen.Deleting {
		return nil
	}
	if len(seen.Finalizers) == 0 {
		return Gone{}
	}
	if step := planHook(desired, seen, now); step != nil {
		return step
	}
	if seen.Hooks.Event != string(postDelete) {
		return Uninstall{}
	}
	return Leave{}
}

func planPause(_ Desired, seen Snapshot, _ time.Time) Step {
	if seen.Paused {
		return Pause{}
	}
	return nil
}

func planInvalid(desired Desired, _ Snapshot, _ time.Time) Step {
	if len(desired.Invalid) > 0 {
		return Stall{Reason: ReasonInvalidSpec, Message: desired.Invalid.ToAggregate().Error()}
	}
	return nil
}

func planFinalizer(desired Desired, seen Snapshot, _ time.Time) Step {
	if len(seen.Finalizers) == 0 && (desired.WaitForDeletion || desired.OutOfReach) {
		return AddFinalizer{}
	}
	return nil
}

// planTakeOver keeps the revision of a release that another operator left: it was rendered anew and is what that operator made.
func planTakeOver(desired Desired, seen Snapshot, _ time.Time) Step {
	if seen.Former != nil && desired.Rendered != nil && desired.Revision == seen.Former.Revision {
		return TakeOver{Revision: desired.Revision}
	}
	return nil
}

func planRelease(desired Desired, seen Snapshot, now time.Time) Step {
	if !seen.outdated(desired.Digest) {
		return nil
	}
	if desired.held(seen, now) {
		return TakeTurn{}
	}
	if desired.Failure == nil {
		if step := planHook(desired, seen, now); step != nil {
			return step
		}
	}
	if revision := seen.nextRevision(); revision > 1 {
		return Upgrade{Revision: revision}
	}
	return Install{}
}

func planRepair(desired Desired, seen Snapshot, _ time.Time) Step {
	switch {
	case seen.Applied != seen.Deployed.Digest:
		return Repair{Reason: "the children were not compared since a failure, or since the operator started"}
	case len(seen.Drifted) > 0:
		return Repair{Reason: fmt.Sprintf("%s was changed or deleted", seen.Drifted[0]), Drifted: seen.Drifted}
	default:
		return nil
	}
}

// planHistory tries a failed record again: at once if the failure may pass, once after a start if it was a lack of rights.
func planHistory(_ Desired, seen Snapshot, _ time.Time) Step {
	if seen.History == nil || seen.History.Status != metav1.ConditionFalse {
		return nil
	}
	if seen.History.Reason == ReasonHistoryFailed || !seen.HistoryTried {
		return RecordHistory{}
	}
	return nil
}
