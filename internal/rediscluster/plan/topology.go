// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// effective is the topology that the chart is asked for now: the desired one as far as it
// is safe. Shards and instances are added at once. A shard that exists stays with all its
// instances until those that are to go hold nothing and are known to nobody.
func (in input) effective() v1alpha1.Topology {
	d, s := in.desired, in.snap
	existing := existingTopology(s)
	switch {
	case s.Restored != nil && !s.Formed:
		return in.with(existing, len(s.Restored.Slots))
	case in.begins():
		return in.with(existing, beginsWith(s))
	}
	if len(existing) == 0 {
		return slices.Clone(d.Topology)
	}
	shards := max(len(existing), shardsInTables(s))
	if s.Formed || s.Owned().IsEmpty() {
		shards = max(shards, len(d.Topology))
	}
	shards = min(shards, int(v1alpha1.MaxShards)) // tables are what servers say
	effective := make(v1alpha1.Topology, shards)
	copy(effective, existing)
	// Until a cluster has formed, the desired split is only meaningful for as many shards.
	splits := s.Formed || shards == len(d.Topology)
	for i := range effective {
		if splits && i < len(d.Topology) {
			effective[i] = max(effective[i], d.Topology[i])
			in.shrink(effective, i)
		}
		effective[i] = max(effective[i], 1)
	}
	return slices.Clip(effective[:len(effective)-in.removed(effective)])
}

// with is the topology of a cluster that began with data until it has formed: the shards of the data, whatever the spec asks for by
// then. Their masters own slots as soon as they start, and not all StatefulSets need have been made by then. Slots go to further shards by
// an ordinary scaling.
func (in input) with(existing v1alpha1.Topology, shards int) v1alpha1.Topology {
	t := make(v1alpha1.Topology, min(max(shards, len(existing)), int(v1alpha1.MaxShards)))
	copy(t, existing)
	for i := range t {
		if i < len(in.desired.Topology) {
			t[i] = max(t[i], in.desired.Topology[i])
		}
		t[i] = max(t[i], 1)
	}
	return t
}

// shrink takes off the instances of a shard that the spec does not ask for, if they may go.
func (in input) shrink(t v1alpha1.Topology, shard int) {
	if t[shard] <= in.desired.Topology[shard] || !in.forgottenByAll().Holds {
		return
	}
	for ordinal := int(in.desired.Topology[shard]); ordinal < int(t[shard]); ordinal++ {
		if !in.mayBeRemoved(shard, ordinal).Holds {
			return
		}
	}
	t[shard] = in.desired.Topology[shard]
}

// removed is how many shards at the end are being deleted, or gone, because the spec does not ask for them. (One that the spec asks
// for comes back.) StatefulSets that go together are not gone at the same moment, nor in an order; one that is missing between
// others is no shard that lost its StatefulSet when all slots are served without it.
func (in input) removed(t v1alpha1.Topology) int {
	remains := make([]bool, len(t))
	for i := range remains {
		remains[i] = !slotsCovered(in.snap)
	}
	for _, shard := range in.snap.Shards {
		if shard.Index < len(remains) {
			remains[shard.Index] = !shard.Terminating
		}
	}
	n := 0
	for i := len(t) - 1; i >= len(in.desired.Topology) && !remains[i] && in.snap.Formed && in.snap.Masters()[i] == nil; i-- {
		n++
	}
	return n
}

// shardsInTables is how many shards own slots as far as any one instance knows. A shard
// whose StatefulSet was deleted still exists: its claims hold its data. Owners that nobody
// answers for count only with slots that nobody else owns: a table may name the dead master
// of a shard that has failed over.
func shardsInTables(s *snapshot.Snapshot) int {
	missing := slots.All().Subtract(s.Owned())
	shardOf := shardsByNode(s)
	most := 0
	for _, in := range s.Reachable() {
		shards, unknown := map[int]bool{}, 0
		if !in.Redis.Slots.IsEmpty() {
			shards[in.Shard] = true
		}
		for id, peer := range in.Redis.Peers {
			shard, known := shardOf[id]
			switch {
			case peer.Slots.IsEmpty():
			case known:
				shards[shard] = true
			case !peer.Slots.Intersect(missing).IsEmpty():
				unknown++
			}
		}
		most = max(most, len(shards)+unknown)
	}
	return most
}

// shardsByNode are the shards of nodes: of the first instance that answers to a node ID, or that follows it.
func shardsByNode(s *snapshot.Snapshot) map[string]int {
	shards := map[string]int{}
	for _, in := range s.Reachable() {
		for _, id := range []string{in.Redis.NodeID, in.Redis.MasterID} {
			if _, known := shards[id]; !known && id != "" {
				shards[id] = in.Shard
			}
		}
	}
	return shards
}

// existingTopology is that of the StatefulSets. One beyond what the API allows counts for nothing.
func existingTopology(s *snapshot.Snapshot) v1alpha1.Topology {
	var t v1alpha1.Topology
	for _, shard := range s.Shards {
		if shard.Index < 0 || shard.Index >= int(v1alpha1.MaxShards) {
			continue
		}
		for len(t) <= shard.Index {
			t = append(t, 0)
		}
		t[shard.Index] = min(max(shard.Replicas, 0), v1alpha1.MaxReplicas)
	}
	return t
}

// scaling reports whether the cluster is on its way to another topology, and which way. Once
// the StatefulSets are as asked for, what is left is only known from what was reported
// before: new instances that start look like lost ones.
func scaling(in input) (Situation, bool) {
	want, exists := in.desired.Topology, existingTopology(in.snap)
	from, to := len(exists), len(want)
	if in.snap.Goal != nil {
		from = in.snap.Goal.From
	}
	switch {
	case !in.snap.Formed || !slotsCovered(in.snap):
		return "", false
	case to < from || to < len(exists) || want.Instances() < exists.Instances() || len(in.snap.Instances) > int(want.Instances()):
		return ScalingIn, true
	case to > from || to > len(in.owned()) || in.snap.Goal != nil || want.Instances() > exists.Instances() || in.snap.Scaling:
		return ScalingOut, true
	}
	return "", false
}
