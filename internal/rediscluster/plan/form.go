// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// AssignSlots gives slots that nobody owns to masters.
type AssignSlots struct {
	base
	Assignments []Assignment
}

func (AssignSlots) Name() string { return "AssignSlots" }

// Assignment is what one master is given, or the epoch of a replica of a new cluster.
type Assignment struct {
	To    Target
	Slots slots.Set
	// Epoch is the configuration epoch to set first; 0 leaves it. Only a node that
	// knows no other takes one (CLUSTER SET-CONFIG-EPOCH).
	Epoch uint64
}

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

// planAssign gives away slots that provably nobody owns: at the first forming, and when
// the data of a whole shard is gone. Ownership is proven by asking every instance, and
// a node that is gone must have been forgotten first.
func planAssign(in input) Step {
	missing := slots.All().Subtract(in.snap.Owned())
	if missing.Len() == 0 || !snapshotComplete(in).Holds || claimedByPeers(in.snap, missing) || in.disputedSlots(missing) {
		return nil // planForget, planPromote or planConverge speak about these
	}
	if step := in.lostData(missing); step != nil {
		return step
	}
	reason := fmt.Sprintf("no instance owns slots %s", missing)
	step := AssignSlots{base: base{reason}}
	holders := slices.Clone(in.snap.Reachable()) // keys of open slots show whose they are; an old copy counts when there is no other
	slices.SortStableFunc(holders, func(a, b *snapshot.Instance) int { return cmp.Compare(age(in, a), age(in, b)) })
	for _, pod := range holders {
		if keys := held(pod).Intersect(missing); pod.Redis.Master && !keys.IsEmpty() {
			step.Assignments = append(step.Assignments, Assignment{To: target(pod), Slots: keys})
			missing = missing.Subtract(keys)
		}
	}
	var stall Step
	destinations := destinations(in)
	chosen := chooseMasters(in, destinations)
	for i, give := range missing.Split(len(destinations)) {
		if give.IsEmpty() {
			continue
		}
		shard := destinations[i]
		master := chosen[shard]
		if master == nil {
			stall = Stall{
				base: base{
					fmt.Sprintf(
						"%s, and no instance of shard %d can take its part: each holds keys or follows a master; delete the claims of the shard to give its data up", reason, shard)},
				Cause: "NoCandidate", BlockedBy: NoUnownedKeys}
			continue
		}
		assignment := Assignment{To: target(master), Slots: give}
		if master.Redis.Isolated() && master.Redis.Epoch == 0 {
			assignment.Epoch = uint64(int(in.topology.Instances()) + shard + 1) //nolint:gosec // at most 1000 instances
		}
		step.Assignments = append(step.Assignments, assignment)
	}
	if len(step.Assignments) == 0 {
		return stall
	}
	if !in.snap.Formed {
		step.Assignments = append(step.Assignments, firstEpochs(in, chosen)...)
	}
	return step
}

// firstEpochs gives the replicas of a new cluster epochs below those of the masters. Without one
// they collide at epoch 0, and some of them come out above their masters. A replica says its
// master's epoch: Valkey 9 ignores for ever a node that says a lower one than before ("Ignore
// stale message" in cluster_legacy.c), so that who has not heard of its role never would.
func firstEpochs(in input, masters map[int]*snapshot.Instance) []Assignment {
	var rest []Assignment
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if r := pod.Redis; r != nil && r.Isolated() && r.Epoch == 0 && r.Slots.IsEmpty() && masters[pod.Shard] != pod {
			rest = append(rest, Assignment{To: target(pod), Epoch: uint64(i + 1)})
		}
	}
	return rest
}

// age orders instances by how old what they hold may be.
func age(in input, pod *snapshot.Instance) int {
	if in.staleMaster(pod) {
		return 1
	}
	return 0
}

// held are the open slots that an instance has keys of.
func held(pod *snapshot.Instance) slots.Set {
	return slots.Of(slices.Collect(maps.Keys(pod.Redis.OpenKeys))...)
}

// destinations are the shards that unowned slots go to: those that own none, else all.
func destinations(in input) []int {
	masters := in.snap.Masters()
	var empty, all []int
	for shard := range in.topology {
		if in.snap.Formed && shard >= len(in.desired.Topology) {
			break // it is to go
		}
		all = append(all, shard)
		if masters[shard] == nil {
			empty = append(empty, shard)
		}
	}
	if len(empty) == 0 {
		return all
	}
	return empty
}

// claimedByPeers reports whether some instance still believes that another node owns any
// of the slots.
func claimedByPeers(s *snapshot.Snapshot, missing slots.Set) bool {
	for _, in := range s.Reachable() {
		for _, peer := range in.Redis.Peers {
			if peer.Slots.Intersect(missing).Len() > 0 {
				return true
			}
		}
	}
	return false
}

// disputedSlots reports whether an instance whose claims are disputed claims some of the slots.
func (in input) disputedSlots(missing slots.Set) bool {
	for _, d := range in.disputes {
		if in.snap.Formed && !d.claims.Intersect(missing).IsEmpty() {
			return true
		}
	}
	return false
}

// chooseMasters adds to the masters there are the instance of each other shard that becomes its
// first one: an empty one. As few masters as possible share a Kubernetes node, then a zone: a
// node that is lost is not to take most of them, without whom nobody can be elected. A shard
// none of whose instances can be one has none.
func chooseMasters(in input, shards []int) map[int]*snapshot.Instance {
	masters := in.snap.Masters()
	chosen := maps.Clone(masters)
	// First one after the other; then an earlier choice may turn out to be in the way of a later one.
	for better := true; better; {
		better = false
		for _, shard := range shards {
			if masters[shard] != nil {
				continue
			}
			after := maps.Clone(chosen)
			delete(after, shard)
			if after[shard] = chooseMaster(in, shard, after); after[shard] == nil {
				continue
			}
			if chosen[shard] == nil || concentrationOf(after).less(concentrationOf(chosen)) {
				chosen, better = after, true
			}
		}
	}
	return chosen
}

// chooseMaster picks the instance of a shard that becomes its first master beside those of other
// shards; nil when none can.
func chooseMaster(in input, shard int, others map[int]*snapshot.Instance) *snapshot.Instance {
	var best *snapshot.Instance
	var least concentration
	for _, pod := range in.snap.Reachable() {
		if pod.Shard != shard || !pod.Redis.Master || pod.Redis.Keys > 0 || pod.Terminating || in.leaving(pod.Shard, pod.Ordinal) {
			continue
		}
		with := maps.Clone(others)
		with[shard] = pod
		if crowd := concentrationOf(with); best == nil || crowd.less(least) {
			best, least = pod, crowd
		}
	}
	return best
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
// forms or a new master joins.
func planTimeout(in input) Step {
	want := in.desired.NodeTimeout
	if want == 0 {
		return nil
	}
	reason := "spec asks for another cluster-node-timeout"
	if !in.snap.Formed && planConverge(in) != nil {
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

// planReplicate makes every instance that owns no slot a replica of its shard's master.
func planReplicate(in input) Step {
	masters := in.masters()
	var replications []Replication
	var renewal Step
	for _, pod := range in.snap.Reachable() {
		master := masters[pod.Shard]
		if master == nil || master == pod || pod.Redis.Slots.Len() > 0 || pod.Redis.MasterID == master.Redis.NodeID || pod.Terminating ||
			in.safeToRemove(pod).Holds {
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
		if linked(pod, master) {
			replications = append(replications, Replication{Replica: target(pod), MasterID: master.Redis.NodeID})
		}
	}
	if len(replications) == 0 {
		return renewal
	}
	return Replicate{base: base{fmt.Sprintf("%d instances do not follow their shard's master", len(replications))}, Replications: replications}
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
