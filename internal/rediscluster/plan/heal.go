// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// electionPatience is how long an ordinary failover may take before it is forced: an
// election is retried after at least 4 s and after 4 node timeouts (Redis Cluster
// specification), so that this is more than one retry at the default timeout of 5 s.
const electionPatience = 30 * time.Second

// planPromote helps a shard whose master is gone. The ordinary election comes first. It
// is forced when it does not come to an end, and taken over only when most masters are
// proven to be gone: then nobody is left to vote. A node that is gone and owned nothing (an
// instance that came back with an old claim remembers one) needs no successor.
func planPromote(in input) Step {
	if slotsCovered(in.snap) {
		return nil // whom the lost node's replicas follow is for planReplicate
	}
	for _, id := range lostMasters(in.snap) {
		best := bestReplica(in.snap, id)
		if best == nil {
			continue
		}
		gone := nodeGone(in, id)
		lost := majorityLost(in)
		switch {
		case !gone.Holds:
			continue // planSettle waits for the pod; Redis elects meanwhile if it can
		case lost.Holds:
			return Promote{base: base{fmt.Sprintf("master %s of shard %d is gone, and so are most masters: nobody is left to elect %s", short(id), best.Shard, best.Name)},
				Replica: target(best), Takeover: true}
		case best.Redis.MasterLinkDownFor > electionPatience:
			return Promote{base: base{fmt.Sprintf("master %s of shard %d is gone, and no replica was elected within %s", short(id), best.Shard, electionPatience)},
				Replica: target(best)}
		default:
			return Wait{base: base{fmt.Sprintf("master %s of shard %d is gone; %s is to be elected", short(id), best.Shard, best.Name)}, After: soon}
		}
	}
	return nil
}

// lostMasters are the node IDs that replicas follow and no instance answers to.
func lostMasters(s *snapshot.Snapshot) []string {
	var ids []string
	for _, in := range s.Reachable() {
		id := in.Redis.MasterID
		if !in.Redis.Master && id != "" && s.ByNodeID(id) == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// bestReplica is the replica of a master that has received most of its data.
func bestReplica(s *snapshot.Snapshot, masterID string) *snapshot.Instance {
	var best *snapshot.Instance
	for _, in := range s.Reachable() {
		if in.Redis.Master || in.Redis.MasterID != masterID || in.Terminating {
			continue
		}
		if best == nil || in.Redis.Offset > best.Redis.Offset {
			best = in
		}
	}
	return best
}

// planReturn gives a shard that has no master one of its own again. Its instances may follow
// a node of another shard: a master that came back after it had lost its slots to others
// follows whoever took the last (clusterUpdateSlotsConfigWith in cluster.c), and may have
// been promoted since.
func planReturn(in input) Step {
	if !in.snap.Formed {
		return nil
	}
	masters := in.masters()
	for shard := range in.desired.Topology {
		if masters[shard] != nil {
			continue
		}
		for _, pod := range in.snap.Reachable() {
			master := in.snap.ByNodeID(pod.Redis.MasterID)
			if pod.Shard != shard || pod.Redis.Master || !pod.Redis.MasterLinkUp || pod.Terminating ||
				master == nil || master.Shard == shard || masters[master.Shard] == master || !upToDate(pod, master) {
				continue
			}
			return Handover{base: base{fmt.Sprintf("shard %d has no master: %s takes over from %s, which is of another shard", shard, pod.Name, master.Name)}, Replica: target(pod)}
		}
	}
	return nil
}

// planForget removes nodes that are gone: no pod answers to the ID though every pod was
// asked, and no replica still follows it (it may hold the only copy of its slots).
func planForget(in input) Step {
	if !snapshotComplete(in).Holds {
		return nil
	}
	lost := lostMasters(in.snap)
	var ids []string
	step := Forget{}
	for _, pod := range in.snap.Reachable() {
		knowsGone := false
		for _, id := range sortedPeers(pod.Redis) {
			peer := pod.Redis.Peers[id]
			if peer.Handshake || in.snap.ByNodeID(id) != nil || slices.Contains(lost, id) {
				continue
			}
			knowsGone = true
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
		if knowsGone {
			step.On = append(step.On, target(pod))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	slices.Sort(ids)
	step.NodeIDs = ids
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = short(id)
	}
	step.Reason = "no pod answers to these nodes any more: " + list(names)
	return step
}

// planSettle waits for what has been started, and names what is not yet as it should be.
func planSettle(in input) Step {
	if v := snapshotComplete(in); !v.Holds {
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate}
	}
	members := in.members()
	for _, pod := range members {
		if reason := unsettled(in, members, pod); reason != "" {
			return Wait{base: base{reason}, After: soon}
		}
	}
	if missing := slots.All().Subtract(in.snap.Owned()); missing.Len() > 0 {
		return Wait{base: base{fmt.Sprintf("slots %s are not covered", missing)}, BlockedBy: SlotsCovered, After: soon}
	}
	return nil
}

// unsettled says what an instance still waits for; empty when nothing.
func unsettled(in input, members []*snapshot.Instance, pod *snapshot.Instance) string {
	r := pod.Redis
	for _, other := range members {
		if other == pod {
			continue
		}
		peer, ok := r.Peers[other.Redis.NodeID]
		switch {
		case ok && peer.IP != other.IP:
			return fmt.Sprintf("%s has not heard yet that %s is at %s", pod.Name, other.Name, other.IP)
		case !ok || !peer.Connected || peer.Failed || peer.Suspected:
			return fmt.Sprintf("%s is not linked to %s yet", pod.Name, other.Name)
		case peer.Master != other.Redis.Master || peer.MasterID != other.Redis.MasterID || !peer.Slots.Equal(other.Redis.Slots):
			return fmt.Sprintf("%s has not heard yet what %s is and owns", pod.Name, other.Name)
		}
	}
	switch {
	case r.Master && len(r.Migrating)+len(r.Importing) > 0:
		return fmt.Sprintf("%s has half-moved slots", pod.Name)
	case !r.ClusterOK:
		return fmt.Sprintf("%s does not serve yet", pod.Name)
	case !r.Master && !r.MasterLinkUp:
		return fmt.Sprintf("%s is not in sync with its master yet", pod.Name)
	case r.Master && r.Slots.IsEmpty() && in.masters()[pod.Shard] != pod && !in.leaving(pod.Shard, pod.Ordinal):
		return fmt.Sprintf("%s owns no slot and follows no master", pod.Name)
	case !pod.Ready:
		return fmt.Sprintf("pod %s is not ready yet", pod.Name)
	}
	return ""
}
