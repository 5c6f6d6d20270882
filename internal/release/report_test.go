// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"

	"middleware.hc.cn/operator/internal/conditions"
)

// Whoever deleted the namespace is not warned that nothing can be made in it.
func TestNamespaceThatGoesIsNotWarnedOf(t *testing.T) {
	going := apierrors.NewForbidden(schema.GroupResource{Resource: "services"}, "web", errors.New("the namespace is being terminated"))
	going.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	cr := parse(t, `{apiVersion: v1, kind: Web, metadata: {name: web}, status: {conditions: [
		{type: ReleaseFailed, status: "True", reason: ReconcileError, message: "the namespace is being terminated"}]}}`)
	for _, tc := range []struct {
		err  error
		told int
	}{{going, 0}, {errors.New("connection refused"), 1}} {
		recorder := events.NewFakeRecorder(1)
		(&Reconciler{events: recorder}).tell(cr, effect{step: Install{}, failure: classify(tc.err)}, nil)
		if n := len(recorder.Events); n != tc.told {
			t.Errorf("%v: %d Events, want %d", tc.err, n, tc.told)
		}
	}
}

// That the history is not written is told again only for another reason.
func TestWhyTheHistoryIsNotWrittenIsToldOnce(t *testing.T) {
	failed, forbidden := conditions.Condition(TypeHistoryRecorded, "False", ReasonHistoryFailed, "m"),
		conditions.Condition(TypeHistoryRecorded, "False", ReasonHistoryForbidden, "m")
	recorded := conditions.Condition(TypeHistoryRecorded, "True", ReasonRecorded, "")
	for _, tt := range []struct {
		before, now metav1.Condition
		told        int
	}{{failed, failed, 0}, {failed, forbidden, 1}, {recorded, failed, 1}, {failed, recorded, 0}, {metav1.Condition{Type: "Other"}, failed,
		1}} {
		recorder := events.NewFakeRecorder(1)
		(&Reconciler{events: recorder}).tell(parse(t, "{apiVersion: v1, kind: Web, metadata: {name: web}}"),
			effect{step: RecordHistory{}, history: &tt.now}, []metav1.Condition{tt.before})
		if n := len(recorder.Events); n != tt.told {
			t.Errorf("%s after %s: %d Events", tt.now.Reason, tt.before.Reason, n)
		}
	}
}

// The API server refuses an Event whose note is longer than 1 KiB, whatever it is about.
func TestWhatIsToldFitsIntoAnEvent(t *testing.T) {
	recorder := events.NewFakeRecorder(1)
	r := &Reconciler{events: recorder}
	r.tell(parse(t, "{apiVersion: v1, kind: Web, metadata: {name: web}}"), effect{step: Uninstall{}, hooksSkipped: strings.Repeat("ä", 5000)},
		nil)
	_, note, found := strings.Cut(<-recorder.Events, "HooksSkipped ")
	if !found || len(note) > 1024 || !utf8.ValidString(note) {
		t.Errorf("%t: a note of %d bytes, valid %t: %.80s", found, len(note), utf8.ValidString(note), note)
	}
}

// Where the API server drops what turns need, resources do not wait for one that is never written down.
func TestTurnsThatTheServerDrops(t *testing.T) {
	for _, field := range []string{"deployedRelease.chart", "deployedRelease.turn"} {
		s := twoOfAFormerChart(t)
		s.prunes = field
		s.settle()
		s.other()
		if got := s.new(); len(got) != 2 {
			t.Errorf("without %s have taken it: %v", field, got)
		}
		if d := readDeployed(s.web()); d.Chart != "" || d.Spec != "" || d.Turn != (Turn{}) {
			t.Errorf("without %s it is written again and again: %+v", field, d)
		}
		s.wants("idle", s.settle())
	}
}
