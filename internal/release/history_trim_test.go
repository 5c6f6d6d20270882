// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A record that was marked before a failure is not written again for it.
func TestHistoryIsMarkedOnce(t *testing.T) {
	a := newArchive(t)
	a.record(1)
	a.refusals["create"] = errors.New("timeout")
	if c := a.record(2); c.Status != metav1.ConditionFalse || a.asked["update"] != 1 {
		t.Errorf("%+v, %d updates", c, a.asked["update"])
	}
	if c := a.record(2); c.Status != metav1.ConditionTrue || a.asked["update"] != 1 {
		t.Errorf("%+v, %d updates", c, a.asked["update"])
	}
}

// A history that was longer, and has gaps, is trimmed once, from the oldest on; a gap that is too long ends the search.
func TestHistoryIsTrimmed(t *testing.T) {
	a := newArchive(t)
	a.r.options.MaxHistory = 100
	for _, revision := range []int64{1, 12, 22, 23, 30} {
		a.record(revision)
	}
	a.r.options.MaxHistory = 2
	a.r.memory.Update("u", func(m *memory) { m.historyTrimmed = false })
	a.record(31)
	if diff := cmp.Diff([]string{"sh.helm.release.v1.web.v12", "sh.helm.release.v1.web.v22", "sh.helm.release.v1.web.v23"},
		a.deleted); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	a.deleted = nil
	a.record(32)
	a.record(33)
	if diff := cmp.Diff([]string{"sh.helm.release.v1.web.v30", "sh.helm.release.v1.web.v31"}, a.deleted); diff != "" {
		t.Errorf("deleted later (-want +got):\n%s", diff)
	}
	a.asked = map[string]int{}
	for _, newest := range []int{0, -1} {
		a.r.memory.Update("u", func(m *memory) { m.historyTrimmed = false })
		if err := a.r.forgetRevisions(t.Context(), a.cr, newest); err != nil || a.asked["get"] > 0 {
			t.Errorf("there is no revision %d: %v, asked %d times", newest, err, a.asked["get"])
		}
	}
	for range 2 { // to whom nothing else is known to be left
		a.asked = map[string]int{}
		if err := a.r.forgetRevisions(t.Context(), a.cr, 31); err != nil || a.asked["get"] != 1 {
			t.Errorf("%v, asked %d times", err, a.asked["get"])
		}
	}
	a.r.memory.Update("u", func(m *memory) { m.historyTrimmed = false })
	if err := a.r.forgetRevisions(t.Context(), a.cr, 5); err != nil || a.asked["get"] != 1+5 {
		t.Errorf("%v, asked %d times for five revisions", err, a.asked["get"]-1)
	}
	a.refusals["get"] = errors.New("timeout")
	if err := a.r.forgetRevisions(t.Context(), a.cr, 32); err == nil || !strings.Contains(err.Error(), "forget revision 32") {
		t.Errorf("what cannot be read is taken for gone: %v", err)
	}
}
