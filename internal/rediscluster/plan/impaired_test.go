// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// shown is all of a decision as text.
func shown(d Decision) string {
	text := fmt.Sprintf("%s %v %s %+v %v", d.Situation, d.Topology, d.Step.Name(), d.Step, d.Moves)
	if d.Goal != nil {
		text += fmt.Sprintf(" %+v", *d.Goal)
	}
	return text
}

// What is decided does not depend on the order in which instances or maps are listed.
func TestScalingIsDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := rapid.IntRange(3, 5).Draw(t, "from"), rapid.IntRange(3, 6).Draw(t, "to")
		s := anyCluster(t, have, want)
		d := anyDesired(t, s, have, want)
		s.Goal = decide(d, s, now).Goal
		impair(t, s)
		first := decide(d, s, now)
		for _, in := range s.Reachable() {
			in.Redis.Peers = maps.Clone(in.Redis.Peers)
		}
		if diff := cmp.Diff(shown(first), shown(decide(d, s, now))); diff != "" {
			t.Fatalf("another order of maps: %s", diff)
		}
		// Snapshots list instances by shard and ordinal. What moves where does not even depend on that.
		s.Instances = rapid.Permutation(s.Instances).Draw(t, "order")
		shuffled := decide(d, s, now)
		if diff := cmp.Diff(first.Goal, shuffled.Goal); diff != "" || first.Step.Name() != shuffled.Step.Name() {
			t.Fatalf("another order of instances: %s instead of %s, goal %s", shuffled.Step.Name(), first.Step.Name(), diff)
		}
		if diff := cmp.Diff(first.Moves, shuffled.Moves); diff != "" {
			t.Fatalf("another order of instances: %s", diff)
		}
	})
}

// impair lets something be wrong with some instances.
func impair(t *rapid.T, s *snapshot.Snapshot) {
	for range rapid.IntRange(0, 2).Draw(t, "impaired instances") {
		pod := &s.Instances[rapid.IntRange(0, len(s.Instances)-1).Draw(t, "impaired")]
		if pod.Redis == nil {
			continue
		}
		switch rapid.SampledFrom([]string{"unknown", "stopped", "terminating", "suspected", "not in sync", "does not serve", "unheard",
			"half migrated"}).Draw(t, "how") {
		case "unknown":
			pod.Redis, pod.Error = nil, "i/o timeout"
		case "stopped":
			fail(s, pod.Redis.NodeID)
			pod.Redis, pod.Waiting, pod.Error = nil, "starting", "starting"
		case "terminating":
			pod.Terminating = true
		case "suspected":
			other := rapid.SampledFrom(s.Reachable()).Draw(t, "by")
			if peer, known := other.Redis.Peers[pod.Redis.NodeID]; known {
				peer.Suspected = true
				other.Redis.Peers[pod.Redis.NodeID] = peer
			}
		case "not in sync":
			pod.Redis.MasterLinkUp = false
		case "does not serve":
			pod.Redis.ClusterOK = false
		case "unheard":
			for id, peer := range pod.Redis.Peers {
				peer.Slots = slots.Set{}
				pod.Redis.Peers[id] = peer
			}
		case "half migrated":
			if owned := pod.Redis.Slots; !owned.IsEmpty() {
				to := rapid.SampledFrom(s.Reachable()).Draw(t, "towards")
				pod.Redis.Migrating = map[uint16]string{owned.Ranges()[0].First: to.Redis.NodeID}
				pod.Redis.OpenKeys = map[uint16]int64{}
			}
		}
	}
}

// Slots move only between shards that can take part, and nothing is taken away as long as something needed is unknown.
func TestImpairedInstances(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have, want := rapid.IntRange(3, 5).Draw(t, "from"), rapid.IntRange(3, 5).Draw(t, "to")
		s := anyCluster(t, have, want)
		d := anyDesired(t, s, have, want)
		if s.Goal = decide(d, s, now).Goal; s.Goal != nil && rapid.Bool().Draw(t, "slots have moved") {
			for _, move := range (input{desired: d, snap: s, now: now}).moves(s.Goal) {
				hand(s, move, move.Slots)
			}
		}
		impair(t, s)
		existing := existingTopology(s)
		decision := decide(d, s, now)
		if step, moves := decision.Step.(MoveSlots); moves {
			for _, move := range step.Moves {
				checkTakesPart(t, s, move)
			}
		}
		if name := needed(d, s); name != "" {
			switch decision.Step.(type) {
			case Forget, RemoveShards:
				t.Fatalf("%s, though nothing is known of %s: %s", decision.Step.Name(), name, decision.Step.Why())
			}
			for i, n := range existing {
				if i >= len(decision.Topology) || decision.Topology[i] < n {
					t.Fatalf("%v is cut down to %v, though nothing is known of %s", existing, decision.Topology, name)
				}
			}
		}
	})
}

// needed is an instance of which nothing is known and that is not proven to be needless: the spec asks for it, or its
// process runs and is not being stopped, or slots are not covered without it.
func needed(d Desired, s *snapshot.Snapshot) string {
	for i := range s.Instances {
		pod := &s.Instances[i]
		if pod.Redis == nil && (pod.Shard < len(d.Topology) || pod.Waiting == "" && !pod.Terminating || s.Owned().Len() < slots.Count) {
			return pod.Name
		}
	}
	return ""
}

// checkTakesPart: the source serves, and all of the shard that receives does.
func checkTakesPart(t *rapid.T, s *snapshot.Snapshot, move Move) {
	from, to := s.ByNodeID(move.From.NodeID), s.ByNodeID(move.To.NodeID)
	if from == nil || to == nil {
		t.Fatalf("%v moves with nothing known of it", move)
	}
	if from.Shard == to.Shard || move.Slots.IsEmpty() || !move.Slots.Subtract(from.Redis.Slots).IsEmpty() {
		t.Fatalf("%v is no move", move)
	}
	for i := range s.Instances {
		pod := &s.Instances[i]
		if pod != from && pod.Shard != to.Shard {
			continue
		}
		r := pod.Redis
		if r == nil || pod.Terminating || r.Master && !r.ClusterOK || !r.Master && !r.MasterLinkUp {
			t.Fatalf("%v moves, and %s cannot take part", move, pod.Name)
		}
		for _, other := range s.Reachable() {
			if peer := other.Redis.Peers[r.NodeID]; r.Master && other.Redis.Master && other != pod &&
				(peer.Suspected || peer.Failed || !peer.Connected) {
				t.Fatalf("%v moves, and %s suspects %s", move, other.Name, pod.Name)
			}
		}
	}
}
