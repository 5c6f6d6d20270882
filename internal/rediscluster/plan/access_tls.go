// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ReloadCertificates makes running instances read their certificate again.
type ReloadCertificates struct {
	base
	On []Target
}

// Name implements Step.
func (ReloadCertificates) Name() string { return "ReloadCertificates" }

// planTLS wants a certificate before anything is made that needs one. Without it there is no
// reaching an instance, and a port that is not encrypted is never a way.
func planTLS(in input) Step {
	if in.desired.TLS == "" {
		for i := range in.snap.Instances {
			if pod := &in.snap.Instances[i]; pod.HasCertificate {
				return Stall{base: base{fmt.Sprintf("spec.tls is gone, and %s uses TLS: put it back with mode %s; if TLS is to end, set Both and then Disabled, and remove it when status.tls is gone",
					pod.Name, in.tlsInForce().Mode)}, Cause: "CertificateUnavailable"}
			}
		}
	}
	if in.snap.TLS.Known || !in.snap.TLS.Enabled {
		return nil
	}
	if in.snap.TLS.Waits {
		return Wait{base: base{in.snap.TLS.Problem}, After: untilIssued}
	}
	return Stall{base: base{in.snap.TLS.Problem}, Cause: "CertificateUnavailable"}
}

// planCertificates loads a renewed certificate, which the kubelet has put, or will have put,
// into the files of the pods. Each look at an instance is followed by one attempt: those come
// once a minute until it shows the new one. What an instance trusts it does not show, so it is told for a while (AuthoritiesWithin), but
// not before the status says so, which the next process goes by, and not of what cannot be used.
func planCertificates(in input) Step {
	if in.snap.AuthoritiesChange() && (in.snap.LoadedAuthorities != snapshot.AuthoritiesChanging || in.snap.TLS.Problem != "") {
		return nil
	}
	step := ReloadCertificates{}
	var names []string
	for _, pod := range in.snap.Reachable() {
		if (pod.Redis.OldCertificate || in.snap.AuthoritiesChange()) && pod.Redis.CertificateSeen && !pod.Terminating {
			step.On, names = append(step.On, target(pod)), append(names, pod.Name)
		}
	}
	if len(step.On) == 0 {
		return nil
	}
	step.Reason = "these instances show another certificate than the Secret holds: " + list(names)
	if in.snap.AuthoritiesChange() {
		step.Reason = "the certificates that instances are to trust have changed: " + list(names)
	}
	return step
}
