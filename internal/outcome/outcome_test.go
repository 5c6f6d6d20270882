// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
)

func TestResult(t *testing.T) {
	broken := errors.New("connection refused")
	going := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "cache", errors.New("it is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for _, tc := range []struct {
		name    string
		outcome Outcome
		kind    Kind
		reason  string
		result  ctrl.Result
		err     error
	}{
		{name: "the zero value is done", outcome: Outcome{}, kind: KindDone},
		{name: "done", outcome: Done(), kind: KindDone},
		{name: "wait", outcome: Wait("PodsStarting", 5*time.Second), kind: KindWait, reason: "PodsStarting",
			result: ctrl.Result{RequeueAfter: 5 * time.Second}},
		{name: "wait for an event", outcome: Wait("PodsStarting", -time.Second), kind: KindWait, reason: "PodsStarting"},
		{name: "stalled is not tried again", outcome: Stalled("InvalidSpec"), kind: KindStalled, reason: "InvalidSpec"},
		{name: "retry carries its error", outcome: Retry(broken), kind: KindRetry, reason: "connection refused", err: broken},
		{name: "a namespace that is being deleted is no failure", outcome: Retry(fmt.Errorf("apply: %w", going)), kind: KindWait,
			reason: "apply: " + going.Error(), result: ctrl.Result{RequeueAfter: whileNamespaceGoes}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			result, err := tc.outcome.Result()
			if result != tc.result || !errors.Is(err, tc.err) {
				t.Errorf("Result() = %v, %v; want %v, %v", result, err, tc.result, tc.err)
			}
			if tc.outcome.Kind() != tc.kind || tc.outcome.Reason() != tc.reason {
				t.Errorf("got %s %q; want %s %q", tc.outcome.Kind(), tc.outcome.Reason(), tc.kind, tc.reason)
			}
		})
	}
}

func TestRetryWithoutErrorIsNotSuccess(t *testing.T) {
	if _, err := Retry(nil).Result(); err == nil {
		t.Error("Retry(nil) must not look like success")
	}
}
