// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Meet makes nodes know each other's present addresses.
type Meet struct {
	base
	Meetings []Meeting
}

func (Meet) Name() string { return "Meet" }

// Meeting is one CLUSTER MEET, sent to From about To.
type Meeting struct{ From, To Target }

// SetNodeTimeout changes cluster-node-timeout of running instances.
type SetNodeTimeout struct {
	base
	On      []Target
	Timeout time.Duration
}

func (SetNodeTimeout) Name() string { return "SetNodeTimeout" }

// planConflict stops before anything is joined that does not belong together.
func planConflict(in input) Step {
	for _, v := range []Verdict{noForeignNode(in.snap), slotsDisjoint(in.snap)} {
		if !v.Holds {
			return Stall{base: base{v.Reason}, Cause: "Conflict", BlockedBy: v.Predicate}
		}
	}
	return nil
}

// mostMeetings bounds the commands of one reconciliation; the rest follows in the next.
const mostMeetings = 1000

// formingTimeout is the cluster-node-timeout while a new cluster forms. Two delays of
// Redis follow from it: a master serves only that long after its first slot was assigned
// (clusterUpdateState in cluster.c: the rejoin delay, 0.5 to 5 s), and news reaches every
// node within half of it. Nobody uses the cluster yet, so that a hiccup taken for a failure
// harms nothing.
const formingTimeout = time.Second

// joiningTimeout is the cluster-node-timeout of a new master until it serves: it may serve
// that long after it has met the others (the same rejoin delay). It has clients to look
// after soon, so that this is no shorter than what Redis clusters commonly run with.
const joiningTimeout = 2 * time.Second

// planTimeout keeps cluster-node-timeout as it is asked for, and short while a new cluster
// forms or a new master joins. One that began with data has keys to serve, and replicas that copy for long: it keeps its own.
func planTimeout(in input) Step {
	want := in.desired.NodeTimeout
	if want == 0 {
		return nil
	}
	reason := "spec asks for another cluster-node-timeout"
	if !in.snap.Formed && !in.begins() && planConverge(in) != nil {
		if !snapshotComplete(in).Holds {
			return nil // not forming yet
		}
		want, reason = min(want, formingTimeout), "a new cluster serves sooner with a short one"
	}
	step := SetNodeTimeout{Timeout: want}
	joining := SetNodeTimeout{Timeout: min(want, joiningTimeout)}
	for _, pod := range in.snap.Reachable() {
		change, r := &step, pod.Redis
		_, disputed := in.disputes[pod.Name]
		if in.snap.Formed && r.Master && r.Slots.IsEmpty() && !r.ClusterOK && !disputed && !in.leaving(pod.Shard, pod.Ordinal) {
			change = &joining
		}
		if r.NodeTimeout != 0 && r.NodeTimeout != change.Timeout {
			change.On = append(change.On, target(pod))
		}
	}
	switch {
	case len(step.On) > 0:
	case len(joining.On) > 0:
		step, want, reason = joining, joining.Timeout, "a new master serves sooner with a short one"
	default:
		return nil
	}
	step.Reason = fmt.Sprintf("cluster-node-timeout of %d instances is not %s: %s", len(step.On), want, reason)
	return step
}

// planMeet makes every instance know every other one at its present address. Every pair
// is introduced directly: gossip alone corrects an address only after the node timeout.
// A new cluster is introduced once all of it is there. One that would lose its keys by it is
// not introduced: others forget first whom they take for the owner (planForget).
func planMeet(in input) Step {
	if !in.snap.Formed && !snapshotComplete(in).Holds {
		return nil
	}
	var meetings []Meeting
	reachable := in.snap.Reachable()
	safe := map[*snapshot.Instance]bool{}
	undisputed := func(pod *snapshot.Instance) bool {
		verdict, known := safe[pod]
		if !known {
			verdict = claimsUndisputed(in, pod).Holds
			safe[pod] = verdict
		}
		return verdict
	}
	for i, a := range reachable {
		for _, b := range reachable[i+1:] {
			if a.Terminating || b.Terminating || in.safeToRemove(a).Holds || in.safeToRemove(b).Holds || mutuallyConnected(a, b) ||
				len(meetings) == mostMeetings ||
				!undisputed(a) || !undisputed(b) {
				continue
			}
			meetings = append(meetings, Meeting{From: target(a), To: target(b)})
		}
	}
	if len(meetings) == 0 {
		return nil
	}
	return Meet{base: base{fmt.Sprintf("%d pairs of instances do not know each other's address", len(meetings))}, Meetings: meetings}
}

// mutuallyConnected reports whether two instances need no introduction: both know each other, and one
// knows where the other is, who tells it.
func mutuallyConnected(a, b *snapshot.Instance) bool {
	return knows(a, b) && knows(b, a) && (linked(a, b) || linked(b, a))
}

// linked reports whether a knows b at b's present address.
func linked(a, b *snapshot.Instance) bool {
	peer, ok := a.Redis.Peers[b.Redis.NodeID]
	return ok && peer.IP == b.IP
}

// noForeignNode: a live link to a node ID that no pod has ever answered to, at an address
// that is none of our pods', leads into another cluster. (The link to a pod that was just
// killed looks alive for a moment.) A master that owns nothing is no cluster: planForget sends it away.
func noForeignNode(s *snapshot.Snapshot) Verdict {
	ours := map[string]bool{}
	for i := range s.Instances {
		ours[s.Instances[i].IP] = true
	}
	for _, in := range s.Reachable() {
		for _, id := range sortedPeers(in.Redis) {
			peer := in.Redis.Peers[id]
			empty := peer.Master && peer.Slots.IsEmpty()
			if peer.Connected && !peer.Failed && !peer.Suspected && !peer.Handshake && !empty && s.ByNodeID(id) == nil && !s.Seen[id] &&
				!ours[peer.IP] {
				return fails(NoForeignNode, "%s is linked to node %s at %s, which is no pod of this cluster", in.Name, short(id), peer.IP)
			}
		}
	}
	return holds(NoForeignNode)
}

func slotsDisjoint(s *snapshot.Snapshot) Verdict {
	reachable := s.Reachable()
	for i, a := range reachable {
		for _, b := range reachable[i+1:] {
			both := a.Redis.Slots.Intersect(b.Redis.Slots)
			// During a failover the old master has not heard yet: epochs settle it
			// when the two know each other.
			if both.Len() > 0 && !knows(a, b) && !knows(b, a) {
				return fails(SlotsDisjoint, "%s and %s both own slots %s and do not know each other", a.Name, b.Name, both)
			}
		}
	}
	return holds(SlotsDisjoint)
}
