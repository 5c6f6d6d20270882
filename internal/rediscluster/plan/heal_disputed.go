// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// dispute is about an instance that knows nobody and claims slots which others assign to
// another node: it has lost its nodes.conf and kept its data, comes up under a new node ID at
// epoch 0, and claims the slots of its keys (verifyClusterConfigWithData in cluster.c).
type dispute struct {
	claims slots.Set
	keys   int64
	// with are the IDs of the nodes that others, or they themselves, take for the owners.
	with []string
}

// disputes are those of a snapshot, by pod.
func disputes(s *snapshot.Snapshot) map[string]dispute {
	var found map[string]dispute
	reachable := s.Reachable()
	for _, pod := range reachable {
		d := dispute{claims: pod.Redis.Slots, keys: pod.Redis.Keys}
		if !pod.Redis.Isolated() || d.claims.IsEmpty() {
			continue
		}
		for _, other := range reachable {
			if other != pod {
				d.hear(other)
			}
		}
		if len(d.with) == 0 {
			continue
		}
		if found == nil {
			found = map[string]dispute{}
		}
		slices.Sort(d.with)
		found[pod.Name] = d
	}
	return found
}

// hear adds whom an instance takes for the owners of what is claimed.
func (d *dispute) hear(from *snapshot.Instance) {
	owns := func(id string, owned slots.Set) {
		if !owned.Intersect(d.claims).IsEmpty() && !slices.Contains(d.with, id) {
			d.with = append(d.with, id)
		}
	}
	owns(from.Redis.NodeID, from.Redis.Slots)
	for id, peer := range from.Redis.Peers {
		owns(id, peer.Slots)
	}
}

// setAside is the snapshot without the disputed claims: nothing is concluded from them, the
// instances count as masters that own nothing. Of a cluster that has not formed it stays as
// it is: planConflict speaks then.
func setAside(s *snapshot.Snapshot, found map[string]dispute) *snapshot.Snapshot {
	if len(found) == 0 || !s.Formed {
		return s
	}
	after := *s
	after.Instances = slices.Clone(s.Instances)
	for i := range after.Instances {
		pod := &after.Instances[i]
		if _, disputed := found[pod.Name]; disputed {
			r := *pod.Redis
			r.Slots = slots.Set{}
			pod.Redis = &r
		}
	}
	return &after
}

// claimsUndisputed reports whether an instance may be introduced to others without losing what it
// owns and has keys of. A node that hears from anybody of an owner with a newer epoch gives
// its slots up and deletes their keys (clusterSendUpdate, clusterUpdateSlotsConfigWith). One
// that knows nobody has no epoch at all: whoever was not asked may still know another owner.
func claimsUndisputed(in input, pod *snapshot.Instance) Verdict {
	if d, disputed := in.disputes[pod.Name]; disputed {
		return fails(ClaimsUndisputed, "%s has lost its nodes.conf and claims slots %s, which others assign to node %s", pod.Name, d.claims,
			short(d.with[0]))
	}
	r := pod.Redis
	switch {
	case r.Slots.IsEmpty() || r.Keys == 0:
		return holds(ClaimsUndisputed)
	case r.Isolated():
		if v := snapshotComplete(in); !v.Holds {
			return fails(ClaimsUndisputed, "%s knows nobody and holds keys; who else is taken for the owner of their slots is not known: %s",
				pod.Name, v.Reason)
		}
		return holds(ClaimsUndisputed)
	}
	lost := lostMasters(in.snap)
	for _, other := range in.snap.Reachable() {
		for _, id := range sortedPeers(other.Redis) {
			peer := other.Redis.Peers[id]
			// Whom a replica follows has a newer copy, and one that answers settles it with the instance itself.
			if peer.Epoch <= r.Epoch || peer.Slots.Intersect(r.Slots).IsEmpty() || in.snap.ByNodeID(id) != nil ||
				slices.Contains(lost, id) {
				continue
			}
			return fails(ClaimsUndisputed, "%s takes node %s, which does not answer, for the owner of slots that %s owns and holds", other.Name,
				short(id), pod.Name)
		}
	}
	return holds(ClaimsUndisputed)
}

// planAmbiguous says which instances hold keys of slots that another copy is there of, when
// nothing proves which copy counts. It comes after whatever could prove it: an owner that
// everybody agrees on (planReidentify), a replica that had all of its master's data
// (planPromote), or that nobody is left who knew another owner (planForget).
func planAmbiguous(in input) Step {
	if !snapshotComplete(in).Holds {
		return nil
	}
	for _, pod := range in.snap.Reachable() {
		d, disputed := in.disputes[pod.Name]
		if !disputed || pod.Terminating {
			continue
		}
		rival := in.rival(pod, d)
		if rival == nil {
			continue
		}
		return Stall{
			base: base{
				fmt.Sprintf(
					"%s has lost its nodes.conf and holds %d keys of slots %s, of which %s may hold another copy; keep one: delete the claim and the pod of the other", pod.Name, d.keys, d.claims, rival.Name)},
			Cause: "AmbiguousOwner", BlockedBy: ClaimsUndisputed}
	}
	return nil
}

// rival is the instance that may hold another copy of what a disputed one claims: one that owns
// or claims it too, or that follows the node which others take for the owner.
func (in input) rival(disputed *snapshot.Instance, d dispute) *snapshot.Instance {
	for _, pod := range in.snap.Reachable() {
		if pod != disputed && (slices.Contains(d.with, pod.Redis.NodeID) || slices.Contains(d.with, pod.Redis.MasterID)) {
			return pod
		}
	}
	return nil
}

// heldElsewhere reports whether an instance which lost its nodes.conf may hold what the lost master
// of a replica had.
func (in input) heldElsewhere(id string) bool {
	for _, d := range in.disputes {
		if slices.Contains(d.with, id) {
			return true
		}
	}
	return false
}
