// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

type stages = []redisconf.TLSStage

// atTLSStages is a cluster whose instances are at these stages, in their order; the last one counts for the rest. All know each
// other's ports.
func atTLSStages(mode v1alpha1.TLSMode, are ...redisconf.TLSStage) (Desired, *snapshot.Snapshot) {
	d, s := desired(), formed()
	d.TLS, d.CertificateDir = mode, redisconf.TLSDir
	s.TLS = snapshot.TLS{Enabled: true, Known: true}
	for i := range s.Instances {
		in := &s.Instances[i]
		in.HasCertificate = true
		setTLSStage(in, are[min(i, len(are)-1)])
		in.InEndpoints = true
	}
	tellPorts(s)
	return d, s
}

func setTLSStage(in *snapshot.Instance, stage redisconf.TLSStage) {
	in.Redis.Settings = maps.Clone(redisconf.TLS{Stage: stage}.Settings(redisconf.TLSDir))
	in.TwoPorts = stage != redisconf.TLSRequired
	in.Way = snapshot.Way{SecondPort: stage != redisconf.TLSRequired && stage != redisconf.TLSPlain, Plain: stage == redisconf.TLSPlain}
}

func tellPorts(s *snapshot.Snapshot) {
	for _, a := range s.Reachable() {
		for id, peer := range a.Redis.Peers {
			if other := s.ByNodeID(id); other != nil {
				peer.Port = other.TLSStage().AnnouncedTLSPort()
				a.Redis.Peers[id] = peer
			}
		}
	}
}

// Every stage leads to the next, in both directions, and to that of an intention that has changed: the only one whose settings
// instances of the present one can talk to. A step that was carried out on one instance alone is finished, and redis.conf has the
// stage from which an instance that restarts finds the others.
func TestTLSStages(t *testing.T) {
	const (
		plain, opened, bus, links = redisconf.TLSPlain, redisconf.TLSOpened, redisconf.TLSBus, redisconf.TLSLinks
		unlinked, both, second    = redisconf.TLSUnlinked, redisconf.TLSBoth, redisconf.TLSSecond
		required                  = redisconf.TLSRequired
		unknown                   = redisconf.TLSUnknown
	)
	// silent makes instances from the one at that place on not answer.
	silent := func(from int) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			for i := from; i < len(s.Instances); i++ {
				s.Instances[i].Redis = nil
			}
		}
	}
	// refuses makes TLS fail of the first instance.
	refuses := func(_ *Desired, s *snapshot.Snapshot) {
		s.Instances[0].Way, s.Instances[0].TLSError = snapshot.Way{Plain: true}, "certificate has expired"
	}
	// unheard makes one instance not know the port of the first. What clients can rely on is both.
	unheard := func(_ *Desired, s *snapshot.Snapshot) {
		peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Port = 1 })
		s.TLSMode = v1alpha1.TLSBoth
	}
	for name, tt := range map[string]struct {
		mode   v1alpha1.TLSMode
		was    redisconf.TLSStage
		at     stages
		change func(d *Desired, s *snapshot.Snapshot)
		file   redisconf.TLSStage
		to     redisconf.TLSStage // of those that are told; unknown: nobody is
		told   int
		why    string
		// settled: no step is wanted, not even one that waits.
		settled bool
	}{
		"on, from the beginning":     {mode: v1alpha1.TLSBoth, was: plain, at: stages{plain}, file: plain, to: opened, told: 6},
		"some are opened":            {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened, plain}, file: plain, to: opened, told: 5},
		"all are opened":             {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain, to: bus, told: 6},
		"one was not told":           {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened, bus}, file: bus, to: bus, told: 1},
		"one alone was told":         {mode: v1alpha1.TLSBoth, was: plain, at: stages{bus, opened}, file: plain, to: opened, told: 1},
		"one started as it was":      {mode: v1alpha1.TLSBoth, was: bus, at: stages{plain, links}, file: bus, to: bus, told: 1},
		"the bus is encrypted":       {mode: v1alpha1.TLSBoth, was: bus, at: stages{bus}, file: bus, to: links, told: 6},
		"some links":                 {mode: v1alpha1.TLSBoth, was: bus, at: stages{bus, links}, file: bus, to: links, told: 1},
		"all links":                  {mode: v1alpha1.TLSBoth, was: bus, at: stages{links}, file: bus, to: both, told: 6},
		"some announce":              {mode: v1alpha1.TLSBoth, was: bus, at: stages{links, both}, file: bus, to: both, told: 1},
		"both":                       {mode: v1alpha1.TLSBoth, was: bus, at: stages{both}, file: both},
		"on again, on the way back":  {mode: v1alpha1.TLSBoth, was: both, at: stages{unlinked}, file: both, to: both, told: 6},
		"required":                   {mode: v1alpha1.TLSRequired, was: both, at: stages{both}, file: required},
		"required, some have it":     {mode: v1alpha1.TLSRequired, was: required, at: stages{both, required}, file: required},
		"required from the start":    {mode: v1alpha1.TLSRequired, at: stages{required}, file: required},
		"required, by another port":  {mode: v1alpha1.TLSBoth, was: required, at: stages{required}, file: second},
		"some have moved their port": {mode: v1alpha1.TLSBoth, was: second, at: stages{second, required}, file: second},
		"all have moved their port":  {mode: v1alpha1.TLSBoth, was: second, at: stages{second}, file: both, to: both, told: 6},
		"some take plain ones":       {mode: v1alpha1.TLSBoth, was: both, at: stages{second, both}, file: both, to: both, told: 1},
		"required again":             {mode: v1alpha1.TLSRequired, was: second, at: stages{second, required}, file: required},
		"off, from one port":         {mode: v1alpha1.TLSDisabled, was: both, at: stages{both, required}, file: second},
		"off, from another port":     {mode: v1alpha1.TLSDisabled, was: second, at: stages{second}, file: both, to: both, told: 6},
		"off, from both":             {mode: v1alpha1.TLSDisabled, was: both, at: stages{both}, file: both, to: unlinked, told: 6},
		"off, some unlinked":         {mode: v1alpha1.TLSDisabled, was: both, at: stages{unlinked, both}, file: both, to: unlinked, told: 5},
		"off, all unlinked":          {mode: v1alpha1.TLSDisabled, was: both, at: stages{unlinked}, file: both, to: bus, told: 6},
		"off, after some links":      {mode: v1alpha1.TLSDisabled, was: bus, at: stages{bus, links}, file: bus, to: bus, told: 5},
		"off, the ports are pinned":  {mode: v1alpha1.TLSDisabled, was: both, at: stages{bus}, file: bus, to: opened, told: 6},
		"off, one was not told":      {mode: v1alpha1.TLSDisabled, was: bus, at: stages{opened, opened, bus}, file: bus, to: opened, told: 4},
		"off, one started plainly":   {mode: v1alpha1.TLSDisabled, was: both, at: stages{plain, both}, file: both, to: bus, told: 1},
		"off, one started encrypted": {mode: v1alpha1.TLSDisabled, was: plain, at: stages{bus, plain}, file: plain, to: opened, told: 1},
		"off, the bus is plain":      {mode: v1alpha1.TLSDisabled, was: bus, at: stages{opened}, file: plain, to: plain, told: 6},
		"off":                        {mode: v1alpha1.TLSDisabled, was: plain, at: stages{plain}, file: plain},
		"pods lack certificates": {mode: v1alpha1.TLSBoth, was: plain, at: stages{plain}, file: plain,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances[3].HasCertificate = false }},
		"one does not answer": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain,
			change: silent(5), why: "TLS changes when all instances answer: c-2-1 does not answer"},
		"one does not answer in the middle": {mode: v1alpha1.TLSBoth, was: bus, at: stages{links}, file: bus, to: both, told: 5,
			change: silent(5)},
		"one does not answer at the end": {mode: v1alpha1.TLSRequired, was: both, at: stages{both}, file: both, change: silent(5)},
		"nobody answers":                 {mode: v1alpha1.TLSBoth, was: bus, at: stages{bus}, file: bus, change: silent(0)},
		"one does not know the ports": {mode: v1alpha1.TLSRequired, was: both, at: stages{both}, file: both, change: unheard,
			why: "c-1-0 does not know yet that c-0-0 announces port 6380 for TLS"},
		"one was asked plainly": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Way = snapshot.Way{Plain: true} },
			why:    "c-0-0 was not asked by TLS yet"},
		"TLS fails of one": {mode: v1alpha1.TLSRequired, was: both, at: stages{both}, file: both, change: refuses,
			why: "c-0-0 does not take TLS: certificate has expired"},
		"TLS fails of one, and nothing is to change": {mode: v1alpha1.TLSBoth, was: both, at: stages{both}, file: both,
			change: func(d *Desired, s *snapshot.Snapshot) {
				refuses(d, s)
				s.TLSMode = v1alpha1.TLSBoth
			}, settled: true},
		"required again, one takes plain ones": {mode: v1alpha1.TLSRequired, was: both, at: stages{second, both}, file: required},
		"required again, one is down":          {mode: v1alpha1.TLSRequired, was: both, at: stages{second}, file: both, change: silent(5)},
		"nobody answers, and nothing is known": {mode: v1alpha1.TLSDisabled, at: stages{required}, file: second, change: silent(0)},
		"slots move": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain,
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Instances[0].Redis.Migrating = map[uint16]string{1: nodeID(1, 0)}
			}},
		"without a status": {mode: v1alpha1.TLSBoth, at: stages{both, both, both, bus}, file: bus, to: links, told: 3},
		"built without TLS": {mode: v1alpha1.TLSBoth, was: plain, at: stages{plain}, file: plain,
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Instances[0].Redis.Settings = map[string]string{"port": "6379"}
				s.Instances[0].Image, s.Instances[0].Redis.Engine, s.Instances[0].Redis.Version = "r", "redis", "8.0.6"
			}, why: "spec.tls: redis 8.0.6 of image r was built without TLS: use another image, or set spec.tls.mode to Disabled"},

		// What redis.conf has goes by what is known.
		"no instance yet": {mode: v1alpha1.TLSRequired, was: both, at: stages{required}, file: required, settled: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances = nil }},
		"pods without certificates start plainly": {mode: v1alpha1.TLSBoth, was: bus, at: stages{plain}, file: plain, settled: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances[3].HasCertificate = false }},
		"TLS was never asked for": {at: stages{plain}, file: plain, settled: true, change: func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].HasCertificate, s.Instances[i].TwoPorts = false, false
			}
		}},
		"spec.tls is taken away":                              {was: required, at: stages{required}, file: required, settled: true},
		"spec.tls is taken away, and one is behind":           {was: both, at: stages{plain, both}, file: both, settled: true},
		"spec.tls is taken away, and the status of one port":  {at: stages{required}, file: required, settled: true},
		"spec.tls is taken away, and the status of two ports": {at: stages{both}, file: both, settled: true},
		"nobody answers with two ports, and nothing is known": {mode: v1alpha1.TLSBoth, at: stages{both}, file: both, change: silent(0)},
		"nobody answers with one port, and something was known": {mode: v1alpha1.TLSRequired, was: both, at: stages{required}, file: both,
			change: silent(0)},
		"without a status, by what instances show": {mode: v1alpha1.TLSBoth, at: stages{bus}, file: bus, to: links, told: 6,
			change: func(_ *Desired, s *snapshot.Snapshot) {
				for i := range s.Instances {
					s.Instances[i].TwoPorts = false
				}
			}},
		"without a status, few use TLS": {mode: v1alpha1.TLSBoth, at: stages{both, plain}, file: plain, to: opened, told: 1},
		"without a status, half use TLS": {mode: v1alpha1.TLSBoth, at: stages{bus, bus, bus, opened}, file: plain, to: opened,
			told: 3},
		"without a status, off, few use TLS": {mode: v1alpha1.TLSDisabled, at: stages{both, plain}, file: plain, to: opened, told: 1},
		"without a status, off, half use TLS": {mode: v1alpha1.TLSDisabled, at: stages{both, both, both, plain}, file: plain, to: opened,
			told: 3},
		"without a status, off, one started plainly":  {mode: v1alpha1.TLSDisabled, at: stages{plain, both}, file: bus, to: bus, told: 1},
		"without a status, on again, on the way back": {mode: v1alpha1.TLSBoth, at: stages{unlinked}, file: bus, to: both, told: 6},
		"required, on the way back": {mode: v1alpha1.TLSRequired, was: both, at: stages{unlinked}, file: both,
			to: both, told: 6},

		// All change at once, when all answer and know the ports, and one that does not answer is cut off from nobody.
		"one is stopping": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances[5].Terminating = true },
			why:    "TLS changes when all instances answer: c-2-1 does not answer"},
		"one does not tell its settings": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Instances[0].Redis.Settings = nil },
			why:    "TLS changes when all instances answer: c-0-0 does not answer"},
		"one alone answers": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain, change: silent(1),
			why: "TLS changes when all instances answer"},
		"the bus is encrypted, and one is down": {mode: v1alpha1.TLSBoth, was: bus, at: stages{bus}, file: bus, change: silent(5),
			why: "TLS changes when all instances answer: c-2-1 does not answer"},
		"TLS fails of one that is opened": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain, change: refuses,
			why: "c-0-0 does not take TLS: certificate has expired"},
		"TLS fails of one, and clients do not know of TLS yet": {mode: v1alpha1.TLSBoth, was: both, at: stages{both}, file: both,
			change: func(d *Desired, s *snapshot.Snapshot) {
				refuses(d, s)
				s.TLSMode = v1alpha1.TLSDisabled
			}, why: "c-0-0 does not take TLS: certificate has expired"},
		"another port, of which one has not heard": {mode: v1alpha1.TLSBoth, was: second, at: stages{second, required}, file: second,
			change: unheard, why: "c-1-0 does not know yet that c-0-0 announces port 6380 for TLS"},
		"required, and nothing is left to be heard": {mode: v1alpha1.TLSRequired, was: required, at: stages{required}, file: required,
			change: unheard, settled: true},
		"slots are to move": {mode: v1alpha1.TLSBoth, was: plain, at: stages{opened}, file: plain, settled: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Goal = asItStands() }},

		// The way back.
		"off, all but one unlinked": {mode: v1alpha1.TLSDisabled, was: both, at: stages{both, unlinked}, file: both, to: unlinked, told: 1},
		"off, one started plainly among unlinked ones": {mode: v1alpha1.TLSDisabled, was: both, at: stages{plain, unlinked}, file: both,
			to: bus, told: 1},
		"off, links that were asked for again": {mode: v1alpha1.TLSDisabled, was: both, at: stages{links}, file: bus, to: bus, told: 6},
		"off, the others follow one that is opened": {mode: v1alpha1.TLSDisabled, was: bus, at: stages{opened, links}, file: bus, to: bus,
			told: 5},
		"off, one bus is encrypted": {mode: v1alpha1.TLSDisabled, was: bus, at: stages{bus, opened}, file: bus, to: opened, told: 1},
		"off, the bus is plain, and one is down": {mode: v1alpha1.TLSDisabled, was: bus, at: stages{opened}, file: bus, change: silent(5),
			to: plain, told: 5},
		"off, from both, and one is down": {mode: v1alpha1.TLSDisabled, was: both, at: stages{both}, file: both, change: silent(5),
			why: "TLS changes when all instances answer: c-2-1 does not answer"},
		"off, the ports are pinned, and one is down": {mode: v1alpha1.TLSDisabled, was: bus, at: stages{bus}, file: bus, change: silent(5),
			why: "TLS changes when all instances answer: c-2-1 does not answer"},
		"off, some take TLS only, and one is down": {mode: v1alpha1.TLSDisabled, was: second, at: stages{both, second}, file: second,
			change: silent(5), settled: true},
		"off, one does not know the port of those that take TLS only": {mode: v1alpha1.TLSDisabled, was: second, at: stages{second, required},
			file: second, change: unheard, why: "c-1-0 does not know yet that c-0-0 announces port 6380 for TLS"},
		"off, one has no certificate, and TLS does not fail of it": {mode: v1alpha1.TLSDisabled, was: second, at: stages{plain, required},
			file: plain, why: "c-0-0 was not asked by TLS yet", change: func(d *Desired, s *snapshot.Snapshot) {
				refuses(d, s)
				s.Instances[0].HasCertificate = false
			}},
		"off, and built without TLS": {mode: v1alpha1.TLSDisabled, was: plain, at: stages{plain}, file: plain, settled: true,
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Instances[0].Redis.Settings = map[string]string{"port": "6379"}
			}},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := atTLSStages(tt.mode, tt.at...)
			s.TLSStage = tt.was
			if tt.change != nil {
				tt.change(&d, s)
			}
			in := ShapeOf(d, s, now).in
			if in.tls != tt.file {
				t.Errorf("redis.conf has stage %d, want %d", in.tls, tt.file)
			}
			step := planTLSBehind(in)
			if step == nil {
				step = planTLSStage(in)
			}
			if tt.settled && step != nil {
				t.Errorf("%+v, want none", step)
			}
			set, sets := step.(SetTLS)
			switch {
			case tt.to == unknown && sets, tt.to != unknown && (!sets || len(set.Changes) != tt.told):
				t.Fatalf("%+v, want %d to be told", step, tt.told)
			case step != nil && !strings.Contains(step.Why(), tt.why), step == nil && tt.why != "":
				t.Errorf("%+v, want %q", step, tt.why)
			}
			for _, change := range set.Changes {
				told := s.Instances[slices.IndexFunc(s.Instances, func(in snapshot.Instance) bool { return in.Name == change.On.Pod })]
				maps.Copy(told.Redis.Settings, change.Settings)
				if got := redisconf.TLSStageOf(told.Redis.Settings); got != tt.to || len(change.Settings) == 0 {
					t.Errorf("%s comes to stage %d by %v, want %d", change.On.Pod, got, change.Settings, tt.to)
				}
			}
		})
	}
}

// Both announcements change in one command, and certificates come before the port.
func TestTLSStagesDifferByWhatBelongsTogether(t *testing.T) {
	for _, pair := range [][2]redisconf.TLSStage{{redisconf.TLSLinks, redisconf.TLSBoth}, {redisconf.TLSUnlinked, redisconf.TLSBus}} {
		d, s := atTLSStages(v1alpha1.TLSBoth, pair[0])
		step, _ := ShapeOf(d, s, now).in.setTLS(s.Reachable()[:1], pair[1], "").(SetTLS)
		got := slices.Sorted(maps.Keys(step.Changes[0].Settings))
		if want := "cluster-announce-port cluster-announce-tls-port"; strings.Join(got, " ") != want {
			t.Errorf("%v: %v, want %s", pair, got, want)
		}
	}
}

// What clients can rely on changes when all instances have it, and before anything of it ends.
func TestTLSInForce(t *testing.T) {
	const off, both, required = v1alpha1.TLSDisabled, v1alpha1.TLSBoth, v1alpha1.TLSRequired
	const plain, bus, links, unlinked = redisconf.TLSPlain, redisconf.TLSBus, redisconf.TLSLinks, redisconf.TLSUnlinked
	const two, second, one = redisconf.TLSBoth, redisconf.TLSSecond, redisconf.TLSRequired
	down := func(_ *Desired, s *snapshot.Snapshot) { s.Instances[5].Redis = nil }
	silent := func(s *snapshot.Snapshot, from int) {
		for i := range s.Instances[from:] {
			s.Instances[from+i].Redis = nil
		}
	}
	unsecured := func(s *snapshot.Snapshot, n int) {
		for i := range s.Instances[:n] {
			s.Instances[i].HasCertificate = false
		}
	}
	unheard := func(_ *Desired, s *snapshot.Snapshot) {
		peer(s, "c-0-0", "c-1-0", func(p *snapshot.Peer) { p.Port = 0 })
	}
	for name, tt := range map[string]struct {
		asked, was, want v1alpha1.TLSMode
		stage            redisconf.TLSStage
		at               []redisconf.TLSStage
		waits            bool
		change           func(*Desired, *snapshot.Snapshot)
	}{
		"no status yet":          {asked: required, want: required, at: stages{one}},
		"on its way":             {asked: both, was: off, want: off, stage: bus, at: stages{links}, waits: true},
		"all but one":            {asked: both, was: off, want: off, stage: bus, at: stages{links, two}, waits: true},
		"both":                   {asked: both, was: off, want: both, stage: two, at: stages{two}},
		"required is on its way": {asked: required, was: both, want: both, stage: one, at: stages{two, one}, waits: true},
		"required":               {asked: required, was: both, want: required, stage: one, at: stages{one}},
		"both are on their way":  {asked: both, was: required, want: both, stage: two, at: stages{two, one}, waits: true},
		"no plain port is open yet": {asked: both, was: required, want: required, stage: second,
			at: stages{second, one}, waits: true},
		"turned back":                 {asked: required, was: required, want: both, stage: two, at: stages{two, second}, waits: true},
		"turned back, one is down":    {asked: required, was: required, want: both, stage: two, at: stages{two}, waits: true, change: down},
		"one opens it when it starts": {asked: required, was: required, want: both, stage: two, at: stages{second}, waits: true, change: down},
		"required, one is down":       {asked: required, was: required, want: required, stage: one, at: stages{one}, change: down},
		"required on its way, one is down": {asked: required, was: both, want: both, stage: one, at: stages{one}, waits: true,
			change: down},
		"required, one has its port elsewhere": {asked: required, was: both, want: both, stage: one, at: stages{second, one}, waits: true},
		"both again, and all take TLS only":    {asked: both, was: both, want: both, stage: one, at: stages{one}, waits: true},
		"both, from TLS only":                  {asked: both, was: required, want: both, stage: two, at: stages{two}},
		"both, one is down":                    {asked: both, was: off, want: off, stage: bus, at: stages{two}, waits: true, change: down},
		"both, one has not heard of a port":    {asked: both, was: off, want: off, stage: two, at: stages{two}, waits: true, change: unheard},
		"both all along, one has not heard of a port": {asked: both, was: both, want: both, stage: two, at: stages{two},
			change: unheard},
		"both again, on the way back": {asked: both, was: off, want: off, stage: two, at: stages{unlinked, two}, waits: true},
		"both, pods lack certificates": {asked: both, was: off, want: off, stage: plain, at: stages{plain}, waits: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { unsecured(s, 6) }},
		"required, one takes both": {asked: required, was: required, want: both, stage: one, at: stages{one, one, two}, waits: true},
		"both, TLS fails of one": {asked: both, was: both, want: both, stage: two, at: stages{two}, waits: true,
			change: func(_ *Desired, s *snapshot.Snapshot) {
				s.Instances[2].Way, s.Instances[2].TLSError = snapshot.Way{Plain: true}, "certificate has expired"
			}},
		"spec.tls is taken away":    {was: required, want: required, stage: one, at: stages{one}, waits: true},
		"off is on its way":         {asked: off, was: both, want: off, stage: two, at: stages{two}, waits: true},
		"off, pods have files left": {asked: off, was: off, want: off, stage: plain, at: stages{plain}, waits: true},
		"off, the last pod with files does not answer": {asked: off, was: off, want: off, stage: plain, at: stages{plain},
			change: func(d *Desired, s *snapshot.Snapshot) { unsecured(s, 5); down(d, s) }},
		"off, all take TLS only":             {asked: off, was: required, want: required, stage: one, at: stages{one}, waits: true},
		"off, all are about to open theirs":  {asked: off, was: required, want: both, stage: second, at: stages{second}, waits: true},
		"off, one started as redis.conf was": {asked: off, was: off, want: off, stage: two, at: stages{second, two}, waits: true},
		"off, nobody opens theirs in a pause": {asked: off, was: required, want: required, stage: second, at: stages{second}, waits: true,
			change: func(d *Desired, _ *snapshot.Snapshot) { d.Paused = true }},
		"off, nobody answers": {asked: off, was: both, want: both, stage: two, at: stages{two}, waits: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { silent(s, 0) }},
		"off, one alone answers": {asked: off, was: both, want: off, stage: two, at: stages{two}, waits: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { silent(s, 1) }},
		// Without a status it is what is asked for as long as the cluster has not formed, and then what redis.conf has.
		"no instance yet": {asked: required, want: required, at: stages{one},
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Formed, s.Instances = false, nil }},
		"asked for while the cluster forms": {asked: both, want: both, at: stages{plain}, waits: true,
			change: func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false; unsecured(s, 6) }},
		"no status, required, one is down": {asked: required, want: required, at: stages{one}, change: down},
		"no status, both, one is down":     {asked: both, want: both, at: stages{two}, change: down},
		"no status, on the way back":       {asked: both, want: required, at: stages{second, one}, waits: true},
		"no status, nobody answers in a pause": {asked: both, want: both, at: stages{two},
			change: func(d *Desired, s *snapshot.Snapshot) { d.Paused = true; silent(s, 0) }},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := atTLSStages(tt.asked, tt.at...)
			s.TLSStage, s.TLSMode = tt.stage, tt.was
			if tt.change != nil {
				tt.change(&d, s)
			}
			got := decide(d, s, now).TLS
			if got.Mode != tt.want || (got.Waits != "") != tt.waits {
				t.Errorf("%+v, want %s", got, tt.want)
			}
		})
	}
	d, s := atTLSStages(off, redisconf.TLSPlain)
	for i := range s.Instances {
		s.Instances[i].HasCertificate = false
	}
	if got := decide(d, s, now).TLS; got.Mode != "" {
		t.Errorf("nothing is left of TLS: %+v", got)
	}
	if got := decide(desired(), formed(), now).TLS; got != (TLSInForce{}) {
		t.Errorf("nobody says anything of TLS: %+v", got)
	}
	lost, as := atTLSStages("", one)
	as.TLSStage, as.TLSMode, as.ClientCertificates = one, required, v1alpha1.ClientCertificatesRequired
	as.LoadedAuthorities, as.TLS.Authorities = "of before", "others"
	want := TLSInForce{Mode: required, Stage: one, Clients: v1alpha1.ClientCertificatesRequired, Authorities: "of before",
		Waits: "spec.tls is gone, and instances use TLS"}
	if got := decide(lost, as, now).TLS; got != want {
		t.Errorf("without spec.tls all stays as it was: %+v", got)
	}
	d.TLS = ""
	s.Instances[0].HasCertificate = true
	if step, stalls := decide(d, s, now).Step.(Stall); !stalls || !strings.Contains(step.Why(), "spec.tls is gone, and c-0-0 uses TLS") {
		t.Errorf("spec.tls is gone: %+v", step)
	}
}

// An instance that started with a redis.conf of other ports restarts, whatever its template.
func TestOtherPortsRestart(t *testing.T) {
	d, s := atTLSStages(v1alpha1.TLSRequired, redisconf.TLSBoth, redisconf.TLSRequired)
	s.TLSStage = redisconf.TLSRequired
	for i := range s.Shards {
		s.Shards[i].UpdateRevision = "v1"
	}
	for i := range s.Instances {
		s.Instances[i].Revision = "v1"
	}
	in := ShapeOf(d, s, now).in
	if outdated := in.outdated(); len(outdated) != 1 || outdated[0].Name != "c-0-0" {
		t.Errorf("outdated: %d", len(outdated))
	}
}
