// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// An instance that is reached plainly because its TLS fails has no certificate in use.
func TestCertificateThatIsNoGood(t *testing.T) {
	s := &snapshot.Snapshot{Instances: []snapshot.Instance{
		{Name: "c-0-0", TLSError: "certificate has expired", Redis: &snapshot.Redis{OldCertificate: true}}}}
	got := certificateInUse(s, "")
	if got.Status != metav1.ConditionFalse ||
		!strings.Contains(got.Message, "c-0-0 does not take TLS, and is reached without: certificate has expired") {
		t.Errorf("%+v", got)
	}
}

// The status of a cluster that is paused does not say that TLS is required while a plain port is open.
func TestTLSWhilePaused(t *testing.T) {
	was := &v1alpha1.TLSStatus{Mode: v1alpha1.TLSRequired, Stage: "Required"}
	for mode, want := range map[v1alpha1.TLSMode]v1alpha1.TLSMode{v1alpha1.TLSRequired: v1alpha1.TLSRequired,
		v1alpha1.TLSBoth: v1alpha1.TLSBoth, v1alpha1.TLSDisabled: v1alpha1.TLSBoth} {
		got := tlsInForce(was, Reconciliation{Decision: plan.Decision{Situation: plan.Paused,
			TLS: plan.TLSInForce{Mode: mode, Stage: redisconf.TLSBoth}}})
		if got.Mode != want || got.Stage != was.Stage {
			t.Errorf("%s: %+v", mode, got)
		}
	}
}

// While a cluster is paused nothing is concluded, but that what is trusted has changed is kept: it may be taken back before the pause ends.
func TestAuthoritiesWhilePaused(t *testing.T) {
	for is, want := range map[string]string{snapshot.AuthoritiesChanging: snapshot.AuthoritiesChanging, "new": "old", "": "old"} {
		was := &v1alpha1.TLSStatus{Mode: v1alpha1.TLSRequired, Stage: "Required", Authorities: "old"}
		got := tlsInForce(was, Reconciliation{Decision: plan.Decision{Situation: plan.Paused,
			TLS: plan.TLSInForce{Mode: v1alpha1.TLSRequired, Stage: redisconf.TLSRequired, Authorities: is}}})
		if got.Authorities != want || was.Authorities != "old" {
			t.Errorf("%q: %+v", is, got)
		}
	}
}

// What is trusted is in use when all instances have loaded it; one whose pod has another Secret is named.
func TestAuthoritiesInUse(t *testing.T) {
	s := &snapshot.Snapshot{LoadedAuthorities: "old", Instances: []snapshot.Instance{{Name: "c-0-0", OtherAuthorities: true}}}
	s.TLS.Authorities = "old"
	for _, tt := range []struct {
		loaded string
		other  bool
		want   metav1.ConditionStatus
		says   string
	}{
		{"old", false, metav1.ConditionTrue, ""}, {"new", false, metav1.ConditionFalse, "are told to load them"},
		{snapshot.AuthoritiesChanging, false, metav1.ConditionFalse, "are told to load them"},
		{snapshot.AuthoritiesChanging, true, metav1.ConditionFalse, "c-0-0 has what it trusts from another Secret"},
	} {
		s.LoadedAuthorities, s.Instances[0].OtherAuthorities = tt.loaded, tt.other
		if got := certificateInUse(s, ""); got.Status != tt.want || !strings.Contains(got.Message, tt.says) {
			t.Errorf("%+v: %+v", tt, got)
		}
	}
}

// A Certificate that cannot be read is told, and one that is not as it is to be makes a cluster no less ready.
func TestCertificateThatLags(t *testing.T) {
	s := healthy()
	s.TLS.Enabled, s.TLS.Known = true, true
	if got := certificateInUse(s, "it cannot be read"); got.Status != metav1.ConditionTrue || got.Message != "it cannot be read" {
		t.Errorf("%+v", got)
	}
	for _, step := range []plan.Step{plan.RecordCertificate{}, plan.ApplyCertificate{}} {
		got := conditionsOf(Reconciliation{Snapshot: s, Decision: plan.Decision{Situation: plan.Steady, Healthy: true, Step: step},
			Err: errors.New("the webhook does not answer")})
		if !meta.IsStatusConditionTrue(got, v1alpha1.ConditionReady) {
			t.Errorf("%s: %+v", step.Name(), meta.FindStatusCondition(got, v1alpha1.ConditionReady))
		}
	}
}
