// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Switchover makes a replica the master in place of the one that it follows, without losing a
// write: the master stops writes until the replica has them all (CLUSTER FAILOVER).
type Switchover struct {
	base
	Master, Replica Target
	// Requested reports whether a person asks for it: it is tried once.
	Requested bool
}

// RemoveShards deletes the StatefulSets of shards that own nothing and that nobody knows.
type RemoveShards struct {
	base
	// Shards are the versions of their StatefulSets that this was decided on, by shard.
	Shards map[int]string
}

// Name implements Step.
func (Switchover) Name() string { return "Switchover" }

// Name implements Step.
func (RemoveShards) Name() string { return "RemoveShards" }

// leaving reports whether the spec does not ask for the instance any more.
func (in input) leaving(shard, ordinal int) bool {
	desired := in.desired.Topology
	return in.snap.Formed && (shard >= len(desired) || ordinal >= int(desired[shard]))
}

// askedFor is the verdict on most instances.
var askedFor = Verdict{Predicate: SafeToRemove, Reason: "the spec asks for it"}

// safeToRemove holds when a leaving instance has nothing that the cluster needs: it owns no
// slot, has no part in moving one, and if it is a master, holds no key. A replica counts as
// long as its shard does not go: then it goes with its master.
func (in input) safeToRemove(pod *snapshot.Instance) Verdict {
	r := pod.Redis
	switch {
	case !in.leaving(pod.Shard, pod.Ordinal):
		return askedFor
	case pod.Fenced:
		return in.fencedAway(pod)
	case r == nil:
		return fails(SafeToRemove, "%s does not answer: %s", pod.Name, pod.Error)
	case !r.Slots.IsEmpty():
		return fails(SafeToRemove, "%s is to go and still owns slots %s", pod.Name, r.Slots)
	case r.Master && len(r.Migrating)+len(r.Importing) > 0:
		return fails(SafeToRemove, "%s is to go and still takes part in moving slots", pod.Name)
	case r.Master && r.Keys > 0:
		return fails(SafeToRemove, "%s is to go and still holds %d keys", pod.Name, r.Keys)
	case pod.Shard >= len(in.desired.Topology) && in.snap.Masters()[pod.Shard] != nil:
		return fails(SafeToRemove, "%s is to go with shard %d, whose master still owns slots", pod.Name, pod.Shard)
	}
	return holds(SafeToRemove)
}

// notRequired holds when an instance which is not running is not needed: the spec does not
// ask for it, all slots are owned by instances that answer, and if its shard is to go, that
// has been drained (until then the instance is what its master fails over to).
func (in input) notRequired(shard, ordinal int) Verdict {
	pod := in.snap.Find(shard, ordinal)
	switch {
	case !in.leaving(shard, ordinal):
		return askedFor
	case pod != nil && pod.Fenced:
		return in.fencedAway(pod)
	case pod != nil && pod.Waiting == "" && (!pod.Terminating || pod.Redis != nil):
		return fails(SafeToRemove, "%s may run", pod.Name)
	case shard >= len(in.desired.Topology) && in.snap.Masters()[shard] != nil:
		return fails(SafeToRemove, "shard %d is to go, and its master still owns slots", shard)
	case !slotsCovered(in.snap):
		return fails(SafeToRemove, "not all slots are owned by instances that answer")
	}
	return holds(SafeToRemove)
}

// members are the reachable instances that belong to the cluster: all but those released.
func (in input) members() []*snapshot.Instance {
	return slices.DeleteFunc(slices.Clone(in.snap.Reachable()), func(pod *snapshot.Instance) bool { return in.safeToRemove(pod).Holds })
}

// forgottenByAll holds when the members know nobody but each other, and every instance was
// asked: what is safe to remove can go.
func (in input) forgottenByAll() Verdict {
	if !in.snap.Formed || !slotsCovered(in.snap) {
		return fails(ForgottenByAll, "not all slots are owned by instances that answer")
	}
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if pod.Redis == nil && !in.notRequired(pod.Shard, pod.Ordinal).Holds {
			return fails(ForgottenByAll, "%s does not answer: %s", pod.Name, pod.Error)
		}
	}
	members := in.members()
	for _, pod := range members {
		for _, id := range sortedPeers(pod.Redis) {
			if !slices.ContainsFunc(members, func(m *snapshot.Instance) bool { return m.Redis.NodeID == id }) {
				return fails(ForgottenByAll, "%s still knows node %s, which is no member", pod.Name, short(id))
			}
		}
	}
	return holds(ForgottenByAll)
}

// mayBeRemoved holds when an instance that the spec does not ask for can be deleted, given that
// the members have forgotten it.
func (in input) mayBeRemoved(shard, ordinal int) Verdict {
	pod := in.snap.Find(shard, ordinal)
	if pod != nil && pod.Redis != nil {
		return in.safeToRemove(pod)
	}
	return in.notRequired(shard, ordinal)
}

// planRemoval lets instances go that the spec does not ask for: a master switches over first,
// clients are led elsewhere, then every member forgets them, then their StatefulSets shrink (Effective) or go.
func planRemoval(in input) Step {
	if _, refused := planRefusal(in).(Stall); refused {
		return nil
	}
	var leaving []*snapshot.Instance
	for _, pod := range in.snap.Reachable() {
		if in.leaving(pod.Shard, pod.Ordinal) && !pod.Terminating {
			leaving = append(leaving, pod)
		}
	}
	for _, pod := range leaving {
		if v := in.safeToRemove(pod); !v.Holds {
			return hold(in, pod, v)
		}
	}
	if step := removeFromEndpoints(in, leaving, quiet); step != nil {
		return step
	}
	if step := forgetLeaving(in, leaving); step != nil {
		return step
	}
	step := RemoveShards{Shards: map[int]string{}}
	for _, shard := range in.snap.Shards {
		if shard.Index >= len(in.desired.Topology) && !shard.Terminating {
			step.Shards[shard.Index] = shard.Version
		}
	}
	switch {
	case !in.snap.Formed:
		return nil
	case len(step.Shards) == 0:
		return gone(in)
	}
	if v := in.forgottenByAll(); !v.Holds {
		v.Reason = fmt.Sprintf("shards %v are to go, and not every instance is known to have forgotten them: %s",
			slices.Sorted(maps.Keys(step.Shards)), v.Reason)
		return waitFor(v)
	}
	step.Reason = fmt.Sprintf("shards %v own nothing and nobody knows them any more", slices.Sorted(maps.Keys(step.Shards)))
	return step
}

// gone waits for the pods and StatefulSets that have been let go.
func gone(in input) Step {
	for _, shard := range in.snap.Shards {
		if shard.Index >= len(in.desired.Topology) {
			return waitFor(fails(PodsGone, "StatefulSet %s is to go and is still there", shard.Name))
		}
	}
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; in.leaving(pod.Shard, pod.Ordinal) && pod.Fenced {
			return waitFor(in.fencedAway(pod))
		} else if in.leaving(pod.Shard, pod.Ordinal) {
			return waitFor(fails(PodsGone, "pod %s is to go and is still there", pod.Name))
		}
	}
	return nil
}

// hold is what a leaving instance that is still needed waits for; needed says why it is.
func hold(in input, pod *snapshot.Instance, needed Verdict) Step {
	if !pod.Redis.Slots.IsEmpty() && pod.Shard < len(in.desired.Topology) {
		return switchover(in, pod)
	}
	if pod.Redis.Master && pod.Redis.Keys > 0 && pod.Redis.Slots.IsEmpty() {
		return Stall{
			base: base{
				fmt.Sprintf("%s is to go, owns no slot and holds %d keys, which would be lost; move them, or delete its claim to give them up",
					pod.Name, pod.Redis.Keys)},
			Cause: "UnownedKeys", BlockedBy: NoUnownedKeys}
	}
	return waitFor(needed)
}

// switchover makes the best replica that stays the master in place of one that leaves.
func switchover(in input, master *snapshot.Instance) Step {
	var best *snapshot.Instance
	for _, pod := range in.snap.Reachable() {
		if !in.staysInSync(pod, master) {
			continue
		}
		if best == nil || pod.Redis.Offset > best.Redis.Offset {
			best = pod
		}
	}
	if best = in.knownReplica(best, master); best == nil {
		return waitFor(fails(ReplicaInSync, "%s is to go and is the master of shard %d, of which no other instance is in sync", master.Name,
			master.Shard))
	}
	if v := in.knownOutside(best); !v.Holds {
		return waitFor(v)
	}
	return Switchover{base: base{fmt.Sprintf("%s is to go and is the master of shard %d: %s takes over", master.Name, master.Shard,
		best.Name)},
		Master: target(master), Replica: target(best)}
}

// upToDate reports whether a replica knows exactly what its master owns: with its promotion it
// claims what it thinks that is, with a newer epoch than anybody's, and who owns a slot of
// that by now would throw its keys away.
func upToDate(replica, master *snapshot.Instance) bool {
	return replica.Redis.Peers[master.Redis.NodeID].Slots.Equal(master.Redis.Slots)
}

// forgetLeaving makes the members forget the leaving instances.
func forgetLeaving(in input, leaving []*snapshot.Instance) Step {
	step := Forget{}
	for _, member := range in.members() {
		knows := false
		for _, pod := range leaving {
			if _, ok := member.Redis.Peers[pod.Redis.NodeID]; ok {
				knows = true
				if !slices.Contains(step.NodeIDs, pod.Redis.NodeID) {
					step.NodeIDs = append(step.NodeIDs, pod.Redis.NodeID)
				}
			}
		}
		if knows {
			step.On = append(step.On, target(member))
		}
	}
	if len(step.On) == 0 {
		return nil
	}
	slices.Sort(step.NodeIDs)
	names := make([]string, len(leaving))
	for i, pod := range leaving {
		names[i] = pod.Name
	}
	step.Reason = "the spec does not ask for these instances, and they hold nothing: " + list(names)
	return step
}
