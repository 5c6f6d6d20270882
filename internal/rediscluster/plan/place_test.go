// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// unplaced is the formed cluster on directories of nodes of which a pod was made anew.
func unplaced() (Desired, *snapshot.Snapshot) {
	d, s := desired(), formed()
	d.OnNode = true
	for i := range s.Instances {
		s.Instances[i].NodeName = "node" + s.Instances[i].Name[len("c-"):len("c-")+1]
	}
	s.DataVolumes = decide(d, s, now).DataVolumes
	pod := s.Find(1, 0)
	pod.UID, pod.NodeName, pod.Redis, pod.Unplaced, pod.Waiting = "again", "", nil, true, "it is not scheduled"
	return d, s
}

// An instance whose data is in a directory of a node starts there, whatever else is wrong with the cluster, and elsewhere when it has
// no data or its node is given up.
func TestPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		node   string
	}{
		"where its data is":                    {func(*Desired, *snapshot.Snapshot) {}, "node1"},
		"although the password is unknown":     {func(_ *Desired, s *snapshot.Snapshot) { s.Auth = snapshot.Auth{Problem: "no Secret"} }, "node1"},
		"although the spec cannot be followed": {func(d *Desired, _ *snapshot.Snapshot) { d.Problems = []string{"spec.version: too old"} }, "node1"},
		"anywhere, without data":               {func(_ *Desired, s *snapshot.Snapshot) { delete(s.DataVolumes, "c-1-0") }, ""},
		"anywhere, when the node is given up":  {func(d *Desired, _ *snapshot.Snapshot) { d.GiveUpNode = "node1" }, ""},
		"there, when another node is given up": {func(d *Desired, _ *snapshot.Snapshot) { d.GiveUpNode = "node2" }, "node1"},
		"anywhere, with what was in a claim":   {func(_ *Desired, s *snapshot.Snapshot) { s.DataVolumes["c-1-0"] = "a claim's UID" }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := unplaced()
			tt.change(&d, s)
			step, _ := decide(d, s, now).Step.(Place)
			if diff := cmp.Diff([]Placement{{Pod: "c-1-0", UID: "again", Node: tt.node}}, step.Pods); diff != "" {
				t.Errorf("placements (-want +got):\n%s", diff)
			}
		})
	}
	d, s := unplaced()
	d.Paused = true
	if held, is := decide(d, s, now).Step.(Hold); !is || held.Next.Name() != "Place" {
		t.Errorf("a paused cluster: %+v", held)
	}
	// Where data was last seen stays known while the pod is away.
	if got := decide(d, s, now).DataVolumes["c-1-0"]; got != "node/node1" {
		t.Errorf("the data of c-1-0 is said to be on %q", got)
	}
}
