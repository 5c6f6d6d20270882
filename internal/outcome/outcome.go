// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outcome names the four ways a reconciliation can end and is the only place that turns one of them into
// what controller-runtime expects.
package outcome

import (
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
)

// Kind tells the four outcomes apart.
type Kind string

const (
	// KindDone means that nothing is left to do until something changes.
	KindDone Kind = "Done"
	// KindWait means that the reconciliation did what it could and the rest needs time or an event.
	KindWait Kind = "Wait"
	// KindStalled means that trying again cannot help; a person has to change something.
	KindStalled Kind = "Stalled"
	// KindRetry means that the reconciliation failed for a reason that may pass; it is tried again with backoff.
	KindRetry Kind = "Retry"
)

// Outcome is how a reconciliation ended. The zero value is Done.
type Outcome struct {
	kind   Kind
	reason string
	after  time.Duration
	err    error
}

// Done means that nothing is left to do until something changes.
func Done() Outcome { return Outcome{kind: KindDone} }

// Wait means that the reconciliation is to be repeated after the given time, or earlier when an event arrives. An after of zero or
// less waits for an event only.
func Wait(reason string, after time.Duration) Outcome {
	return Outcome{kind: KindWait, reason: reason, after: max(after, 0)}
}

// Stalled means that only a change of the object (or of what it refers to) can help. It is not tried again by itself.
func Stalled(reason string) Outcome { return Outcome{kind: KindStalled, reason: reason} }

// Retry means that the reconciliation is to be tried again with backoff. A nil error is a mistake of the caller; it is retried too,
// because reporting success for it would hide the mistake. What cannot be made because its namespace is being deleted is
// no failure: the object goes as well, and until then it is looked at now and then.
func Retry(err error) Outcome {
	if NamespaceGoing(err) {
		return Wait(err.Error(), whileNamespaceGoes)
	}
	if err == nil {
		err = errors.New("outcome.Retry was called without an error")
	}
	return Outcome{kind: KindRetry, reason: err.Error(), err: err}
}

// whileNamespaceGoes is how often an object is looked at whose namespace is being deleted.
const whileNamespaceGoes = 10 * time.Second

// NamespaceGoing reports whether something could not be made because its namespace is being deleted.
func NamespaceGoing(err error) bool {
	return apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause)
}

// Kind returns which of the four outcomes this is.
func (o Outcome) Kind() Kind {
	if o.kind == "" {
		return KindDone
	}
	return o.kind
}

// Reason says why, for people; it is empty for Done.
func (o Outcome) Reason() string { return o.reason }

// Err is the error of a Retry, nil otherwise.
func (o Outcome) Err() error { return o.err }

// After is the time to wait of a Wait, zero otherwise.
func (o Outcome) After() time.Duration { return o.after }

// Result translates the outcome for controller-runtime. A stalled object is neither requeued nor an error: its status says
// what is wrong, and the change that mends it is an event.
func (o Outcome) Result() (ctrl.Result, error) {
	switch o.Kind() {
	case KindWait:
		return ctrl.Result{RequeueAfter: o.after}, nil
	case KindRetry:
		return ctrl.Result{}, o.err
	case KindDone, KindStalled:
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, nil
}
