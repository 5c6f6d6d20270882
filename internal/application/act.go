// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/outcome"
)

// lookAgain is the time after which a conflict is looked at again: nothing tells us
// that a foreign Deployment is gone.
const lookAgain = time.Minute

// done is what a step did.
type done struct {
	changes apply.ChangeSet
	outcome outcome.Outcome
	// refusal is why the API server or the rules of ownership stopped the step.
	refusal error
}

// act does all the writing of a step, the status apart.
func (r *reconciler) act(ctx context.Context, owner *unstructured.Unstructured, s *Snapshot, step Step) done {
	switch step := step.(type) {
	case Leave:
		r.applier.Forget(owner.GetUID())
		return done{outcome: outcome.Done()}
	case Refuse:
		return done{outcome: outcome.Stalled(step.Message)}
	case Yield:
		return done{outcome: outcome.Wait(step.Message, lookAgain)}
	case AwaitDeletion, Keep, Pause:
		return done{outcome: outcome.Done()} // the next change of the Deployment is an event
	case Make, Restore:
		return r.applyDeployment(ctx, owner, s)
	}
	return done{outcome: outcome.Done()}
}

func (r *reconciler) applyDeployment(ctx context.Context, owner *unstructured.Unstructured, s *Snapshot) done {
	changes, err := r.applier.Apply(ctx, owner, []*unstructured.Unstructured{s.Desired})
	var foreign *apply.NotOursError
	var immutable *apply.ImmutableError
	switch {
	case err == nil:
		return done{changes: changes, outcome: outcome.Done()}
	case errors.As(err, &foreign):
		return done{changes: changes, refusal: err, outcome: outcome.Wait(err.Error(), lookAgain)}
	case errors.As(err, &immutable), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return done{changes: changes, refusal: err, outcome: outcome.Stalled(err.Error())}
	}
	return done{changes: changes, refusal: err, outcome: outcome.Retry(err)}
}
