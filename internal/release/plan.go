// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/internal/apply"
)

// Step is what one pass does. The set of Steps is sealed: Plan returns one, act carries it out, status reports it.
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
	// Install makes the first revision.
	Install struct{}
	// Upgrade makes the next revision.
	Upgrade struct{ Revision int64 }
	// Repair applies the current revision again; Drifted are the children that were found changed or missing.
	Repair struct {
		Reason  string
		Drifted []apply.Ref
	}
	// RecordHistory writes the current revision into Helm's history, which failed before.
	RecordHistory struct{}
	// Uninstall deletes the release and takes our finalizers off the resource.
	Uninstall struct{}
)

func (Nothing) isStep()       {}
func (Gone) isStep()          {}
func (Pause) isStep()         {}
func (Stall) isStep()         {}
func (Install) isStep()       {}
func (Upgrade) isStep()       {}
func (Repair) isStep()        {}
func (RecordHistory) isStep() {}
func (Uninstall) isStep()     {}

// Desired is what the resource asks for.
type Desired struct {
	// Invalid are the reasons why the resource cannot be carried out.
	Invalid field.ErrorList
	Values  map[string]any
	// Digest identifies what the chart would render (chart.DigestFor).
	Digest string
}

// Plan chooses the Step of a pass: the first rule that has one wins. It is pure.
func Plan(desired Desired, seen Snapshot, _ time.Time) Step {
	for _, rule := range []func(Desired, Snapshot) Step{
		planDeletion, planPause, planInvalid, planRelease, planRepair, planHistory,
	} {
		if step := rule(desired, seen); step != nil {
			return step
		}
	}
	return Nothing{}
}

func planDeletion(_ Desired, seen Snapshot) Step {
	switch {
	case !seen.Deleting:
		return nil
	case len(seen.Finalizers) > 0:
		return Uninstall{}
	default:
		return Gone{}
	}
}

func planPause(_ Desired, seen Snapshot) Step {
	if seen.Paused {
		return Pause{}
	}
	return nil
}

func planInvalid(desired Desired, _ Snapshot) Step {
	if len(desired.Invalid) > 0 {
		return Stall{Reason: ReasonInvalidSpec, Message: desired.Invalid.ToAggregate().Error()}
	}
	return nil
}

func planRelease(desired Desired, seen Snapshot) Step {
	switch {
	case seen.Deployed.Digest == "":
		return Install{}
	case seen.Deployed.Digest != desired.Digest:
		return Upgrade{Revision: seen.Deployed.Revision + 1}
	default:
		return nil
	}
}

func planRepair(desired Desired, seen Snapshot) Step {
	switch {
	case seen.Applied != desired.Digest:
		return Repair{Reason: "the children were not compared since the operator started or since a failure"}
	case len(seen.Drifted) > 0:
		return Repair{Reason: fmt.Sprintf("%s was changed or deleted", seen.Drifted[0]), Drifted: seen.Drifted}
	default:
		return nil
	}
}

// planHistory tries a failed record again: at once if the failure may pass, once after a start if it was a lack of rights.
func planHistory(_ Desired, seen Snapshot) Step {
	if seen.History == nil || seen.History.Status != metav1.ConditionFalse {
		return nil
	}
	if seen.History.Reason == ReasonHistoryFailed || !seen.HistoryTried {
		return RecordHistory{}
	}
	return nil
}
