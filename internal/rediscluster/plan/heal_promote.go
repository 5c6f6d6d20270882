// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Promote makes a replica the master of a shard whose master is gone for good.
type Promote struct {
	base
	Replica Target
	// Takeover goes without the consent of other masters: only right when their
	// majority is proven to be gone. Otherwise the promotion is forced but voted on.
	Takeover bool
	// Lost is the node ID of the master that is taken over from, empty without a takeover: that is not carried out when the replica
	// follows another one, or, unless it is Inherited, has a link to it.
	Lost string
	// Inherited reports whether the master runs under another node ID, so that the replica may have a link to it.
	Inherited bool
	// Others are the other instances of the shard that answer: none may own slots when a takeover is carried out.
	Others []Target
	// Silent are addresses at which nobody may listen then.
	Silent []string
}

func (Promote) Name() string { return "Promote" }

// electionTimeout is how long an ordinary failover may take before it is forced: an
// election is retried after at least 4 s and after 4 node timeouts (Redis Cluster
// specification), so that this is more than one retry at the default timeout of 5 s.
const electionTimeout = 30 * time.Second

// planPromote helps a shard whose master is gone, or does not run and leaves a replica with
// its data. A crash that the kubelet reports needs no node timeout to be noticed. Otherwise the
// ordinary election comes first. It is forced when it does not come to an end,
// and taken over only when most masters are proven not to be there: then nobody is left to
// vote. A node that is gone and owned nothing (an instance that came back with an old claim
// remembers one) needs no successor.
func planPromote(in input) Step {
	if slotsCovered(in.snap) {
		return nil // whom the lost node's replicas follow is for planReplicate
	}
	var wait Step
	for _, id := range lostMasters(in.snap) {
		best := bestReplica(in, id)
		if best == nil || succeeded(in.snap, id, best) {
			continue
		}
		step := succession(in, id, best)
		if promote, now := step.(Promote); now {
			asked := in.askedForVotes(id)
			if promote.Takeover || asked == nil {
				return promote
			}
			step = waitFor(fails(MasterElected, "%s has asked for votes; who has voted may vote again after two node timeouts", asked.Name))
		}
		if wait == nil { // another shard need not wait for this one's election
			wait = step
		}
	}
	return wait
}

// askedForVotes is a replica of a master that was told to ask for votes so short a time ago that not all may vote again; nil if there is
// none.
func (in input) askedForVotes(id string) *snapshot.Instance {
	for _, replica := range replicasOf(in.snap, id) {
		if !in.mayVote(replica) {
			return replica
		}
	}
	return nil
}

// mayVote reports whether all masters may vote for a replica that was told to ask them before. A master votes for replicas of one master
// once in two node timeouts (clusterSendFailoverAuthIfNeeded in cluster.c): if they ask more often, they may get each vote as soon as it
// can be given, and so never most of them at once.
func (in input) mayVote(replica *snapshot.Instance) bool {
	return in.now.Sub(replica.Redis.SwitchoverAt) > 2*replica.Redis.NodeTimeout+time.Second
}

// succeeded reports whether a shard has a master that serves instead of one that is lost, or others own what the replica thinks that the
// lost one owns: a replica that still follows that one has not heard, and would take from its successor what was written since.
func succeeded(s *snapshot.Snapshot, id string, replica *snapshot.Instance) bool {
	for _, pod := range s.Reachable() {
		if pod.Shard == replica.Shard && pod.Redis.Master && !pod.Redis.Slots.IsEmpty() {
			return true
		}
	}
	return !s.Owned().Intersect(replica.Redis.Peers[id].Slots).IsEmpty()
}

// succession is nil while the master may run: planConverge waits for its pod, and Redis elects
// meanwhile if it can.
func succession(in input, id string, best *snapshot.Instance) Step {
	late, lost := best.Redis.MasterLinkDownFor > awayFor(in, best), majorityLost(in).Holds
	state := "is gone"
	if in.heldElsewhere(id) && nodeGone(in, id).Holds {
		return inherit(in, id, best)
	}
	switch {
	case !lost && !late && crashed(in, id, best).Holds:
		return Promote{
			base: base{fmt.Sprintf(
				"master %s of shard %d has crashed: the others elect %s, which followed it to its end, without waiting for the node timeout",
				short(id), best.Shard, best.Name)}, Replica: target(best)}
	case few(in.snap) && lost && crashed(in, id, best).Holds && silenced(in, id, best).Holds:
		state = "has crashed"
	case nodeGone(in, id).Holds:
	case late && nodeStopped(in, id).Holds && (!lost || silenced(in, id, best).Holds) && lastInSync(in, id, best).Holds:
		state = "does not run"
	default:
		return nil
	}
	step := Promote{Replica: target(best), Takeover: lost}
	switch {
	case step.Takeover:
		step.Reason = fmt.Sprintf("master %s of shard %d %s, and so are most masters: nobody is left to elect %s", short(id), best.Shard, state,
			best.Name)
		if few(in.snap) || !v1alpha1.Elects(len(in.topology)) { // a table of before may name more
			step.Reason = fmt.Sprintf("master %s of shard %d %s, and fewer than three masters elect nobody: %s is appointed", short(id), best.Shard,
				state, best.Name)
		}
		step.Lost, step.Others, step.Silent = id, in.others(best), in.silent(best.Shard)
	case late:
		step.Reason = fmt.Sprintf("master %s of shard %d %s, and no replica was elected within %s", short(id), best.Shard, state,
			electionTimeout)
	default:
		return waitFor(fails(MasterElected, "master %s of shard %d is gone; %s is to be elected", short(id), best.Shard, best.Name))
	}
	return step
}

// inherit promotes the replica of a master that has come back under another node ID, with its
// data and without its nodes.conf. Others may never count the former ID as failed: at its
// address somebody answers, and Redis elects nobody then. The replica has all that there is if
// it follows the same process still, by its address, or did so to the end. If neither is proven,
// planAmbiguous speaks.
func inherit(in input, id string, best *snapshot.Instance) Step {
	if !best.Redis.MasterLinkUp && !lastInSync(in, id, best).Holds {
		return nil
	}
	step := Promote{
		base: base{
			fmt.Sprintf("master %s of shard %d has lost its nodes.conf and has another node ID now; %s has its data", short(id), best.Shard,
				best.Name)},
		Replica: target(best), Takeover: majorityLost(in).Holds}
	if step.Takeover {
		step.Lost, step.Inherited = id, true // the one under the other node ID owns what its data claims
	}
	return step
}

// crashed proves that a master's process has ended, and that a replica followed it to its end: the
// kubelet says when the container at the master's address ended, and the replica lost its link
// then, not before. (The container is restarted in a moment, or in minutes when it crashes again
// and again. Should it be back already, it becomes a replica: start.sh.)
func crashed(in input, id string, replica *snapshot.Instance) Verdict {
	const clocks = 2 * time.Second // whole seconds of two clocks
	r := replica.Redis
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if pod.Shard != replica.Shard || pod.Redis != nil || !pod.Stopped || pod.StoppedAt.IsZero() || pod.IP == "" || pod.IP != r.Peers[id].IP {
			continue
		}
		if r.MasterLinkUp || !r.MasterLinkLost || in.now.Add(-r.MasterLinkDownFor).Before(pod.StoppedAt.Add(-clocks)) {
			return fails(ReplicaInSync, "%s did not follow %s to its end", replica.Name, pod.Name)
		}
		return holds(NodeStopped)
	}
	return fails(NodeStopped, "no container is known to have ended at the address of node %s", short(id))
}

// nodeStopped proves that nobody runs as a node ID: every pod answers to another one or, as
// Kubernetes says, has no Redis that runs. It may come back with its data, if that is in a
// claim. (The pod that was the node may be gone: a StatefulSet makes the next of a name only
// then.)
func nodeStopped(in input, id string) Verdict {
	verdict, _ := in.nodeStopped(id)
	return verdict
}

// nodeStopped is the same with the pod that keeps it from holding; nil if none does.
func (in input) nodeStopped(id string) (Verdict, *snapshot.Instance) {
	if pod := in.snap.ByNodeID(id); pod != nil {
		return fails(NodeStopped, "node %s is %s", short(id), pod.Name), nil
	}
	for shard, n := range in.topology {
		for ordinal := range int(n) {
			if in.snap.Find(shard, ordinal) == nil {
				return fails(NodeStopped, "instance %d of shard %d has no pod yet", ordinal, shard), nil
			}
		}
	}
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.Redis == nil && !pod.Stopped {
			return fails(NodeStopped, "%s may run and does not answer", pod.Name), pod
		}
	}
	return holds(NodeStopped), nil
}

// lastInSync proves that a replica followed its master until that was last seen alive: in this
// process it was in sync, and lost the link no more than a node timeout before anybody got the
// last answer from the master, this operator included: a replica that is cut off knows no better than that its master was there when
// it lost it, while others still write to that. So somebody has to say it who is not of the shard. (An ordinary election takes replicas
// that lost the link up to ten node timeouts before: cluster-replica-validity-factor.) Nobody sees the master alive now.
func lastInSync(in input, id string, replica *snapshot.Instance) Verdict {
	r := replica.Redis
	if r.MasterLinkUp || !r.MasterLinkLost {
		return fails(ReplicaInSync, "%s has not been in sync since it started", replica.Name)
	}
	lastSeen := in.snap.Answered[id].At
	witnessed := !lastSeen.IsZero()
	for _, pod := range in.snap.Reachable() {
		peer, ok := pod.Redis.Peers[id]
		if ok && !peer.Failed && !peer.Suspected && !peer.NoAddress {
			return fails(ReplicaInSync, "%s sees node %s alive", pod.Name, short(id))
		}
		if peer.LastPong.After(lastSeen) {
			lastSeen = peer.LastPong
		}
		witnessed = witnessed || pod.Shard != replica.Shard && !peer.LastPong.IsZero()
	}
	if !witnessed {
		return fails(ReplicaInSync,
			"%s may lack what node %s wrote last: only its replicas know when it was last there, and the operator was started since", replica.Name,
			short(id))
	}
	lost := in.now.Add(-r.MasterLinkDownFor)
	if lost.Before(lastSeen.Add(-r.NodeTimeout)) {
		return fails(ReplicaInSync, "%s may lack what node %s wrote last", replica.Name, short(id))
	}
	return holds(ReplicaInSync)
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

// replicasOf are the replicas of a master that stay, and are not fenced.
func replicasOf(s *snapshot.Snapshot, masterID string) []*snapshot.Instance {
	var replicas []*snapshot.Instance
	for _, in := range s.Reachable() {
		if !in.Redis.Master && in.Redis.MasterID == masterID && !in.Terminating && !in.Fenced {
			replicas = append(replicas, in)
		}
	}
	return replicas
}

// bestReplica is the replica of a master that has received most of its data. An offset is one of a history, and a master that starts
// again begins a new one: so who followed the master to its end comes first, then who was linked to it when it was last seen, then who
// was linked at all. Of these it is the one with the highest offset, and of several the one whose node ID comes first: who else
// chooses (start.sh) chooses the same. nil: there is none.
func bestReplica(in input, id string) *snapshot.Instance {
	replicas := replicasOf(in.snap, id)
	if len(replicas) == 0 {
		return nil
	}
	return slices.MinFunc(replicas, func(a, b *snapshot.Instance) int {
		return cmp.Or(cmp.Compare(in.followed(id, b), in.followed(id, a)), cmp.Compare(b.Redis.Offset, a.Redis.Offset),
			cmp.Compare(a.Redis.NodeID, b.Redis.NodeID))
	})
}

// followed is how long a replica is known to have followed its master: more is longer.
func (in input) followed(id string, replica *snapshot.Instance) int {
	switch {
	case replica.Redis.MasterLinkUp, crashed(in, id, replica).Holds:
		return 3
	case lastInSync(in, id, replica).Holds:
		return 2
	case replica.Redis.MasterLinkLost:
		return 1
	}
	return 0
}

// others are the other instances of a shard that answer.
func (in input) others(of *snapshot.Instance) []Target {
	var others []Target
	for _, pod := range in.snap.Reachable() {
		if pod.Shard == of.Shard && pod != of {
			others = append(others, target(pod))
		}
	}
	return others
}

// majorityLost counts the voters, and how many of them answer.
func majorityLost(in input) Verdict {
	all, alive := voters(in.snap)
	if 2*alive > all {
		return fails(MajorityLost, "%d of %d masters answer: they can elect", alive, all)
	}
	return holds(MajorityLost)
}

// voters are the masters that own slots in any table, and those of them that answer.
func voters(s *snapshot.Snapshot) (all, alive int) {
	voters := map[string]bool{}
	for _, pod := range s.Reachable() {
		if pod.Redis.Slots.Len() > 0 {
			voters[pod.Redis.NodeID] = true
		}
		for id, peer := range pod.Redis.Peers {
			if peer.Slots.Len() > 0 {
				voters[id] = true
			}
		}
	}
	for id := range voters {
		if pod := s.ByNodeID(id); pod != nil && pod.Redis.Master {
			alive++
		}
	}
	return len(voters), alive
}
