// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Without a certificate nothing can be done, so it is asked for first; a cluster that has one is healed first, because nobody knows
// whether cert-manager answers. Who has one is not called ill for what is to change of it. A cluster that hibernates keeps its own.
func TestCertificate(t *testing.T) {
	masterless := func() (Desired, *snapshot.Snapshot) {
		d, s := healthy()
		comeBackEmpty(s, 1, 0)
		introduce(s)
		s.Find(1, 1).Redis.MasterLinkDownFor = electionTimeout * 2
		return d, s
	}
	asleep := func() (Desired, *snapshot.Snapshot) {
		d, s := toStop()
		return d, stop(s)
	}
	for name, tt := range map[string]struct {
		cluster func() (Desired, *snapshot.Snapshot)
		unknown bool
		noted   bool
		pending string
		// children are not as rendered.
		children []string
		want     string
		is       Situation
	}{
		"it is written down first":       {cluster: healthy, unknown: true, pending: "c-tls", want: "RecordCertificate", is: Healing},
		"then it is made":                {cluster: healthy, unknown: true, noted: true, pending: "c-tls", want: "ApplyCertificate", is: Healing},
		"it is, and is waited for":       {cluster: healthy, unknown: true, noted: true, want: "Wait", is: Healing},
		"healing comes first":            {cluster: masterless, noted: true, pending: "c-tls", want: "Promote", is: Healing},
		"a healthy cluster has it":       {cluster: healthy, noted: true, pending: "c-tls", want: "ApplyCertificate", is: Steady},
		"and goes on to be healthy":      {cluster: healthy, pending: "c-tls", want: "RecordCertificate", is: Steady},
		"a cluster that hibernates, too": {cluster: asleep, noted: true, pending: "c-tls", want: "ApplyCertificate", is: Hibernated},
		"it wakes first": {cluster: func() (Desired, *snapshot.Snapshot) {
			d, s := asleep()
			d.Hibernate = false
			return d, s
		}, noted: true, pending: "c-tls", children: []string{"StatefulSet c-0"}, want: "Wake"},
		"and stops first": {cluster: func() (Desired, *snapshot.Snapshot) {
			d, s := asleep()
			s.Shards[0].Replicas = 2
			return d, s
		}, noted: true, pending: "c-tls", children: []string{"StatefulSet c-0"}, want: "Hibernate"},
		"and without one yet": {cluster: asleep, unknown: true, pending: "c-tls", want: "RecordCertificate", is: Hibernating},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := tt.cluster()
			if s.TLS = (snapshot.TLS{Enabled: true, Known: true}); tt.unknown {
				s.TLS.Known, s.TLS.Waits, s.TLS.Problem = false, true, "it is being made"
			}
			if tt.noted {
				s.Certificate = "c-tls"
			}
			got := ShapeOf(d, s, now).Next(Pending{Certificate: tt.pending, Children: tt.children})
			if got.Step.Name() != tt.want || tt.is != "" && got.Situation != tt.is {
				t.Errorf("%s: %s (%s), want %s (%s)", got.Step.Name(), got.Step.Why(), got.Situation, tt.want, tt.is)
			}
		})
	}
}
