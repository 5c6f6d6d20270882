// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// StabilizeSlots takes marks of moving off slots of which nothing has moved.
type StabilizeSlots struct {
	base
	Stabilizations []Stabilization
}

// Stabilization is one CLUSTER SETSLOT STABLE for each slot.
type Stabilization struct {
	On    Target
	Slots slots.Set
}

// RepairSlots puts marks right after a failover of either end: the destination is told who the
// owner is, and then the owner who the destination is. Redis 7 ignores all gossip about a slot
// that it imports, and a destination whose slot is bound to a dead owner takes the whole
// cluster for failed. The destination's mark never goes meanwhile: without it, a restart would
// throw the keys away that have moved already.
type RepairSlots struct {
	base
	Moves []Move
}

// Name implements Step.
func (StabilizeSlots) Name() string { return "StabilizeSlots" }

// Name implements Step.
func (RepairSlots) Name() string { return "RepairSlots" }

// repair is what open slots need: marks to take off, destinations to be told of another
// owner, and moves to finish. unknown names a master that was not asked which keys of them
// it holds.
type repair struct {
	close   []Stabilization
	closing slots.Set
	reopen  []Move
	finish  []Move
	unknown string
}

// step is the step of the repair that comes before any moving; nil when there is none.
func (r repair) step() Step {
	switch {
	case r.unknown != "":
		return waitFor(fails(SnapshotComplete, "slots are half migrated, and %s did not say which of their keys it holds", r.unknown))
	case len(r.close) > 0:
		return StabilizeSlots{base: base{fmt.Sprintf("slots %s are open, and no key of them has moved", r.closing)}, Stabilizations: r.close}
	case len(r.reopen) > 0:
		return RepairSlots{base: base{"open slots name a node of before a failover: " + summary(r.reopen)}, Moves: r.reopen}
	}
	return nil
}

// openSlots decides what becomes of every slot that is marked as moving. A slot that some
// other master holds keys of is finished towards it: the owner sends clients there for what
// it lacks as soon as it is marked, so that every key is seen all the time, while going
// back would hide those that have moved. A slot of which nothing has moved is closed.
//
// Slots with several owners or none are left to gossip and to planAssign.
func openSlots(in input) repair {
	marks := map[string]slots.Set{} // slots to close, by pod
	finish, reopen := map[[2]string]slots.Set{}, map[[2]string]slots.Set{}
	masters := map[string]*snapshot.Instance{}
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Master && !in.staleMaster(pod) {
			masters[pod.Name] = pod
		}
	}
	found := in.openSlots()
	for _, name := range slices.Sorted(maps.Keys(masters)) {
		if !found.IsEmpty() && masters[name].Redis.OpenKeys == nil {
			return repair{unknown: name}
		}
	}
	for slot := range found.Slots() {
		o := open{slot: slot}
		for _, name := range slices.Sorted(maps.Keys(masters)) {
			o.add(masters[name])
		}
		if o.owners != 1 {
			continue
		}
		to, known := o.destination(in)
		if !known {
			continue
		}
		if to != nil {
			pair, pairs := [2]string{o.owner.Name, to.Name}, finish
			if o.misdirected(to) {
				pairs = reopen
			}
			pairs[pair] = pairs[pair].Union(slots.Of(slot))
		}
		for _, pod := range o.needless(to) {
			marks[pod.Name] = marks[pod.Name].Union(slots.Of(slot))
		}
	}
	r := repair{}
	for _, name := range slices.Sorted(maps.Keys(marks)) {
		r.close = append(r.close, Stabilization{On: target(masters[name]), Slots: marks[name]})
		r.closing = r.closing.Union(marks[name])
	}
	moves := func(pairs map[[2]string]slots.Set) []Move {
		var list []Move
		for pair, set := range pairs {
			list = append(list, Move{From: target(masters[pair[0]]), To: target(masters[pair[1]]), Slots: set})
		}
		return sorted(list)
	}
	r.finish, r.reopen = moves(finish), moves(reopen)
	return r
}

// staleMaster reports whether the instance is a former master which has come back: it owns nothing, another one of its shard owns
// slots, and nobody is giving it any. What it holds is an old copy of its shard's data. Redis that starts marks the slots of
// keys as importing when others own them (verifyClusterConfigWithData in cluster.c), so that its marks say nothing.
func (in input) staleMaster(pod *snapshot.Instance) bool {
	if !pod.Redis.Master || !pod.Redis.Slots.IsEmpty() || in.snap.Masters()[pod.Shard] == nil {
		return false
	}
	return !slices.ContainsFunc(in.snap.Reachable(), func(other *snapshot.Instance) bool {
		return slices.Contains(slices.Collect(maps.Values(other.Redis.Migrating)), pod.Redis.NodeID)
	})
}

// openSlots are all slots that a master marks as moving.
func (in input) openSlots() slots.Set {
	var numbers []uint16
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Master && !in.staleMaster(pod) {
			numbers = slices.AppendSeq(numbers, maps.Keys(pod.Redis.Migrating))
			numbers = slices.AppendSeq(numbers, maps.Keys(pod.Redis.Importing))
		}
	}
	return slots.Of(numbers...)
}

// open is all that is known of one open slot.
type open struct {
	slot   uint16
	owner  *snapshot.Instance
	owners int
	// others are masters that do not own the slot and have a mark or keys of it.
	others []*snapshot.Instance
}

func (o *open) add(pod *snapshot.Instance) {
	_, migrating := pod.Redis.Migrating[o.slot]
	_, importing := pod.Redis.Importing[o.slot]
	switch {
	case pod.Redis.Slots.Contains(o.slot):
		o.owner = pod
		o.owners++
	case migrating || importing || pod.Redis.OpenKeys[o.slot] > 0:
		o.others = append(o.others, pod)
	}
}

// destination is the master that the slot goes to; nil when it stays. It is not known when
// the node that the owner gives the slot to may be one that does not answer.
func (o *open) destination(in input) (to *snapshot.Instance, known bool) {
	for _, pod := range o.others {
		if pod.Redis.OpenKeys[o.slot] > 0 && (to == nil || pod.Redis.OpenKeys[o.slot] > to.Redis.OpenKeys[o.slot]) {
			to = pod
		}
	}
	if to != nil {
		return to, true
	}
	id, migrating := o.owner.Redis.Migrating[o.slot]
	if !migrating {
		return nil, true
	}
	destination := in.snap.ByNodeID(id)
	if destination == nil {
		return nil, nodeGone(in, id).Holds
	}
	// After a failover of the receiving shard its new master goes on. Without keys there,
	// and without a goal that wants it, the slot stays.
	to = in.masters()[destination.Shard]
	if to == o.owner || !wanted(in, o.slot, destination.Shard) {
		to = nil
	}
	return to, true
}

// wanted reports whether the recorded goal gives the slot to the shard.
func wanted(in input, slot uint16, shard int) bool {
	goal := in.snap.Goal
	return goal != nil && goal.For == in.fingerprint() && shard < len(goal.Shards) && goal.Shards[shard].Contains(slot)
}

// misdirected reports whether a mark at either end names a node that is not the other end, or that
// the destination takes another node for the owner: one of them failed over.
func (o *open) misdirected(to *snapshot.Instance) bool {
	owner := o.owner.Redis
	target, migrating := owner.Migrating[o.slot]
	source, importing := to.Redis.Importing[o.slot]
	return migrating && target != to.Redis.NodeID ||
		importing && (source != owner.NodeID || !to.Redis.Peers[owner.NodeID].Slots.Contains(o.slot))
}

// needless are the masters whose mark says nothing, given where the slot goes.
func (o *open) needless(to *snapshot.Instance) []*snapshot.Instance {
	var pods []*snapshot.Instance
	_, ownerImports := o.owner.Redis.Importing[o.slot]
	_, ownerMigrates := o.owner.Redis.Migrating[o.slot]
	if ownerImports || ownerMigrates && to == nil {
		pods = append(pods, o.owner)
	}
	for _, pod := range o.others {
		if pod != to && pod.Redis.OpenKeys[o.slot] == 0 {
			pods = append(pods, pod)
		}
	}
	return pods
}
