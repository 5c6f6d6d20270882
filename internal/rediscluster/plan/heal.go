// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Replicate makes instances replicas of their shard's master.
type Replicate struct {
	base
	Replications []Replication
}

func (Replicate) Name() string { return "Replicate" }

// Replication is one CLUSTER REPLICATE.
type Replication struct {
	Replica  Target
	MasterID string
}

// Forget removes nodes that are gone from every instance's table.
type Forget struct {
	base
	NodeIDs []string
	On      []Target
}

func (Forget) Name() string { return "Forget" }

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
			if pod.Shard != shard || pod.Redis.Master || !pod.Redis.MasterLinkUp || pod.Terminating || pod.Fenced ||
				master == nil || master.Shard == shard || masters[master.Shard] == master || !upToDate(pod, master) {
				continue
			}
			return Switchover{
				base:   base{fmt.Sprintf("shard %d has no master: %s takes over from %s, which is of another shard", shard, pod.Name, master.Name)},
				Master: target(master), Replica: target(pod)}
		}
		if step := in.regain(shard, masters); step != nil {
			return step
		}
	}
	return nil
}

// regain renews an instance of a shard that has no master and owns nothing, all of whose instances follow others: the
// master of another shard, or a node that is gone. Nothing else makes a replica a master that owns no slot: it is not elected,
// and if it took over from the master of another shard, that would be left without one. What it holds is a copy of what owners
// that answer have. A master that owns no slot and holds keys is a person's to give up.
func (in input) regain(shard int, masters map[int]*snapshot.Instance) Step {
	if !snapshotComplete(in).Holds || !ownedOnce(in.snap) {
		return nil
	}
	for _, pod := range in.snap.Reachable() {
		if pod.Shard != shard || pod.Terminating || pod.Fenced || in.leaving(pod.Shard, pod.Ordinal) {
			continue
		}
		master := in.snap.ByNodeID(pod.Redis.MasterID)
		switch {
		case pod.Redis.Master && pod.Redis.Keys > 0 && len(pod.Redis.Importing)+len(pod.Redis.Migrating) == 0:
			return Stall{
				base: base{
					fmt.Sprintf("shard %d has no master, and %s owns no slot and holds %d keys; delete its claim to give them up", shard, pod.Name,
						pod.Redis.Keys)},
				Cause: "UnownedKeys", BlockedBy: NoUnownedKeys}
		case pod.Redis.Master:
		case master != nil && master.Shard != shard && masters[master.Shard] == master:
			return in.recreate(pod, fmt.Sprintf("shard %d has no master, and %s follows %s, the master of another shard", shard, pod.Name,
				master.Name))
		case master == nil && pod.Redis.MasterID != "":
			return in.recreate(pod, fmt.Sprintf("shard %d has no master, and %s follows node %s, which is gone and owned nothing", shard, pod.Name,
				short(pod.Redis.MasterID)))
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

// planConverge waits for what has been started, and names what is not yet healthy. It does not wait for a pod to be ready
// that a restart makes ready.
func planConverge(in input) Step {
	return awaitConvergence(in, func(pod *snapshot.Instance) bool {
		return in.retiring(pod) || pod.SidecarFailure != "" && in.stale(pod)
	})
}

// awaitConvergence waits for everything but the readiness of pods that are excused.
func awaitConvergence(in input, excused func(*snapshot.Instance) bool) Step {
	if v := in.complete(isFenced); !v.Holds {
		// Kubernetes tells when a pod starts, and nobody when Redis has loaded its data.
		return waitFor(v)
	}
	members := in.looked()
	for _, pod := range members {
		if v := converged(in, members, pod); !v.Holds {
			return waitFor(v)
		}
		if !pod.Ready && !excused(pod) {
			why := strings.TrimSuffix(": "+pod.SidecarFailure, ": ")
			return waitFor(fails(PodsReady, "pod %s is not ready yet%s", pod.Name, why))
		}
	}
	if missing := slots.All().Subtract(in.snap.Owned()); missing.Len() > 0 {
		return waitFor(fails(SlotsCovered, "slots %s are not covered", missing))
	}
	return nil
}

// converged holds when an instance knows the members as they are, serves, and is in sync. A replica that its restart mends need not be,
// unless the restart waits for the cluster's turn.
func converged(in input, members []*snapshot.Instance, pod *snapshot.Instance) Verdict {
	r := pod.Redis
	for _, other := range members {
		if other == pod {
			continue
		}
		peer, ok := r.Peers[other.Redis.NodeID]
		switch {
		case ok && peer.IP != other.IP:
			return fails(Converged, "%s has not heard yet that %s is at %s", pod.Name, other.Name, other.IP)
		case !peer.Connected || peer.Failed || peer.Suspected:
			return fails(Converged, "%s is not linked to %s yet", pod.Name, other.Name)
		case peer.Master != other.Redis.Master || peer.MasterID != other.Redis.MasterID || !peer.Slots.Equal(other.Redis.Slots):
			return fails(Converged, "%s has not heard yet what %s is and owns", pod.Name, other.Name)
		}
	}
	switch {
	case r.Master && len(r.Migrating)+len(r.Importing) > 0:
		return fails(Converged, "%s has open slots", pod.Name)
	case !r.ClusterOK:
		return fails(Converged, "%s does not serve yet", pod.Name)
	case !r.Master && !r.MasterLinkUp && (!in.skewed(pod) || in.held()):
		return fails(Converged, "%s is not in sync with its master yet", pod.Name)
	case r.Master && r.Slots.IsEmpty() && in.masters()[pod.Shard] != pod && !in.leaving(pod.Shard, pod.Ordinal):
		return fails(Converged, "%s owns no slot and follows no master", pod.Name)
	}
	if v := writesAccepted(pod); !v.Holds {
		return v
	}
	return holds(Converged)
}

// nodeGone proves that no pod answers to a node ID: every pod was asked.
func nodeGone(in input, id string) Verdict {
	if v := snapshotComplete(in); !v.Holds {
		return fails(NodeGone, "node %s may still exist: %s", short(id), v.Reason)
	}
	if pod := in.snap.ByNodeID(id); pod != nil {
		return fails(NodeGone, "node %s is %s", short(id), pod.Name)
	}
	return holds(NodeGone)
}

// looksElsewhere reports whether a replica follows its master at a former address, although it knows the present one. An instance that
// hears of that from a third one changes its table, and not whom it connects to (clusterProcessGossipSection in cluster.c,
// github.com/redis/redis/pull/13572). Told to follow the same master again, Redis does; Valkey does nothing then, and has to start again.
func looksElsewhere(pod, master *snapshot.Instance) bool {
	r := pod.Redis
	return !r.Master && !r.MasterLinkUp && r.MasterIP != "" && r.MasterIP != master.IP && linked(pod, master)
}

// knowsOwners reports whether an instance can tell clients who owns every slot. Others name it to clients as soon as it is a replica, and
// about a slot without an owner that it knows it says CLUSTERDOWN (getNodeByQuery in cluster.c). Masters that it does not reach do not
// count: it may never hear of their slots. Nor does it matter for one that is a replica already.
func (in input) knowsOwners(pod *snapshot.Instance) bool {
	if !pod.Redis.Master {
		return true
	}
	var named slots.Set
	for _, peer := range pod.Redis.Peers {
		named = named.Union(peer.Slots)
	}
	for _, owner := range in.snap.Reachable() {
		if peer, known := pod.Redis.Peers[owner.Redis.NodeID]; known && (peer.Failed || peer.Suspected || !peer.Connected) {
			continue
		}
		if !owner.Redis.Slots.Subtract(named).IsEmpty() {
			return false
		}
	}
	return true
}

// planReplicate makes every instance that owns no slot a replica of its shard's master.
func planReplicate(in input) Step {
	masters := in.masters()
	var replications []Replication
	var renewal Step
	for _, pod := range in.snap.Reachable() {
		master := masters[pod.Shard]
		if master == nil || master == pod || pod.Redis.Slots.Len() > 0 || pod.Terminating || pod.Fenced || in.safeToRemove(pod).Holds ||
			pod.Redis.MasterID == master.Redis.NodeID && !looksElsewhere(pod, master) {
			continue
		}
		marked := pod.Redis.Master && len(pod.Redis.Importing)+len(pod.Redis.Migrating) > 0
		if marked && (!in.staleMaster(pod) || !ownedOnce(in.snap)) {
			continue // its keys are of open slots, which planMove finishes
		}
		if marked && pod.Redis.Keys > 0 { // which it would have to be rid of to follow anybody
			renewal = in.recreate(pod, fmt.Sprintf("%s has come back with an old copy of what %s has taken over", pod.Name, master.Name))
			continue
		}
		if pod.Redis.Master && pod.Redis.Keys > 0 {
			continue // planUnownedKeys speaks about it
		}
		if pod.Redis.MasterID == master.Redis.NodeID && pod.Redis.Engine != "redis" {
			if pod.Redis.MasterLinkDownFor > electionTimeout {
				renewal = Restart{base: base{fmt.Sprintf("%s looks for %s at its former address, %s", pod.Name, master.Name, pod.Redis.MasterIP)},
					Pod: pod.Name, UID: pod.UID, Failing: true}
			}
			continue
		}
		if linked(pod, master) && in.knowsOwners(pod) && in.toBeServed(pod, master).Holds {
			replications = append(replications, Replication{Replica: target(pod), MasterID: master.Redis.NodeID})
		}
	}
	if len(replications) == 0 {
		return renewal
	}
	return Replicate{base: base{fmt.Sprintf("%d instances do not follow their shard's master", len(replications))}, Replications: replications}
}
