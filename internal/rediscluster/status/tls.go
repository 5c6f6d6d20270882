// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// notAfter is when the certificate expires; nil without one.
func notAfter(s *snapshot.Snapshot) *metav1.Time {
	if s.TLS.NotAfter.IsZero() {
		return nil
	}
	at := metav1.NewTime(s.TLS.NotAfter)
	return &at
}

// certificateInUse reports whether instances show the certificate that the Secret holds.
func certificateInUse(s *snapshot.Snapshot, unread string) metav1.Condition {
	condition := func(holds bool, reason, message string) metav1.Condition {
		return conditions.Condition(v1alpha1.ConditionCertificateInUse, conditions.Status(holds), reason, message)
	}
	if s.TLS.Waits {
		return condition(false, "NotIssued", s.TLS.Problem)
	}
	if s.TLS.Problem != "" {
		return condition(false, "SecretUnusable", s.TLS.Problem)
	}
	for _, pod := range s.Reachable() {
		if pod.Redis.OldCertificate && pod.TLSError != "" {
			return condition(false, "NotLoaded", cut(pod.Name+" does not take TLS, and is reached without: "+pod.TLSError))
		}
		if pod.Redis.OldCertificate {
			return condition(false, "NotLoaded",
				pod.Name+" shows another certificate than the Secret holds; the files of pods change a minute or two after the Secret")
		}
	}
	if s.AuthoritiesChange() {
		for i := range s.Instances {
			if s.Instances[i].OtherAuthorities {
				return condition(false, "NotLoaded", s.Instances[i].Name+" has what it trusts from another Secret until it restarts")
			}
		}
		return condition(false, "NotLoaded",
			"the certificates that are trusted have changed; instances are told to load them until their files have, minutes after the Secret")
	}
	return condition(true, "InUse", cut(unread))
}

// tlsInForce is which connections instances take; of a paused cluster what it was, because redis.conf stays as it is.
func tlsInForce(was *v1alpha1.TLSStatus, p Reconciliation) *v1alpha1.TLSStatus {
	switch is := p.Decision.TLS; {
	case was != nil && p.Decision.Situation == plan.Paused:
		paused := *was
		if was.Mode == v1alpha1.TLSRequired && is.Mode != "" && is.Mode != was.Mode {
			paused.Mode = v1alpha1.TLSBoth // a plain port is open
		}
		if is.Authorities == snapshot.AuthoritiesChanging {
			paused.Authorities = is.Authorities // an instance that starts loads what is there now
		}
		return &paused
	case p.Decision.Situation == plan.Paused || p.Decision.Situation == plan.Deleting:
		return was
	case is.Mode == "":
		return nil
	default:
		return &v1alpha1.TLSStatus{Mode: is.Mode, Stage: is.Stage.String(), ClientCertificates: is.Clients, Authorities: is.Authorities}
	}
}

// tlsModeInForce reports whether clients can rely on the connections that are asked for.
func tlsModeInForce(d plan.Decision) metav1.Condition {
	if d.TLS.Waits != "" {
		return conditions.Condition(v1alpha1.ConditionTLSModeInForce, metav1.ConditionFalse, "Changing", cut(d.TLS.Waits))
	}
	return conditions.Condition(v1alpha1.ConditionTLSModeInForce, metav1.ConditionTrue, string(d.TLS.Mode), "")
}
