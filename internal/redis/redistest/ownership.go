// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import "middleware.hc.cn/operator/internal/redis/slots"

// learnRole follows what the sender says of its own role ("Check for role switch").
func (n *Node) learnRole(sender *peer, m message) {
	if !m.from.replica {
		sender.replica, sender.masterID = false, ""
		return
	}
	master := n.find(m.from.masterID)
	if !sender.replica {
		if n.options.Valkey && master != nil && master.replica && master.shard == sender.shard {
			n.succeed(sender, master, m.configEpoch)
		}
		sender.slots = slots.Set{} // clusterDelNodeSlots
	}
	sender.replica = true
	if master != nil {
		sender.masterID = master.id
	}
}

// succeed gives what a master of Valkey had, and the marks that name it, to the replica that follows it
// (clusterMoveNodeSlots).
func (n *Node) succeed(from, to *peer, epoch uint64) {
	n.assign(from.slots, to)
	n.importing.rename(from.id, to.id)
	n.migrating.rename(from.id, to.id)
	to.replica, to.masterID, to.configEpoch = false, "", epoch
}

// learnSlots believes a master's claim and corrects a claim that is out of date ("Update our info about served slots").
func (n *Node) learnSlots(sender *peer, m message) {
	owner := sender
	if sender.replica {
		owner = n.find(sender.masterID)
	}
	if owner == nil || owner.slots.Equal(m.claimed) {
		return
	}
	if !sender.replica {
		n.rebind(sender, m.configEpoch, m.claimed)
	}
	for _, p := range n.table {
		claimed := m.claimed.Intersect(p.slots).Subtract(n.notClaimed)
		if p != sender && p.configEpoch > m.configEpoch && !claimed.IsEmpty() {
			m.sender.update(*p) // clusterSendUpdate
			return
		}
	}
}

// update processes an UPDATE message: the configuration of some other master is newer than what this node claims.
func (n *Node) update(about peer) {
	p := n.find(about.id)
	if p == nil || p == n.self() || p.configEpoch >= about.configEpoch {
		return
	}
	p.replica, p.masterID = false, ""
	p.configEpoch = about.configEpoch
	n.rebind(p, about.configEpoch, about.slots)
}

// rebind gives the sender the slots it claims that nobody owns or that are owned with an older epoch, and settles what
// becomes of who has lost them (clusterUpdateSlotsConfigWith).
func (n *Node) rebind(sender *peer, epoch uint64, claimed slots.Set) {
	self, sameShard := n.self(), sender.shard == n.self().shard
	shard := self
	if master := n.master(); master != nil {
		shard = master
	}
	all := claimed
	if !n.options.Valkey {
		// A slot that is imported changes hands by SETSLOT only.
		claimed = claimed.Subtract(n.importing.set().Subtract(sender.slots))
	}
	free := n.owned().Complement().Union(n.notClaimed).Union(n.granted())
	gained, taken, dirty := claimed.Intersect(free).Subtract(sender.slots), slots.Set{}, slots.Set{}
	for _, p := range n.table {
		lost := p.slots.Intersect(gained)
		if p != sender && p.configEpoch < epoch {
			lost = p.slots.Intersect(claimed)
		}
		if p == sender || lost.IsEmpty() {
			continue
		}
		p.slots = p.slots.Subtract(lost)
		gained = gained.Union(lost)
		if p == shard {
			taken = lost
		}
		if p == self {
			dirty = lost
		}
	}
	n.notClaimed = n.notClaimed.Subtract(claimed).Union(sender.slots.Subtract(claimed))
	sender.slots = sender.slots.Union(gained)
	if n.options.Valkey {
		n.reconcileMarks(sender, epoch, gained, claimed)
	}
	// cluster-allow-replica-migration no: a shard that is left without slots follows the sender only if that has replaced
	// its master, which Redis concludes from the slots and Valkey from the shard ID.
	isReplaced := !taken.IsEmpty() && shard.slots.IsEmpty() && all.Equal(taken)
	if n.options.Valkey {
		isReplaced = !taken.IsEmpty() && shard.slots.IsEmpty() && sameShard
	}
	if isReplaced {
		n.follow(sender.id)
	} else {
		n.deleteKeysIn(dirty)
	}
	n.reconcileJobs()
}

// reconcileMarks is what Valkey does to marks when the sender has gained slots and claims these: marks follow a failover
// at the other end, end with a slot that has moved, and an importer takes what its source has let go.
func (n *Node) reconcileMarks(sender *peer, epoch uint64, gained, claimed slots.Set) {
	inShardOf := func(id string) bool {
		p := n.find(id)
		return p != nil && p.shard == sender.shard
	}
	for slot, to := range n.migrating {
		target := n.find(to)
		switch {
		case gained.Contains(slot) && sender.shard != n.self().shard:
			delete(n.migrating, slot)
		case !claimed.Contains(slot) && to != sender.id && inShardOf(to) && (target.configEpoch < epoch || target.replica):
			n.migrating[slot] = sender.id
		}
	}
	for slot := range n.importing.set().Slots() {
		from := n.importing[slot]
		switch {
		case gained.Contains(slot) && from != sender.id && inShardOf(from):
			n.importing[slot] = sender.id
		case gained.Contains(slot) && from != sender.id:
			delete(n.importing, slot)
		case !claimed.Contains(slot) && from == sender.id && !n.self().replica:
			delete(n.importing, slot)
			if !n.self().slots.Contains(slot) {
				n.assign(slots.Of(slot), n.self())
				n.bumpEpoch()
			}
		}
	}
}
