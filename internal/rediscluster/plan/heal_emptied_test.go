// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// stored is a cluster whose instances have claims of their own, in which data was seen.
func stored(s *snapshot.Snapshot) *snapshot.Snapshot {
	s.Formed, s.DataVolumes = true, map[string]string{}
	for i := range s.Instances {
		name := s.Instances[i].Name
		s.Claims = append(s.Claims, snapshot.Claim{Name: "data-" + name, UID: "uid-" + name})
		s.DataVolumes[name] = "uid-" + name
	}
	return s
}

// renewClaim is a claim that was deleted and made anew.
func renewClaim(s *snapshot.Snapshot, names ...string) {
	for i := range s.Claims {
		for _, name := range names {
			if s.Claims[i].Pod() == name {
				s.Claims[i].UID = "another-" + name
			}
		}
	}
}

// shardLost is a cluster all instances of whose shard 1 have come back empty, and whose former nodes are forgotten.
func shardLost() *snapshot.Snapshot {
	s := stored(formed())
	for ordinal := range 2 {
		id := nodeID(1, ordinal)
		comeBackEmpty(s, 1, ordinal)
		s.Find(1, ordinal).Redis.NodeID = strings.Repeat(fmt.Sprintf("e%d", ordinal), 20)
		forgetAll(s, id)
	}
	introduce(s)
	return s
}

// wiped is a cluster of which nothing is left.
func wiped() *snapshot.Snapshot {
	s := stored(fresh())
	introduce(s)
	return s
}

func TestEmptyVolumes(t *testing.T) {
	for name, tt := range map[string]struct {
		desired   func(*Desired)
		snapshot  *snapshot.Snapshot
		step, why string
	}{
		"a whole cluster whose volumes have come back empty stalls": {snapshot: wiped(), step: "Stall", why: "volumes that had data are empty: those of c-0-0, c-0-1, c-1-0, c-1-1, c-2-0, c-2-1. Put the data back"},
		"also with claims that were made anew, as a restore does": {
			snapshot: changed(wiped, func(s *snapshot.Snapshot) { renewClaim(s, "c-0-0", "c-0-1", "c-1-0", "c-1-1", "c-2-0", "c-2-1") })(),
			step:     "Stall"},
		"also when an earlier operator noted nothing": {
			snapshot: changed(wiped, func(s *snapshot.Snapshot) { s.DataVolumes = nil })(), step: "Stall"},
		"not a new cluster": {snapshot: fresh(), step: "AssignSlots"},
		"not where data goes with the pod": {desired: func(d *Desired) { d.Ephemeral = true },
			snapshot: wiped(), step: "AssignSlots"},
		"not once it was given up": {
			snapshot: changed(wiped, func(s *snapshot.Snapshot) { s.DataVolumes = givenUp(s) })(), step: "AssignSlots"},
		"a shard whose volumes have come back empty stalls": {
			snapshot: shardLost(), step: "Stall", why: "those of c-1-0, c-1-1."},
		"also in a volume that is not an instance's own": {
			snapshot: changed(shardLost, func(s *snapshot.Snapshot) { s.Claims = nil; s.DataVolumes["c-1-0"] = "shared" })(), step: "Stall",
			why: "those of c-1-0."},
		"not where data of a shard goes with its pods": {desired: func(d *Desired) { d.Ephemeral = true },
			snapshot: shardLost(), step: "AssignSlots", why: "no instance owns slots"},
		"not a shard whose claims were deleted: who does that gives the data up": {
			snapshot: changed(shardLost, func(s *snapshot.Snapshot) { renewClaim(s, "c-1-0", "c-1-1") })(), step: "AssignSlots"},
		"but one of which a claim was not": {
			snapshot: changed(shardLost, func(s *snapshot.Snapshot) { renewClaim(s, "c-1-0") })(), step: "Stall", why: "those of c-1-1."},
		"another loss was given up": {desired: func(d *Desired) { d.GiveUp = "12345678" },
			snapshot: shardLost(), step: "Stall"},
		"this loss was given up": {desired: func(d *Desired) { d.GiveUp = loss(shardLost()) },
			snapshot: shardLost(), step: "GiveUp", why: "c-1-0, c-1-1"},
		"and nothing but this loss": {desired: func(d *Desired) { d.GiveUp = loss(shardLost()) },
			snapshot: changed(shardLost, func(s *snapshot.Snapshot) {
				comeBackEmpty(s, 2, 0)
				comeBackEmpty(s, 2, 1)
				forgetAll(s, nodeID(2, 0))
				forgetAll(s, nodeID(2, 1))
				introduce(s)
			})(), step: "Stall", why: "c-2-0"},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := decide(d, tt.snapshot, now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s: %s\nwant %s: %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
			if stall, ok := got.Step.(Stall); ok && (stall.Cause != "DataLost" || stall.BlockedBy != DataFound) {
				t.Errorf("stalls for %s (%s)", stall.Cause, stall.BlockedBy)
			}
		})
	}
}

// loss is the value of the annotation that the message asks for.
func loss(s *snapshot.Snapshot) string {
	why := decide(desired(), s, now).Step.Why()
	return why[len(why)-8:]
}

func givenUp(s *snapshot.Snapshot) map[string]string {
	after := map[string]string{}
	for name := range s.DataVolumes {
		after[name] = ""
	}
	return after
}

// Where data was seen is remembered: through losses, of pods that are not there, and not of what has none yet.
func TestDataVolumes(t *testing.T) {
	s := stored(formed())
	s.DataVolumes = map[string]string{"c-9-0": "of a shard that went", "c-1-1": "uid-c-1-1"}
	comeBackEmpty(s, 1, 0)
	kill(s, 1, 1)
	want := map[string]string{"c-0-0": "uid-c-0-0", "c-0-1": "uid-c-0-1", "c-1-1": "uid-c-1-1", "c-2-0": "uid-c-2-0", "c-2-1": "uid-c-2-1"}
	if diff := cmp.Diff(want, decide(desired(), s, now).DataVolumes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	s, d := shardLost(), desired()
	d.GiveUp = loss(s)
	got := decide(d, s, now).DataVolumes
	if got["c-1-0"] != "" || got["c-1-1"] != "" || got["c-0-0"] != "uid-c-0-0" {
		t.Errorf("after giving up: %v", got)
	}
	s.DataVolumes = got
	if step := decide(d, s, now).Step; step.Name() != "AssignSlots" {
		t.Errorf("then it is %s: %s", step.Name(), step.Why())
	}
}

// Where data is kept is remembered as long as it outlives its pod: by claim, or by node.
func TestVolumesOfInstances(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		want   string // the volume of c-0-0
		count  int    // how many volumes are remembered
	}{
		"claims": {func(*Desired, *snapshot.Snapshot) {}, "uid-c-0-0", 6},
		"pods": {func(d *Desired, s *snapshot.Snapshot) {
			d.Ephemeral = true
			s.DataVolumes = map[string]string{"c-0-0": "of before"}
		}, "", 0},
		"nodes": {func(d *Desired, s *snapshot.Snapshot) { d.OnNode, s.DataVolumes = true, nil }, "node/node0", 6},
		"a node that has not come": {func(d *Desired, s *snapshot.Snapshot) {
			d.OnNode, s.DataVolumes, s.Find(0, 0).NodeName = true, nil, ""
		}, "", 5},
		"a claim, and a pod on no node": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).NodeName = "" }, "uid-c-0-0", 6},
		"a claim that was not seen yet": {func(d *Desired, s *snapshot.Snapshot) {
			d.ClaimBytes, s.DataVolumes, s.Claims = 1<<30, nil, s.Claims[1:]
		}, "", 5},
		"one of all": {func(_ *Desired, s *snapshot.Snapshot) {
			s.DataVolumes = nil
			for i := range s.Instances[1:] {
				s.Instances[i+1].Redis = nil
			}
		}, "uid-c-0-0", 1},
		"none": {func(d *Desired, s *snapshot.Snapshot) { d.ClaimBytes, s.DataVolumes, s.Claims = 1<<30, nil, nil }, "", 0},
	} {
		d, s := desired(), stored(formed())
		tt.change(&d, s)
		in := ShapeOf(d, s, now).in
		got := in.dataVolumes(None{})
		if volume := in.volume(in.snap.Find(0, 0)); volume != tt.want || len(got) != tt.count || (got == nil) != (tt.count == 0) {
			t.Errorf("%s: %q, and %d are remembered: %v", name, volume, len(got), got)
		}
	}
}
