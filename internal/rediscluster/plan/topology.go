// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Effective is the topology that the chart is asked for now: the desired one as far as
// it is safe. A shard that exists is still rendered, with no fewer instances than it
// has: an instance goes only after it was proven to own nothing, and shards are added
// and removed by moving slots first.
func Effective(d Desired, s *snapshot.Snapshot) v1alpha1.Topology {
	existing := existingTopology(s)
	if len(existing) == 0 {
		return slices.Clone(d.Topology)
	}
	shards := max(len(existing), shardsInTables(s))
	if !s.Formed && s.Owned().IsEmpty() {
		shards = max(shards, len(d.Topology))
	}
	// The desired split is only meaningful for the desired number of shards.
	sameShards := shards == len(d.Topology)
	effective := make(v1alpha1.Topology, shards)
	for i := range effective {
		if i < len(existing) {
			effective[i] = existing[i]
		}
		if sameShards {
			effective[i] = max(effective[i], d.Topology[i])
		}
		effective[i] = max(effective[i], 1)
	}
	return effective
}

// shardsInTables is how many masters own slots as far as any one instance knows. A shard
// whose StatefulSet was deleted still exists: its claims hold its data.
func shardsInTables(s *snapshot.Snapshot) int {
	most := 0
	for _, in := range s.Reachable() {
		owners := 0
		if in.Redis.Slots.Len() > 0 {
			owners++
		}
		for _, peer := range in.Redis.Peers {
			if peer.Slots.Len() > 0 {
				owners++
			}
		}
		most = max(most, owners)
	}
	return most
}

func existingTopology(s *snapshot.Snapshot) v1alpha1.Topology {
	var t v1alpha1.Topology
	for _, shard := range s.Shards {
		for len(t) <= shard.Index {
			t = append(t, 0)
		}
		t[shard.Index] = shard.Replicas
	}
	return t
}

// ScaleWait says that the spec asks for another topology than the one that runs.
type ScaleWait struct{ base }

// Name implements Step.
func (ScaleWait) Name() string { return "Scale" }

// RolloutWait says that instances run an older template than the one asked for.
type RolloutWait struct{ base }

// Name implements Step.
func (RolloutWait) Name() string { return v1alpha1.ReasonRollOut }

func planScale(in input) Step {
	if slices.Equal(in.topology, in.desired.Topology) {
		return nil
	}
	return ScaleWait{base{fmt.Sprintf("the spec asks for shards of %v instances, the cluster runs %v: moving slots between shards and removing instances is not part of this version; set replicas and shards back, or add instances only",
		[]int32(in.desired.Topology), []int32(in.topology))}}
}

func scaleDirection(in input) Situation {
	if in.desired.Topology.Instances() < in.topology.Instances() || len(in.desired.Topology) < len(in.topology) {
		return ScalingIn
	}
	return ScalingOut
}

// planRollout reports pods of an older template. Restarting them, failing over first,
// is the user's for now: each deleted pod comes back with the new template.
func planRollout(in input) Step {
	var stale []string
	for _, shard := range in.snap.Shards {
		for i := range in.snap.Instances {
			pod := &in.snap.Instances[i]
			if pod.Shard == shard.Index && shard.UpdateRevision != "" && pod.Revision != "" && pod.Revision != shard.UpdateRevision {
				stale = append(stale, pod.Name)
			}
		}
	}
	if len(stale) == 0 {
		return nil
	}
	return RolloutWait{base{"these pods run an older template, and take the new one when you delete them, replicas first: " + list(stale)}}
}
