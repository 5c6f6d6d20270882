// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package outcome

import (
	"errors"
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
)

func TestResult(t *testing.T) {
	broken := errors.New("connection refused")
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
