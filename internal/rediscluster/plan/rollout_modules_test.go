// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// withModule is the cluster with a new shard that has a module, while the instances of the first shards are still of the template
// without it.
func withModule() (Desired, *snapshot.Snapshot) {
	d, s := with(topologyOf(4)), joined(4)
	d.Modules = "json"
	for i := range s.Shards {
		s.Shards[i].UpdateRevision = "new"
	}
	for i := range s.Instances {
		pod := &s.Instances[i]
		if pod.Revision = "old"; pod.Shard == 3 {
			pod.Revision, pod.Modules = "new", "json"
		}
	}
	return d, s
}

// TestNoSlotBeginsToMoveBeforeTheModulesAreLoaded: the instances restart first. Otherwise keys of a module's type would come to
// where the module is not, or not any more, the move would fail for ever, and with it what comes behind it: the restarts.
func TestNoSlotBeginsToMoveBeforeTheModulesAreLoaded(t *testing.T) {
	for name, tt := range map[string]struct {
		change    func(*Desired, *snapshot.Snapshot)
		step, why string
	}{
		"a module is new":   {func(*Desired, *snapshot.Snapshot) {}, "Restart", "runs an older template, as 6 of 8 instances do"},
		"a module is gone":  {func(d *Desired, s *snapshot.Snapshot) { swap(d, s) }, "Restart", "runs an older template, as 6 of 8 instances do"},
		"the user restarts": {func(d *Desired, _ *snapshot.Snapshot) { d.OnDelete = true }, "Rollout", "these pods run an older template"},
		"which are older is not known": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Shards[0].UpdateRevision, s.Shards[0].Unobserved = "", true
		}, "Wait", "StatefulSet c-0"},
		"all have it": {func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Revision, s.Instances[i].Modules = "new", "json"
			}
		}, "RecordGoal", "4096 slots are to move"},
		"another template is no reason to wait": {func(d *Desired, s *snapshot.Snapshot) {
			d.Modules = ""
			for i := range s.Instances {
				s.Instances[i].Modules = ""
			}
		}, "RecordGoal", "4096 slots are to move"},
		"somebody wrote the annotation": {func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].Revision, s.Instances[i].Modules = "new", "forged"
			}
		}, "RecordGoal", "4096 slots are to move"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := withModule()
			tt.change(&d, s)
			got := decide(d, s, now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("%s: %s, want %s: … %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
		})
	}
}

// swap takes the module away instead.
func swap(d *Desired, s *snapshot.Snapshot) {
	d.Modules = ""
	for i := range s.Instances {
		if pod := &s.Instances[i]; pod.Modules == "" {
			pod.Modules = "json"
		} else {
			pod.Modules = ""
		}
	}
}

// TestAMoveThatHasBegunGoesOn: half of the slots elsewhere is no state to restart instances in.
func TestAMoveThatHasBegunGoesOn(t *testing.T) {
	d, s := withModule()
	s.Goal = recorded(with(topologyOf(4)), joined(4)).Goal
	if got := decide(d, s, now); got.Step.Name() != "MoveSlots" {
		t.Errorf("%s: %s, want MoveSlots", got.Step.Name(), got.Step.Why())
	}
}
