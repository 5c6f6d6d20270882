// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// TLSInForce is which connections instances take.
type TLSInForce struct {
	// Mode is what clients can rely on; empty: there is nothing of TLS. Stage is the one of redis.conf.
	Mode  v1alpha1.TLSMode
	Stage redisconf.TLSStage
	// Clients is what clients have to expect of certificates of theirs.
	Clients v1alpha1.ClientCertificates
	// Authorities identifies what is trusted that all instances were told to load, or is snapshot.AuthoritiesChanging.
	Authorities string
	// Waits says, in a sentence, why Mode is not the one asked for; empty when it is.
	Waits string
}

// tlsInForce is what clients can rely on, by what instances show.
func (in input) tlsInForce() TLSInForce {
	seen, asked := in.tlsStages(), in.desired.TLS
	holding := in.holdsCertificates()
	switch {
	case !holding && (asked == "" || asked == v1alpha1.TLSDisabled):
		return TLSInForce{}
	case asked == "": // nothing is done before spec.tls is back, and then all is known that was
		return TLSInForce{Mode: cmp.Or(in.snap.TLSMode, in.firstTLSMode(), v1alpha1.TLSRequired), Stage: in.tls,
			Clients: in.snap.ClientCertificates, Authorities: in.snap.LoadedAuthorities,
			Waits: "spec.tls is gone, and instances use TLS"}
	}
	is := TLSInForce{Mode: in.snap.TLSMode, Stage: in.tls, Clients: in.clientsInForce(), Authorities: in.authoritiesLoaded(seen)}
	if is.Mode == "" {
		is.Mode = in.firstTLSMode()
	}
	settled := seen.absent == "" && in.portsKnown(seen).Holds
	switch {
	case asked == v1alpha1.TLSDisabled && seen.most <= redisconf.TLSBoth && len(seen.pods) > 0:
		is.Mode = v1alpha1.TLSDisabled
	case asked == v1alpha1.TLSRequired && settled && seen.least == redisconf.TLSRequired:
		is.Mode = v1alpha1.TLSRequired
	case asked != v1alpha1.TLSDisabled && settled && seen.least >= redisconf.TLSBoth && is.Mode == v1alpha1.TLSDisabled:
		is.Mode = v1alpha1.TLSBoth
	}
	if is.Mode == v1alpha1.TLSRequired && (seen.takesPlain() || in.tls <= redisconf.TLSBoth && !in.desired.Paused) {
		is.Mode = v1alpha1.TLSBoth // from before one can open its plain port until all have closed theirs
	}
	is.Waits = cmp.Or(in.tlsWaits(is, seen), in.clientsWait(seen))
	return is
}

// takesPlain reports whether an instance has its port for plain connections open.
func (s tlsStages) takesPlain() bool {
	return slices.ContainsFunc(s.pods, func(pod *snapshot.Instance) bool { return pod.TLSStage() <= redisconf.TLSBoth })
}

// firstTLSMode is the mode of a cluster whose status does not have one.
func (in input) firstTLSMode() v1alpha1.TLSMode {
	if !in.snap.Formed {
		return in.desired.TLS
	}
	switch {
	case in.tls > redisconf.TLSBoth:
		return v1alpha1.TLSRequired
	case in.tls == redisconf.TLSBoth:
		return v1alpha1.TLSBoth
	}
	return v1alpha1.TLSDisabled
}

func (in input) tlsWaits(is TLSInForce, seen tlsStages) string {
	asked := in.desired.TLS
	goal, reached := redisconf.TLSGoal(asked), is.Mode == asked
	if !reached && seen.absent != "" {
		return seen.absent
	}
	var names []string
	for _, pod := range seen.pods {
		if pod.TLSStage() != goal || pod.HasCertificate != (asked != v1alpha1.TLSDisabled) {
			names = append(names, pod.Name)
		}
	}
	switch {
	case len(names) > 0:
		return "these instances do not take the connections that are asked for yet: " + list(names)
	case reached:
		return takesTLS(seen).Reason
	}
	return in.portsKnown(seen).Reason
}
