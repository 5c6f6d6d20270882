// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"

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
	got := certificateInUse(s)
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
