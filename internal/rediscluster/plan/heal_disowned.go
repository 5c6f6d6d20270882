// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ReclaimSlots tells masters that slots are their own which nobody claims, while all other masters that know of an owner name it.
type ReclaimSlots struct {
	base
	Claims []Claim
}

// Claim is one CLUSTER SETSLOT NODE for each slot, with the master's own ID. Its epoch stays.
type Claim struct {
	On    Target
	Slots slots.Set
	// Owners are, by node ID, the slots of those whom the master takes for the owners of some: it is told nothing of a slot of which it
	// thinks otherwise by then. Nobody owns the others.
	Owners map[string]slots.Set
}

// Name implements Step.
func (ReclaimSlots) Name() string { return "ReclaimSlots" }

// disownedTimeouts is for how many node timeouts slots are to be disowned before that is believed: instances are asked one after the
// other, and while a slot changes hands, each of its owners may have been asked when the other one was to claim it.
const disownedTimeouts = 4

// disowned is a master that others take for the owner of slots which nobody claims.
type disowned struct {
	owner *snapshot.Instance
	// named are the slots of which some say so, ours those that it may be told to own, and held those that keys elsewhere are of.
	named, ours, held slots.Set
	// holder is an instance that has the keys; nil when none has.
	holder *snapshot.Instance
	// verdict says why it is told nothing.
	verdict Verdict
}

// planReclaim has a master own slots again that it alone thinks another one has. A master that gets a former operator's CLUSTER SETSLOT
// NODE when the slot has come back gives it away to somebody who does not know of it (it is refused while the master has keys of
// the slot). No message of the cluster bus tells it otherwise.
func planReclaim(in input) Step {
	step := ReclaimSlots{}
	var stall Step
	for _, d := range in.disowned() {
		if in.disownedFor() < in.disownedLimit() || !d.verdict.Holds {
			continue
		}
		if !d.ours.IsEmpty() {
			step.Claims = append(step.Claims, Claim{On: target(d.owner), Slots: d.ours, Owners: takenForOwners(d.owner, d.ours)})
			step.Reason = fmt.Sprintf("nobody claims slots %s, and all masters that know of an owner name %s", d.ours, d.owner.Name)
		}
		if !d.held.IsEmpty() {
			stall = Stall{
				base: base{fmt.Sprintf(
					"nobody claims slots %s, others name %s for their owner, and %s holds keys of them; say CLUSTER SETSLOT SLOT NODE ID of each at the one whose keys are to stay, with its own ID",
					d.held, d.owner.Name, d.holder.Name)},
				Cause: "UnownedKeys", BlockedBy: OwnerNamed}
		}
	}
	if len(step.Claims) == 0 {
		return stall
	}
	return step
}

// takenForOwners are whom a master takes for the owners of slots, by node ID.
func takenForOwners(by *snapshot.Instance, of slots.Set) map[string]slots.Set {
	owners := map[string]slots.Set{}
	for id, peer := range by.Redis.Peers {
		if some := peer.Slots.Intersect(of); !some.IsEmpty() {
			owners[id] = some
		}
	}
	return owners
}

// planAwaitReclaim says what becomes of slots that are disowned, or why nothing does yet.
func planAwaitReclaim(in input) Step {
	var step Step
	for _, d := range in.disowned() {
		if d.verdict.Holds {
			left := in.disownedLimit() - in.disownedFor()
			if left <= 0 {
				return nil // planReclaim speaks about them
			}
			return waitFor(fails(OwnerNamed, "nobody claims slots %s, and all masters that know of an owner name %s, which is told so if that lasts for %s",
				d.ours.Union(d.held), d.owner.Name, left.Round(time.Second)))
		}
		if step == nil { // whom only some name
			step = waitFor(d.verdict)
		}
	}
	return step
}

// disownedFor is how long the slots have been seen to be disowned.
func (in input) disownedFor() time.Duration { return in.now.Sub(in.snap.DisownedSince) }

// disownedLimit is how long they are to be before that is believed.
func (in input) disownedLimit() time.Duration {
	var longest time.Duration
	for _, pod := range in.snap.Reachable() {
		longest = max(longest, pod.Redis.NodeTimeout)
	}
	return disownedTimeouts * longest
}

// disowned are the masters of slots that were disowned when they were looked at before, too.
func (in input) disowned() []disowned {
	if !in.snap.Formed || in.snap.Disowned.IsEmpty() {
		return nil
	}
	lasting := in.snap.Disowned.Intersect(in.snap.FindDisowned())
	var found []disowned
	for _, owner := range in.snap.Reachable() {
		d := disowned{owner: owner}
		for _, other := range in.snap.Reachable() {
			d.named = d.named.Union(other.Redis.Peers[owner.Redis.NodeID].Slots.Intersect(lasting))
		}
		if d.named.IsEmpty() {
			continue
		}
		d.verdict = ownerNamed(in, owner)
		d.settle(in, d.named.Subtract(in.namedBeside(owner)))
		found = append(found, d)
	}
	return found
}

// namedBeside are slots that other masters take somebody else for the owner of. Replicas do not count: Valkey lets those of the master
// repeat a SETSLOT, and one that starts knows what was, when nobody says what is. Who has joined since has heard of no owner.
func (in input) namedBeside(owner *snapshot.Instance) slots.Set {
	var beside []slots.Set
	for _, other := range in.membersBut(owner) {
		if !other.Redis.Master {
			continue
		}
		for id, peer := range other.Redis.Peers {
			if id != owner.Redis.NodeID {
				beside = append(beside, peer.Slots)
			}
		}
	}
	return slots.Set{}.Union(beside...)
}

// settle sorts the slots that nobody else is taken for the owner of.
func (d *disowned) settle(in input, all slots.Set) {
	for _, pod := range in.snap.Reachable() {
		if keys := held(pod).Intersect(all); pod != d.owner && pod.Redis.Master && !keys.IsEmpty() {
			d.held, d.holder = d.held.Union(keys), pod
		}
	}
	// What it imports it would take with a higher epoch, and with it what it is giving to somebody else.
	imported := slots.Of(slices.Collect(maps.Keys(d.owner.Redis.Importing))...)
	d.ours = all.Subtract(d.held).Subtract(imported)
	if d.ours.IsEmpty() && d.held.IsEmpty() {
		d.verdict = fails(OwnerNamed, "nobody claims slots %s, and others name %s for their owner, and somebody else", d.named, d.owner.Name)
		if !all.IsEmpty() {
			d.verdict = fails(OwnerNamed, "nobody claims slots %s, which %s marks as those that it receives", all, d.owner.Name)
		}
	}
}

// membersBut are the members without one.
func (in input) membersBut(pod *snapshot.Instance) []*snapshot.Instance {
	return slices.DeleteFunc(in.members(), func(other *snapshot.Instance) bool { return other == pod })
}

// ownerNamed holds when all that could claim slots, or have keys of them, was asked, knows the master and is known to it, and nothing
// is about to change who owns what. Whom the others name, and who has keys, is seen of each slot.
func ownerNamed(in input, owner *snapshot.Instance) Verdict {
	if v := snapshotComplete(in); !v.Holds {
		return fails(OwnerNamed, "slots are claimed by nobody, and not every instance answers: %s", v.Reason)
	}
	if !owner.Redis.Master || owner.Terminating || in.staleMaster(owner) {
		return fails(OwnerNamed, "slots are claimed by nobody, and %s is no master that stays one", owner.Name)
	}
	for _, pod := range in.snap.Reachable() {
		r := pod.Redis
		if len(r.Jobs) > 0 || !r.SwitchoverAt.IsZero() {
			return fails(OwnerNamed, "slots are claimed by nobody, and %s moves some or takes over", pod.Name)
		}
		if r.Master && r.OpenKeys == nil {
			return fails(OwnerNamed, "slots are claimed by nobody, and %s did not say which of their keys it holds", pod.Name)
		}
		for _, id := range sortedPeers(r) {
			if !r.Peers[id].Handshake && in.snap.ByNodeID(id) == nil {
				return fails(OwnerNamed, "slots are claimed by nobody, and %s knows node %s, which does not answer", pod.Name, short(id))
			}
		}
	}
	for _, other := range in.membersBut(owner) {
		to, from := owner.Redis.Peers[other.Redis.NodeID], other.Redis.Peers[owner.Redis.NodeID]
		if !sound(to) || !sound(from) || !from.Master {
			return fails(OwnerNamed, "slots are claimed by nobody, and %s and %s are not linked", owner.Name, other.Name)
		}
	}
	return holds(OwnerNamed)
}

// sound reports whether an instance is linked to a peer, and neither it nor others suspect that.
func sound(p snapshot.Peer) bool { return p.Connected && !p.Failed && !p.Suspected && !p.Handshake }
