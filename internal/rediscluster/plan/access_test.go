// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// guarded is a formed cluster whose instances accept the passwords and users of the Secret.
func guarded() *snapshot.Snapshot {
	s := formed()
	s.Auth.Wanted = &snapshot.Access{Passwords: []string{"a", "b"}, Link: "a", Users: "u"}
	for _, in := range s.Reachable() {
		in.Redis.Access = &snapshot.Access{Passwords: []string{"a", "b"}, Link: "a", Users: "u"}
	}
	return s
}

func TestPlanAccess(t *testing.T) {
	changing := func(stage snapshot.PasswordStage, since time.Duration) *snapshot.Snapshot {
		s := guarded()
		s.Auth.Changing, s.Auth.ChangedAt = stage, now.Add(-since)
		return s
	}
	with := func(s *snapshot.Snapshot, change func(*snapshot.Snapshot)) *snapshot.Snapshot {
		change(s)
		return s
	}
	const keep = 10 * time.Minute
	for name, tt := range map[string]struct {
		snapshot *snapshot.Snapshot
		step     string
		to       PasswordStep
		on       int
	}{
		"healthy":                 {snapshot: guarded(), step: "None"},
		"nobody needs a password": {snapshot: formed(), step: "None"},
		"another password is asked": {snapshot: with(guarded(), func(s *snapshot.Snapshot) { s.Auth.Due = true }), step: "ChangePassword",
			to: AcceptPassword},
		"other users are asked": {snapshot: with(guarded(), func(s *snapshot.Snapshot) { s.Auth.UsersDue = true }), step: "ChangePassword",
			to: AcceptUsers, on: 6},
		"users wait until the cluster is formed": {snapshot: with(guarded(), func(s *snapshot.Snapshot) {
			s.Auth.UsersDue, s.Formed = true, false
		}), step: "None"},
		"nobody could be asked whether it takes the users": {snapshot: with(guarded(), func(s *snapshot.Snapshot) {
			s.Auth.UsersDue = true
			for i := range s.Instances {
				s.Instances[i].Redis = nil
			}
		}), step: "Wait"},
		"the only one is asked": {snapshot: with(guarded(), func(s *snapshot.Snapshot) {
			s.Auth.UsersDue = true
			for i := range s.Instances[1:] {
				s.Instances[i+1].Redis = nil
			}
		}), step: "ChangePassword", to: AcceptUsers, on: 1},
		"one that stops is told nothing": {snapshot: with(guarded(), func(s *snapshot.Snapshot) {
			s.Instances[1].Redis.Access.Passwords, s.Instances[1].Terminating = []string{"a"}, true
		}), step: "None"},
		"one accepts too few": {snapshot: with(guarded(), func(s *snapshot.Snapshot) {
			s.Instances[1].Redis.Access.Passwords = []string{"a"}
		}), step: "SetAccess", on: 1},
		"one accepts too many": {snapshot: with(guarded(), func(s *snapshot.Snapshot) {
			s.Instances[1].Redis.Access.Passwords = []string{"a", "b", "c"}
		}), step: "SetAccess", on: 1},
		"one logs in with another": {snapshot: with(guarded(), func(s *snapshot.Snapshot) { s.Instances[1].Redis.Access.Link = "b" }),
			step: "SetAccess", on: 1},
		"one has other users": {snapshot: with(guarded(), func(s *snapshot.Snapshot) { s.Instances[1].Redis.Access.Users = "" }),
			step: "SetAccess", on: 1},
		"not known is not wrong": {snapshot: with(guarded(), func(s *snapshot.Snapshot) { s.Instances[1].Redis.Access = nil }), step: "None"},

		"files may be old": {snapshot: changing(snapshot.PasswordAccepting, filesArrive-time.Second), step: "None"},
		"files are new": {snapshot: changing(snapshot.PasswordAccepting, filesArrive), step: "ChangePassword",
			to: PublishPassword},
		"the previous one is still good":  {snapshot: changing(snapshot.PasswordRetiring, keep-time.Second), step: "None"},
		"the previous one's time is over": {snapshot: changing(snapshot.PasswordRetiring, keep), step: "ChangePassword", to: RetirePassword},
		"one does not say": {snapshot: with(changing(snapshot.PasswordAccepting, time.Hour), func(s *snapshot.Snapshot) {
			s.Instances[1].Redis.Access = nil
		}), step: "None"},
		"one is not there": {snapshot: with(changing(snapshot.PasswordAccepting, time.Hour), func(s *snapshot.Snapshot) { kill(s, 1, 1) }),
			step: "Wait"},
		"one does not answer": {snapshot: with(changing(snapshot.PasswordRetiring, time.Hour), func(s *snapshot.Snapshot) {
			s.Instances[1].Redis, s.Instances[1].Error = nil, "timeout"
		}), step: "Wait"},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			d.PreviousPasswordFor = keep
			step := decide(d, tt.snapshot, now).Step
			if step.Name() != tt.step {
				t.Fatalf("%s: %s, want %s", step.Name(), step.Why(), tt.step)
			}
			on := 0
			switch step := step.(type) {
			case ChangePassword:
				if on = len(step.On); step.To != tt.to {
					t.Errorf("the change is %s, want %s", step.To, tt.to)
				}
			case SetAccess:
				on = len(step.On)
			}
			if on != tt.on {
				t.Errorf("on %d instances, want %d", on, tt.on)
			}
		})
	}
}

// What an archive needs, and no file of a pod says, goes with the rest to the instances that can.
func TestRightsOfAnArchive(t *testing.T) {
	s := guarded()
	for _, pod := range s.Reachable()[:3] {
		pod.Redis.Access.Users = "others"
	}
	s.Instances[0].Redis.Access.Live, s.Instances[2].Redis.Access.Live = []string{"+psync"}, []string{"+psync", "+replconf"}
	step, is := planAccess(ShapeOf(desired(), s, now).in).(SetAccess)
	want := map[string][]string{"c-0-0": {"+psync"}, "c-1-0": {"+psync", "+replconf"}}
	if !is || len(step.On) != 3 || !cmp.Equal(step.Live, want) {
		t.Errorf("%+v", step)
	}
}

// Nobody accepts passwords of a cluster that has none.
func TestNothingPendsWithoutAPassword(t *testing.T) {
	s := formed()
	s.Instances[0].Redis = nil
	if why := AccessPending(s); why != "" || planAccess(ShapeOf(desired(), s, now).in) != nil {
		t.Error(why)
	}
}

// A short time for the previous password is never shorter than the files take.
func TestPreviousPasswordOutlivesFiles(t *testing.T) {
	auth := snapshot.Auth{Changing: snapshot.PasswordRetiring, ChangedAt: now}
	if got := PasswordStageEnds(auth, 0).Sub(now); got != filesArrive {
		t.Errorf("it ends after %s", got)
	}
}

func TestPlanTLS(t *testing.T) {
	s := guarded()
	s.TLS = snapshot.TLS{Enabled: true, Problem: "spec.tls: no"}
	if step, ok := decide(desired(), s, now).Step.(Stall); !ok || step.Cause != "CertificateUnavailable" || step.Why() != "spec.tls: no" {
		t.Errorf("without a certificate: %v", step)
	}
	s.TLS.Known = true
	s.Instances[0].Redis.OldCertificate, s.Instances[0].Redis.CertificateSeen = true, true
	s.Instances[1].Redis.OldCertificate = true // seen in an earlier reconciliation, and told since
	s.Instances[2].Redis.CertificateSeen = true
	s.Instances[3].Redis.OldCertificate, s.Instances[3].Redis.CertificateSeen, s.Instances[3].Terminating = true, true, true
	if step, ok := decide(desired(), s, now).Step.(ReloadCertificates); !ok || len(step.On) != 1 || step.On[0].Pod != "c-0-0" {
		t.Errorf("with an old certificate: %+v", step)
	}
}
