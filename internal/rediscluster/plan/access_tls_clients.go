// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// AuthoritiesWithin is for how long instances are told to load certificates to trust that have changed, from the first time that each was
// told to the last: by then its kubelet has put them into the files of the pod. What an instance trusts it tells nobody.
const AuthoritiesWithin = 5 * time.Minute

// clientCertificates is what redis.conf is to want of clients now. A certificate is not wanted before all that the operator runs shows one,
// and from then on until nobody asks for that any more: whoever comes without one later is refused.
func (in input) clientCertificates() v1alpha1.ClientCertificates {
	asked := in.desired.ClientCertificates
	if asked != v1alpha1.ClientCertificatesRequired || len(in.snap.Instances) == 0 || in.wantsCertificates() || in.certificatesShown().Holds {
		return asked
	}
	// Who was told Required goes on to be.
	return cmp.Or(in.snap.ClientCertificates, v1alpha1.ClientCertificatesOptional)
}

// wantsCertificates reports whether an instance is seen to want a certificate of clients.
func (in input) wantsCertificates() bool {
	want := redisconf.AuthClientsOf(v1alpha1.ClientCertificatesRequired)
	return slices.ContainsFunc(in.snap.Reachable(), func(pod *snapshot.Instance) bool {
		return pod.TLSStage() > redisconf.TLSPlain && pod.Redis.Settings[redisconf.AuthClients] == want
	})
}

// certificatesShown holds when all that the operator runs shows instances a certificate.
func (in input) certificatesShown() Verdict {
	if problem := in.snap.TLS.Problem; problem != "" || !in.snap.TLS.Enabled {
		return fails(CertificatesShown, "no certificate is asked of clients before there is one to show: %s",
			cmp.Or(problem, "TLS is not in use"))
	}
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.ExporterShowsNone {
			return fails(CertificatesShown, "no certificate is asked of clients before %s restarts: its exporter has none to show", pod.Name)
		}
	}
	if e := in.snap.External; e != nil && in.desired.External && in.desired.TLS == v1alpha1.TLSRequired {
		for _, g := range e.Gateways {
			if g.ShowsNone {
				return fails(CertificatesShown, "no certificate is asked of clients before gateway %s has ended, which has none to show", g.Pod)
			}
		}
	}
	return holds(CertificatesShown)
}

// planTLSClients has running instances want of clients what redis.conf says. Connections that are open stay. Each loads its certificate in
// the same command: sessions of TLS that clients could resume end by that, which would let clients in that showed nothing.
func planTLSClients(in input) Step {
	if in.desired.TLS == "" {
		return nil
	}
	step, want := SetTLS{}, redisconf.AuthClientsOf(in.clients)
	var names []string
	for _, pod := range in.tlsStages().pods {
		if pod.TLSStage() == redisconf.TLSPlain || pod.Redis.Settings[redisconf.AuthClients] == want {
			continue
		}
		step.Changes = append(step.Changes, InstanceConfig{On: target(pod), Engine: pod.Redis.EngineVersion(), Settings: map[string]string{
			redisconf.AuthClients: want, "tls-cert-file": path.Join(in.desired.CertificateDir, path.Base(redisconf.TLSCertificatePath))}})
		names = append(names, pod.Name)
	}
	if len(names) == 0 {
		return nil
	}
	step.Reason = fmt.Sprintf("%s: certificates of clients are %s from now on", list(names),
		map[string]string{"no": "not looked at", "optional": "optional", "yes": "required"}[want])
	return step
}

// clientsInForce is what clients can rely on: with Required they have to show a certificate, since an instance wants one, or might.
func (in input) clientsInForce() v1alpha1.ClientCertificates {
	if in.wantsCertificates() ||
		in.snap.ClientCertificates == v1alpha1.ClientCertificatesRequired && in.tlsStages().absent != "" {
		return v1alpha1.ClientCertificatesRequired
	}
	return in.clients
}

// clientsWait says what keeps instances, which have come to the stage of TLS that is asked for, from wanting of clients what is asked for;
// empty: nothing.
func (in input) clientsWait(seen tlsStages) string {
	if in.desired.TLS == v1alpha1.TLSDisabled {
		return ""
	}
	if in.clients != in.desired.ClientCertificates {
		return in.certificatesShown().Reason
	}
	var names []string
	for _, pod := range seen.pods {
		if pod.Redis.Settings[redisconf.AuthClients] != redisconf.AuthClientsOf(in.clients) {
			names = append(names, pod.Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return "these instances do not do with certificates of clients what is asked for yet: " + list(names)
}

// authoritiesLoaded identifies what is trusted that all instances were told to load, or is snapshot.AuthoritiesChanging.
func (in input) authoritiesLoaded(seen tlsStages) string {
	was, is := in.snap.LoadedAuthorities, in.snap.TLS.Authorities
	usable := in.snap.TLS.Problem == ""
	switch {
	case is == "" || was == is || was == "" && !usable:
		return was
	case usable && (was == "" || len(in.snap.Instances) == 0 || in.haveLoaded(seen)):
		return is
	}
	return snapshot.AuthoritiesChanging
}

// haveLoaded reports whether all instances have loaded what they are to trust, from files that have it by now. One that takes no TLS has
// loaded nothing, and will when it does.
func (in input) haveLoaded(seen tlsStages) bool {
	return seen.absent == "" && in.now.Sub(in.snap.TLS.AuthoritiesSince) >= AuthoritiesWithin &&
		!slices.ContainsFunc(seen.pods, func(pod *snapshot.Instance) bool {
			return pod.OtherAuthorities || pod.TLSStage() > redisconf.TLSPlain && pod.Redis.AuthoritiesLoadedFor < AuthoritiesWithin
		})
}
