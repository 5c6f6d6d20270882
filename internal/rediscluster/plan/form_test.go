// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func TestForming(t *testing.T) {
	step, ok := decide(desired(), fresh(), now).Step.(AssignSlots)
	if !ok {
		t.Fatal("fresh instances are not given slots")
	}
	var all slots.Set
	nodes := map[string]int{}
	epochs := map[uint64]bool{}
	for i, assignment := range step.Assignments {
		if epochs[assignment.Epoch] || assignment.Epoch == 0 {
			t.Errorf("assignment %d has epoch %d", i, assignment.Epoch)
		}
		epochs[assignment.Epoch] = true
		if isMaster := !assignment.Slots.IsEmpty(); isMaster != (assignment.Epoch > 6) {
			t.Errorf("assignment %d, of a master: %t, has epoch %d: masters are above replicas", i, isMaster, assignment.Epoch)
		}
		if assignment.Slots.IsEmpty() {
			continue
		}
		if all.Intersect(assignment.Slots).Len() > 0 {
			t.Errorf("slots %s are given twice", assignment.Slots)
		}
		all = all.Union(assignment.Slots)
		nodes[assignment.To.Pod[len(assignment.To.Pod)-1:]]++
	}
	if len(step.Assignments) != 6 {
		t.Errorf("%d instances have an epoch, want 6", len(step.Assignments))
	}
	if all.Len() != slots.Count {
		t.Errorf("%d slots are given, want all", all.Len())
	}
	// The ordinal is the Kubernetes node in this world: masters spread over both.
	if diff := cmp.Diff(map[string]int{"0": 2, "1": 1}, nodes); diff != "" {
		t.Errorf("masters by node (-want +got):\n%s", diff)
	}
}

// Masters are on different nodes from the beginning where that can be had, also when the first choice is in the way of the last.
func TestFirstMastersShareNoNode(t *testing.T) {
	s := fresh()
	for i, node := range []string{"n1", "n2", "n3", "n2", "n1", "n3"} { // c-0-0, c-0-1, c-1-0, …
		s.Instances[i].NodeName = node
	}
	used := map[string]bool{}
	for _, assignment := range decide(desired(), s, now).Step.(AssignSlots).Assignments {
		if assignment.Slots.IsEmpty() {
			continue
		}
		used[s.ByNodeID(assignment.To.NodeID).NodeName] = true
	}
	if len(used) != 3 {
		t.Errorf("masters are on %d nodes, want 3", len(used))
	}
}

// A cluster whose forming was cut short goes on where it was: what is owned stays.
func TestFormingGoesOn(t *testing.T) {
	s := fresh()
	s.Find(1, 1).Redis.Slots = slots.All().Split(3)[1]
	step := decide(desired(), s, now).Step.(AssignSlots)
	given := 0
	for _, assignment := range step.Assignments {
		if assignment.Slots.IsEmpty() {
			continue
		}
		given++
		if strings.HasPrefix(assignment.To.Pod, "c-1-") {
			t.Errorf("shard 1 is given slots %s again", assignment.Slots)
		}
	}
	if given != 2 {
		t.Errorf("%d shards are given slots, want 2", given)
	}
}

// A StatefulSet that someone deleted is made again: its shard's claims hold its data. It
// was once taken for a cluster of one shard less, whose slots nobody owned.
func TestDeletedShardComesBack(t *testing.T) {
	for shard := range 3 {
		s := formed()
		s.Shards = append(s.Shards[:shard], s.Shards[shard+1:]...)
		kill(s, shard, 0)
		kill(s, shard, 1)
		if diff := cmp.Diff(v1alpha1.Topology{2, 2, 2}, ShapeOf(desired(), s, now).Topology); diff != "" {
			t.Errorf("shard %d:\n%s", shard, diff)
		}
		if step := decide(desired(), s, now).Step; step.Name() != "Wait" {
			t.Errorf("shard %d: %s: %s", shard, step.Name(), step.Why())
		}
	}
}

// Shards that leave together lose their StatefulSets one after the other. The first one that was gone was made again while others
// were still going, and its new claim could stay for ever.
func TestShardsThatGoTogetherDoNotComeBack(t *testing.T) {
	going := []snapshot.Shard{{Index: 3, Name: "c-3", Replicas: 2, Terminating: true}, {Index: 4, Name: "c-4", Replicas: 2, Terminating: true},
		{Index: 5, Name: "c-5", Replicas: 2, Terminating: true}}
	for gone := range going {
		s := formed()
		s.Shards = append(s.Shards, slices.Delete(slices.Clone(going), gone, gone+1)...)
		if diff := cmp.Diff(v1alpha1.Topology{2, 2, 2}, ShapeOf(desired(), s, now).Topology); diff != "" {
			t.Errorf("without %s:\n%s", going[gone].Name, diff)
		}
	}
	// One that somebody deleted before its slots had moved has them in its claims.
	s := formed()
	kill(s, 2, 0)
	kill(s, 2, 1)
	s.Shards = append(slices.Delete(s.Shards, 2, 3), going[0])
	d := desired()
	d.Topology = d.Topology[:2]
	if got := ShapeOf(d, s, now).Topology; len(got) < 3 {
		t.Errorf("the shard with the data is not made again: %v", got)
	}
}

func TestEffective(t *testing.T) {
	topology := func(counts ...int32) v1alpha1.Topology { return counts }
	for name, tt := range map[string]struct {
		existing, desired, want v1alpha1.Topology
		formed                  bool
	}{
		"nothing exists: what is desired":             {nil, topology(3, 2, 2), topology(3, 2, 2), false},
		"a creation that was cut short is completed":  {topology(2, 2), topology(2, 2, 2), topology(2, 2, 2), false},
		"instances are added to the shards there are": {topology(2, 2, 2), topology(3, 3, 3), topology(3, 3, 3), true},
		"an instance is not taken away":               {topology(3, 3, 3), topology(2, 2, 2), topology(3, 3, 3), true},
		"a shard is added":                            {topology(2, 2, 2), topology(2, 2, 2, 2), topology(2, 2, 2, 2), true},
		"a shard is not taken away":                   {topology(2, 2, 2, 2), topology(2, 2, 2), topology(2, 2, 2, 2), true},
		"a shard is not added while another forms":    {topology(2, 2, 2), topology(2, 2, 2, 2), topology(2, 2, 2, 2), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &snapshot.Snapshot{Formed: tt.formed}
			for i, n := range tt.existing {
				s.Shards = append(s.Shards, snapshot.Shard{Index: i, Replicas: n})
			}
			if diff := cmp.Diff(tt.want, ShapeOf(Desired{Topology: tt.desired}, s, now).Topology); diff != "" {
				t.Error(diff)
			}
		})
	}
}
