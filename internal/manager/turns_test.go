// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"middleware.hc.cn/operator/internal/fleet"
)

// What was given is read by all, and only for the revision that it was given for.
func TestTurnsAreWrittenDown(t *testing.T) {
	leases := fake.NewClientset().CoordinationV1().Leases("operators")
	of := func(revision string) fleet.Ledger {
		return turnsOf(leases, turnsLease("operator"), "RedisCluster", revision)
	}
	given := []fleet.Given{{UID: "a", Wave: 1, At: time.Date(2026, 11, 27, 10, 0, 0, 0, time.UTC)}}
	reads := func(revision string, want []fleet.Given) (version string) {
		t.Helper()
		got, version, err := of(revision).Read()
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, (-want +got):\n%s", revision, err, diff)
		}
		return version
	}
	if version := reads("new", nil); version != "" {
		t.Errorf("of nothing there is version %q", version)
	}
	for i, want := range []bool{true, false} { // the second creates what exists
		if written, err := of("new").Write("", given); written != want || err != nil {
			t.Errorf("%d: written %t, %v", i, written, err)
		}
	}
	reads("new", given)
	reads("old", nil)

	lease, err := leases.Get(t.Context(), turnsLease("operator"), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lease.Annotations[turnsOf(leases, "", "RedisCluster", "").annotation] = "{"
	if _, err := leases.Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := of("new").Read(); err == nil {
		t.Error("what cannot be read is taken for nothing")
	}
}
