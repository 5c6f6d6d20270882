// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// capacity holds when the data of slots that move fits into the shards that receive them: into maxmemory, or into the part of the
// memory limit that data may take. Keys are taken to be spread evenly over a shard's slots. New masters that take an equal share
// relieve the others, and are never too small for it.
func capacity(in input, goal *snapshot.Goal) Verdict {
	if in.desired.OverCapacity || !in.desired.AssignReceive && len(in.desired.Topology) > len(in.owned()) {
		return holds(FitsInMemory)
	}
	masters := in.masters()
	expected := map[string]int64{}
	for _, move := range in.moves(goal) {
		from := in.snap.ByNodeID(move.From.NodeID).Redis
		part := from.UsedMemory * int64(move.Slots.Len()) / int64(from.Slots.Len())
		expected[move.To.Pod] += part
		expected[move.From.Pod] -= part
	}
	for shard := range in.desired.Topology {
		pod := masters[shard]
		if pod == nil || expected[pod.Name] <= 0 {
			continue
		}
		will, room, what := pod.Redis.UsedMemory+expected[pod.Name], pod.Redis.MaxMemory, "maxmemory"
		if room == 0 {
			room, what = redisconf.MaxMemory(pod.MemoryLimit), fmt.Sprintf("%d %% of its memory limit", redisconf.DataPercent)
		}
		if room > 0 && will > room {
			return fails(FitsInMemory,
				"shard %d would hold %s, more than the %s of %s: give its instances more memory, move less to it, or set the annotation %s to true",
				shard, megabytes(will), megabytes(room), what, v1alpha1.AnnotationOverCapacity)
		}
	}
	return holds(FitsInMemory)
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20)) }

// movable cuts a move down to what can move now: between a master that serves and owns the
// slots in the eyes of the destination too, and a shard that is healthy.
func movable(in input, move Move) (Move, Verdict) {
	from, to := in.snap.ByNodeID(move.From.NodeID), in.snap.ByNodeID(move.To.NodeID)
	if v := serves(in, from); !v.Holds {
		return move, v
	}
	for _, pod := range in.snap.Reachable() {
		if pod.Shard == to.Shard && !in.safeToRemove(pod).Holds {
			if v := serves(in, pod); !v.Holds {
				return move, v
			}
			// With its first slot the shard is in everybody's table, and clients ask any of its
			// instances for theirs.
			if !hasFullSlotMap(pod) {
				return move, fails(ShardHealthy, "%s does not know yet who owns which slots", pod.Name)
			}
		}
	}
	for ordinal := range int(in.topology[to.Shard]) {
		if pod := in.snap.Find(to.Shard, ordinal); (pod == nil || pod.Redis == nil) && !in.notRequired(to.Shard, ordinal).Holds {
			return move, fails(ShardHealthy, "instance %d of shard %d, which is to receive slots, does not answer", ordinal, to.Shard)
		}
	}
	if v := in.servedOutside(to.Shard, int(in.topology[to.Shard])); !v.Holds {
		return move, v
	}
	if v := in.knownOutside(to); !v.Holds {
		return move, v
	}
	known := to.Redis.Peers[from.Redis.NodeID].Slots
	if move.Slots = move.Slots.Intersect(known); move.Slots.IsEmpty() {
		return move, fails(ShardHealthy, "%s has not heard yet what %s owns", to.Name, from.Name)
	}
	return move, holds(ShardHealthy)
}

// ownershipSettled holds when every message in which a master does not claim its slots yet has been delivered or lost. Whoever
// gets one while it imports a slot from that master (Valkey) or has just taken it over (Redis 7.0) gives the slot to the wrong
// one of them, and the keys are deleted: clusterUpdateSlotsConfigWith in cluster.c and cluster_legacy.c. Nodes that know each
// other exchange messages within half of the node timeout, and drop a connection that is silent for as long.
func ownershipSettled(in input, source *snapshot.Instance) Verdict {
	r := source.Redis
	if left := 2*r.NodeTimeout - in.now.Sub(r.ReceivedAt); left > 0 {
		return fails(OwnershipSettled, "%s has received slots itself: it gives none for twice the node timeout, which is over in %s",
			source.Name, left.Round(time.Second))
	}
	return holds(OwnershipSettled)
}

// serves reports whether a master serves, is linked to the other masters and suspected by none of
// them, and that a replica is in sync.
func serves(in input, pod *snapshot.Instance) Verdict {
	r := pod.Redis
	switch {
	case pod.Terminating:
		return fails(ShardHealthy, "%s is being deleted", pod.Name)
	case r.Master && !r.ClusterOK:
		return fails(ShardHealthy, "%s does not serve yet", pod.Name)
	case !r.Master && !r.MasterLinkUp:
		return fails(ShardHealthy, "%s is not in sync with its master", pod.Name)
	}
	for _, other := range in.members() {
		if !r.Master || other == pod || !other.Redis.Master {
			continue // a replica need not be known to others
		}
		peer, ok := other.Redis.Peers[r.NodeID]
		if !ok || !peer.Connected || peer.Failed || peer.Suspected || peer.Handshake || !peer.Master {
			return fails(ShardHealthy, "%s is not linked to %s", pod.Name, other.Name)
		}
	}
	return holds(ShardHealthy)
}

// masters are, by shard number, the instances that own slots, and for a shard that owns
// none the one that receives its first: one that others follow already, or an empty one.
func (in input) masters() map[int]*snapshot.Instance {
	masters := in.snap.Masters()
	// While some slot has no owner that answers, a shard without slots may have lost its
	// master: its replicas hold the data, and must not follow an empty instance.
	if !in.snap.Formed || !slotsCovered(in.snap) {
		return masters
	}
	for shard := range in.desired.Topology {
		if masters[shard] != nil {
			continue
		}
		pod := followed(in, shard)
		if pod == nil {
			pod = chooseMaster(in, shard, masters)
		}
		if pod != nil {
			masters[shard] = pod
		}
	}
	return masters
}

// followed is the master of a shard that another of its instances follows.
func followed(in input, shard int) *snapshot.Instance {
	reachable := in.snap.Reachable()
	for _, pod := range reachable {
		if pod.Shard == shard && pod.Redis.Master && !pod.Fenced &&
			slices.ContainsFunc(reachable, func(other *snapshot.Instance) bool { return other.Redis.MasterID == pod.Redis.NodeID }) {
			return pod
		}
	}
	return nil
}
