// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Instances want a certificate of clients when all that the operator runs shows one, all at once and with their certificate loaded anew,
// and go on to want it whatever comes later; when none is asked for any more, clients are told so when no instance wants one.
func TestCertificatesOfClients(t *testing.T) {
	const none, optional, required = v1alpha1.ClientCertificatesNone, v1alpha1.ClientCertificatesOptional, v1alpha1.ClientCertificatesRequired
	first := func(s *snapshot.Snapshot) *snapshot.Instance { return &s.Instances[0] }
	all := func(want v1alpha1.ClientCertificates) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Redis.Settings[redisconf.AuthClients] = redisconf.AuthClientsOf(want)
			}
			s.ClientCertificates = want
		}
	}
	gateways := func(_ *Desired, s *snapshot.Snapshot) {
		s.External = &snapshot.External{Gateways: []snapshot.Gateway{{Pod: "front"}, {Pod: "former", ShowsNone: true}}}
	}
	for name, tt := range map[string]struct {
		asked    v1alpha1.ClientCertificates
		stage    redisconf.TLSStage
		change   func(d *Desired, s *snapshot.Snapshot)
		file     v1alpha1.ClientCertificates
		told     int
		reliable v1alpha1.ClientCertificates
		waits    string
	}{
		"as it was": {asked: optional, file: optional, reliable: optional},
		"none":      {asked: none, file: none, told: 6, reliable: none, waits: "do not do with certificates"},
		"required":  {asked: required, file: required, told: 6, reliable: required, waits: "do not do with certificates"},
		"none, of a certificate that is no good": {asked: none, change: func(_ *Desired, s *snapshot.Snapshot) { s.TLS.Problem = "it expired" },
			file: none, told: 6, reliable: none, waits: "do not do with certificates"},
		"required, with two": {asked: required, stage: redisconf.TLSBoth, file: required, told: 6, reliable: required, waits: "do not do"},
		"it is":              {asked: required, change: all(required), file: required, reliable: required},
		"one was not told": {asked: required, change: func(d *Desired, s *snapshot.Snapshot) {
			all(required)(d, s)
			first(s).Redis.Settings[redisconf.AuthClients] = "optional"
		}, file: required, told: 1, reliable: required, waits: first(formed()).Name},
		"an exporter would be refused": {asked: required, change: func(_ *Desired, s *snapshot.Snapshot) { first(s).ExporterShowsNone = true },
			file: optional, reliable: optional, waits: "its exporter has none to show"},
		"an exporter comes later": {asked: required, change: func(d *Desired, s *snapshot.Snapshot) {
			all(required)(d, s)
			first(s).ExporterShowsNone = true
		}, file: required, reliable: required},
		"the status is lost": {asked: required, change: func(d *Desired, s *snapshot.Snapshot) {
			all(required)(d, s)
			s.ClientCertificates, first(s).ExporterShowsNone = "", true
		}, file: required, reliable: required},
		"a gateway would be refused": {asked: required, change: func(d *Desired, s *snapshot.Snapshot) {
			d.External = true
			gateways(d, s)
		}, file: optional, reliable: optional, waits: "gateway former has ended"},
		"a gateway that connects plainly": {asked: required, stage: redisconf.TLSBoth, change: func(d *Desired, s *snapshot.Snapshot) {
			d.External = true
			gateways(d, s)
		}, file: required, told: 6, reliable: required, waits: "do not do"},
		"a gateway that is to go": {asked: required, change: gateways, file: required, told: 6, reliable: required, waits: "do not do"},
		"no gateway yet": {asked: required, change: func(d *Desired, _ *snapshot.Snapshot) { d.External = true },
			file: required, told: 6, reliable: required, waits: "do not do"},
		"clients were told, and no instance was": {asked: required, change: func(_ *Desired, s *snapshot.Snapshot) {
			s.ClientCertificates, first(s).ExporterShowsNone = required, true
		}, file: required, told: 6, reliable: required, waits: "do not do"},
		"a certificate that is no good": {asked: required, change: func(_ *Desired, s *snapshot.Snapshot) { s.TLS.Problem = "it expired" },
			file: optional, reliable: optional, waits: "it expired"},
		"taken back": {asked: optional, change: all(required), file: optional, told: 6, reliable: required, waits: "do not do with certificates"},
		"taken back, one does not answer": {asked: optional, change: func(_ *Desired, s *snapshot.Snapshot) {
			s.ClientCertificates, first(s).Redis = required, nil
		}, file: optional, reliable: required},
		"as it was, one does not answer": {asked: optional, change: func(_ *Desired, s *snapshot.Snapshot) { first(s).Redis = nil },
			file: optional, reliable: optional},
		"taken back, and done": {asked: optional, change: func(_ *Desired, s *snapshot.Snapshot) { s.ClientCertificates = required },
			file: optional, reliable: optional},
	} {
		t.Run(name, func(t *testing.T) {
			stage, mode := tt.stage, v1alpha1.TLSBoth
			if stage == redisconf.TLSUnknown {
				stage, mode = redisconf.TLSRequired, v1alpha1.TLSRequired
			}
			d, s := atTLSStages(mode, stage)
			s.TLSStage, s.TLSMode, s.ClientCertificates, d.ClientCertificates = stage, mode, optional, tt.asked
			if tt.change != nil {
				tt.change(&d, s)
			}
			shape := ShapeOf(d, s, now)
			if shape.TLS.Clients != tt.file {
				t.Errorf("redis.conf has %s, want %s", shape.TLS.Clients, tt.file)
			}
			decision := shape.Next(Pending{})
			step, is := decision.Step.(SetTLS)
			if is != (tt.told > 0) || len(step.Changes) != tt.told {
				t.Errorf("got %+v, want %d told", decision.Step, tt.told)
			}
			for _, change := range step.Changes {
				if change.Settings[redisconf.AuthClients] != redisconf.AuthClientsOf(tt.file) ||
					change.Settings["tls-cert-file"] != redisconf.TLSCertificatePath || len(change.Settings) != 2 {
					t.Errorf("%s is told %v", change.On.Pod, change.Settings)
				}
			}
			if decision.TLS.Clients != tt.reliable || (tt.waits == "") != (decision.TLS.Waits == "" || s.Instances[0].Redis == nil) ||
				!strings.Contains(decision.TLS.Waits, tt.waits) {
				t.Errorf("clients can rely on %s, and %q is waited for", decision.TLS.Clients, decision.TLS.Waits)
			}
		})
	}
}

// A new cluster wants certificates of clients from the start, whatever else it lacks. One that has an instance does not before there is a
// certificate to show, nor does one without TLS.
func TestCertificatesOfClientsFromTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		want   v1alpha1.ClientCertificates
	}{
		"no instance": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances, s.TLS.Problem = nil, "it is being made"
		}, v1alpha1.ClientCertificatesRequired},
		"one instance": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Instances, s.TLS.Problem = s.Instances[:1], "it is being made"
		}, v1alpha1.ClientCertificatesOptional},
		"no TLS": {func(d *Desired, s *snapshot.Snapshot) {
			d.TLS, s.TLS.Enabled = v1alpha1.TLSDisabled, false
			for i := range s.Instances {
				s.Instances[i].HasCertificate = false
				setTLSStage(&s.Instances[i], redisconf.TLSPlain)
			}
		}, v1alpha1.ClientCertificatesOptional},
	} {
		d, s := atTLSStages(v1alpha1.TLSRequired, redisconf.TLSRequired)
		d.ClientCertificates = v1alpha1.ClientCertificatesRequired
		tt.change(&d, s)
		if got := ShapeOf(d, s, now).TLS.Clients; got != tt.want {
			t.Errorf("%s: redis.conf has %s, want %s", name, got, tt.want)
		}
	}
}

// An engine would want certificates of clients if nobody told it otherwise. As long as it takes no TLS it wants none of anybody, and is
// told nothing of that; as soon as it does, it counts, also while nobody was told of its port for TLS.
func TestCertificatesOfClientsOfPlainInstances(t *testing.T) {
	const optional, required = v1alpha1.ClientCertificatesOptional, v1alpha1.ClientCertificatesRequired
	for _, tt := range []struct {
		stage                 redisconf.TLSStage
		asked, file, reliable v1alpha1.ClientCertificates
		told                  int
	}{
		{stage: redisconf.TLSPlain, asked: required, file: optional, reliable: optional},
		{stage: redisconf.TLSOpened, asked: required, file: required, reliable: required},
		{stage: redisconf.TLSOpened, asked: optional, file: optional, reliable: required, told: 6},
	} {
		d, s := atTLSStages(v1alpha1.TLSBoth, tt.stage)
		d.ClientCertificates, s.ClientCertificates, s.Instances[0].ExporterShowsNone = tt.asked, optional, true
		for i := range s.Instances {
			s.Instances[i].Redis.Settings[redisconf.AuthClients] = "yes"
		}
		shape := ShapeOf(d, s, now)
		step, _ := planTLSClients(shape.in).(SetTLS)
		reliable := shape.Next(Pending{}).TLS.Clients
		if shape.TLS.Clients != tt.file || reliable != tt.reliable || len(step.Changes) != tt.told {
			t.Errorf("stage %d, %s: redis.conf has %s, clients can rely on %s, %d are told", tt.stage, tt.asked, shape.TLS.Clients, reliable,
				len(step.Changes))
		}
	}
}

// Nothing is changed while spec.tls is gone.
func TestCertificatesOfClientsWithoutTLSInTheSpec(t *testing.T) {
	d, s := atTLSStages("", redisconf.TLSRequired)
	for i := range s.Instances {
		s.Instances[i].Redis.Settings[redisconf.AuthClients] = "yes"
	}
	if step := planTLSClients(ShapeOf(d, s, now).in); step != nil {
		t.Errorf("%+v", step)
	}
}

// What instances trust they tell nobody: they are told to load it as long as their files may be of before, also by the next process. It is
// in the status from before the first is told until the last was told often enough.
func TestAuthoritiesAreLoaded(t *testing.T) {
	const changing = snapshot.AuthoritiesChanging
	first := func(change func(pod *snapshot.Instance)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) { change(&s.Instances[0]) }
	}
	for name, tt := range map[string]struct {
		loaded       string
		since, lasts time.Duration
		change       func(*Desired, *snapshot.Snapshot)
		want         string
		told         bool
	}{
		"nothing is known of before":        {want: "new"},
		"as it was":                         {loaded: "new", want: "new"},
		"they have changed":                 {loaded: "old", since: time.Second, want: changing},
		"the status says so":                {loaded: changing, since: time.Second, want: changing, told: true},
		"they have changed back":            {loaded: changing, since: time.Second, want: changing, told: true},
		"for long":                          {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: "new", told: true},
		"for long, and nobody was told":     {loaded: "old", since: AuthoritiesWithin, want: changing},
		"for long, and they were told once": {loaded: changing, since: AuthoritiesWithin, want: changing, told: true},
		"they changed once more":            {loaded: changing, since: time.Second, lasts: AuthoritiesWithin, want: changing, told: true},
		"nothing is to be trusted any more": {loaded: "old", want: "old",
			change: func(_ *Desired, s *snapshot.Snapshot) { s.TLS.Authorities = "" }},
		"nobody runs": {loaded: "old", since: time.Second, want: "new",
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances = nil }},
		"one alone runs": {loaded: "old", since: time.Second, want: changing,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances = s.Instances[:1] }},
		"one takes no TLS": {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: "new", told: true,
			change: first(func(pod *snapshot.Instance) { setTLSStage(pod, redisconf.TLSPlain); pod.Redis.AuthoritiesLoadedFor = 0 })},
		"one has just opened its port for TLS": {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: changing, told: true,
			change: first(func(pod *snapshot.Instance) {
				setTLSStage(pod, redisconf.TLSOpened)
				pod.Redis.AuthoritiesLoadedFor = 0
			})},
		"one was told later": {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: changing, told: true,
			change: first(func(pod *snapshot.Instance) { pod.Redis.AuthoritiesLoadedFor = AuthoritiesWithin - time.Second })},
		"one does not answer": {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: changing, told: true,
			change: first(func(pod *snapshot.Instance) { pod.Redis = nil })},
		"one has the files of another Secret": {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: changing, told: true,
			change: first(func(pod *snapshot.Instance) { pod.OtherAuthorities = true })},
		"they are no good": {loaded: "old", since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: changing,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.TLS.Problem = "no good" }},
		"they are no good now": {loaded: changing, since: AuthoritiesWithin, lasts: AuthoritiesWithin, want: changing,
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.TLS.Problem, s.Instances[0].Redis.OldCertificate = "no good", true
			}},
		"they are no good, and nothing is known": {want: "", change: func(_ *Desired, s *snapshot.Snapshot) { s.TLS.Problem = "no good" }},
		"a pause": {loaded: changing, since: time.Hour, want: changing, change: func(d *Desired, _ *snapshot.Snapshot) {
			d.Paused = true
		}},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := atTLSStages(v1alpha1.TLSRequired, redisconf.TLSRequired)
			s.TLSStage, s.TLSMode, s.LoadedAuthorities = redisconf.TLSRequired, v1alpha1.TLSRequired, tt.loaded
			s.TLS.Authorities, s.TLS.AuthoritiesSince = "new", now.Add(-tt.since)
			for i := range s.Instances {
				s.Instances[i].Redis.CertificateSeen, s.Instances[i].Redis.AuthoritiesLoadedFor = true, tt.lasts
			}
			if tt.change != nil {
				tt.change(&d, s)
			}
			decision := ShapeOf(d, s, now).Next(Pending{})
			if told := Is[ReloadCertificates](decision.Step); told != tt.told || decision.TLS.Authorities != tt.want {
				t.Errorf("got %+v, and %q was loaded", decision.Step, decision.TLS.Authorities)
			}
		})
	}
}

// A change of what is trusted that is taken back within its time is a change: whoever loaded what was there meanwhile is told to load what
// was there before.
func TestAuthoritiesThatComeBack(t *testing.T) {
	d, s := atTLSStages(v1alpha1.TLSRequired, redisconf.TLSRequired)
	s.TLSStage, s.TLSMode, s.LoadedAuthorities = redisconf.TLSRequired, v1alpha1.TLSRequired, "A"
	for i := range s.Instances {
		s.Instances[i].Redis.CertificateSeen = true
	}
	for _, tt := range []struct {
		is   string
		told bool
	}{{"A", false}, {"B", false}, {"B", true}, {"A", true}} {
		s.TLS.Authorities, s.TLS.AuthoritiesSince = tt.is, now
		decision := ShapeOf(d, s, now).Next(Pending{})
		if told := Is[ReloadCertificates](decision.Step); told != tt.told {
			t.Errorf("%s after %q: %+v", tt.is, s.LoadedAuthorities, decision.Step)
		}
		s.LoadedAuthorities = decision.TLS.Authorities
	}
	if !s.AuthoritiesChange() {
		t.Errorf("%q is what all have loaded", s.LoadedAuthorities)
	}
	s.TLS.AuthoritiesSince = now.Add(-AuthoritiesWithin)
	for i := range s.Instances {
		s.Instances[i].Redis.AuthoritiesLoadedFor = AuthoritiesWithin
	}
	if is := ShapeOf(d, s, now).Next(Pending{}).TLS.Authorities; is != "A" {
		t.Errorf("in the end all have loaded %q", is)
	}
}
