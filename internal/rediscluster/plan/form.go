// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

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

// planAssign gives away slots that provably nobody owns: at the first forming, and when
// the data of a whole shard is gone. Ownership is proven by asking every instance, and
// a node that is gone must have been forgotten first.
func planAssign(in input) Step {
	missing := slots.All().Subtract(in.snap.Owned())
	if missing.Len() == 0 || !snapshotComplete(in).Holds || claimedByPeers(in.snap, missing) || in.disputedSlots(missing) {
		return nil // planForget, planPromote or planConverge speak about these
	}
	if in.begins() {
		return nil // planRestored and planFollow speak about these
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
		if pod.Shard != shard || !pod.Redis.Master || pod.Redis.Keys > 0 || pod.Terminating || pod.Fenced || in.leaving(pod.Shard, pod.Ordinal) {
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
