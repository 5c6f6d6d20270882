// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// unplaced is the formed cluster on directories of nodes of which a pod was made anew.
func unplaced() (Desired, *snapshot.Snapshot) {
	d, s := desired(), formed()
	d.OnNode = true
	for i := range s.Instances {
		s.Instances[i].OnNode, s.Instances[i].NodeName = true, "node"+s.Instances[i].Name[len("c-"):len("c-")+1]
	}
	recorded := decide(d, s, now)
	s.DataVolumes, s.PlacedOn = recorded.DataVolumes, recorded.PlacedOn
	makeAnew(s.Find(1, 0))
	return d, s
}

// makeAnew replaces a pod that was deleted: its successor waits to be told where its data is.
func makeAnew(pod *snapshot.Instance) {
	pod.UID, pod.NodeName, pod.Redis, pod.Unplaced, pod.Waiting = "again", "", nil, true, "it is not scheduled"
}

// An instance whose data is in a directory of a node starts there, whatever else is wrong with the cluster, and elsewhere when it has
// no data or its node is given up.
func TestPlace(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		node   string
	}{
		"where its data is": {func(*Desired, *snapshot.Snapshot) {}, "node1"},
		"although the password is unknown": {func(_ *Desired, s *snapshot.Snapshot) { s.Auth = snapshot.Auth{Problem: "no Secret"} },
			"node1"},
		"although the spec cannot be followed": {func(d *Desired, _ *snapshot.Snapshot) { d.Problems = []string{"spec.version: too old"} },
			"node1"},
		"anywhere, without data":               {func(_ *Desired, s *snapshot.Snapshot) { delete(s.PlacedOn, "c-1-0") }, ""},
		"anywhere, when the node is given up":  {func(d *Desired, _ *snapshot.Snapshot) { d.GiveUpNode = "node1" }, ""},
		"there, when another node is given up": {func(d *Desired, _ *snapshot.Snapshot) { d.GiveUpNode = "node2" }, "node1"},
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
	if got := decide(d, s, now); got.DataVolumes["c-1-0"] != "node/node1" || got.PlacedOn["c-1-0"] != "node1" {
		t.Errorf("the data of c-1-0 is said to be in %q, on %q", got.DataVolumes["c-1-0"], got.PlacedOn["c-1-0"])
	}
}

// Whatever pass the operator dies in, after it acted and before it wrote its status: each instance that has data by then, and is
// deleted before the operator is back, starts where that data is.
func TestNodesAreRecordedBeforeData(t *testing.T) {
	for name, tt := range map[string]struct {
		before *snapshot.Snapshot
		fresh  string // those that have just started, on nodes of the scheduler's choice
		change func(*Desired)
		last   string
	}{
		"a new cluster":                   {fresh(), "c-0-0 c-0-1 c-1-0 c-1-1 c-2-0 c-2-1", func(*Desired) {}, "Replicate"},
		"a shard more":                    {joined(4), "c-3-0 c-3-1", func(d *Desired) { d.Topology = topologyOf(4) }, "MoveSlots"},
		"a replica that starts elsewhere": {formed(), "c-1-1", func(*Desired) {}, "Replicate"},
		"one of a cluster with an invalid spec": {formed(), "c-1-1", func(d *Desired) { d.Problems = []string{"spec.version: too old"} },
			"Replicate"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := desired(), tt.before
			tt.change(&d)
			d.OnNode, s.PlacedOn = true, map[string]string{}
			for i := range s.Instances {
				pod := &s.Instances[i]
				pod.OnNode, pod.NodeName = true, fmt.Sprintf("node%d", i)
				if strings.Contains(tt.fresh, pod.Name) {
					pod.Redis = &snapshot.Redis{NodeID: pod.Redis.NodeID, Master: true, ClusterOK: s.Formed, Peers: map[string]snapshot.Peer{}}
				} else {
					s.PlacedOn[pod.Name] = pod.NodeName
				}
			}
			if s.Formed {
				introduce(s)
			}
			for pass := 0; ; pass++ {
				decision := decide(d, s, now)
				giveData(s, decision.Step)
				wantFoundAgain(t, d, s, decision.Step.Name())
				if decision.Step.Name() == tt.last {
					return
				}
				if pass > 10 {
					t.Fatalf("it does not come to %s: %s: %s", tt.last, decision.Step.Name(), decision.Step.Why())
				}
				s.Goal, s.DataVolumes, s.PlacedOn = decision.Goal, decision.DataVolumes, decision.PlacedOn
			}
		})
	}
}

// giveData is what a step does to instances.
func giveData(s *snapshot.Snapshot, step Step) {
	switch step := step.(type) {
	case AssignSlots:
		for _, a := range step.Assignments {
			s.ByNodeID(a.To.NodeID).Redis.Slots = a.Slots
		}
	case Meet:
		introduce(s)
	case Replicate:
		for _, r := range step.Replications {
			replica := s.ByNodeID(r.Replica.NodeID).Redis
			replica.Master, replica.MasterID, replica.MasterLinkUp = false, r.MasterID, true
		}
		introduce(s)
	case MoveSlots:
		for _, move := range step.Moves {
			hand(s, move, move.Slots)
		}
	default:
	}
}

// wantFoundAgain: of each instance that has data the next pod starts on the node where it is now.
func wantFoundAgain(t *testing.T, d Desired, s *snapshot.Snapshot, after string) {
	t.Helper()
	for _, pod := range s.Reachable() {
		if pod.Redis.Master && pod.Redis.Slots.IsEmpty() {
			continue
		}
		crashed := *s
		crashed.Instances = slices.Clone(s.Instances)
		makeAnew(crashed.Find(pod.Shard, pod.Ordinal))
		step, _ := decide(d, &crashed, now).Step.(Place)
		if diff := cmp.Diff([]Placement{{Pod: pod.Name, UID: "again", Node: pod.NodeName}}, step.Pods); diff != "" {
			t.Errorf("the operator dies when it has done %s: placements (-want +got):\n%s", after, diff)
		}
	}
}
