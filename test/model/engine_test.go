// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// engine are the differences between engines that matter here.
type engine struct {
	// marksReplicated: replicas have the marks of their master (Valkey 8 replicates CLUSTER SETSLOT), so that a promoted one
	// keeps them, and marks at the other end follow. In Redis it has none, and they do not.
	marksReplicated bool
	// slowBus: what a node broadcasts is heard at any time later, not at once. Nobody's engine: it shows what depends on it.
	slowBus bool
	// sourceFirst is a mutation of the operator that the moves are made with.
	sourceFirst bool
}

// broadcast tells everybody at once what a node owns (clusterBroadcastPong): within a round trip, while passes, elections
// and restarts take many.
func (w *world) broadcast(from int8) {
	for _, to := range all() {
		w.send(from, to)
	}
}

// send tells b what a is and owns, as a ping or the answer to one does (clusterProcessPacket). A node answers pings of
// those that it does not know, so that only the destination must know the sender.
func (w *world) send(a, b int8) {
	from, to := &w.nodes[a], &w.nodes[b]
	if a == b || !from.up || !to.up || !has(to.knows, a) {
		return
	}
	to.current = max(to.current, from.current)
	for _, c := range all() { // the gossip section: strangers are met unless they were forgotten
		if c != b && has(from.knows&^to.knows&^to.banned, c) && w.nodes[c].up {
			w.introduce(b, c)
		}
	}
	if !from.master() {
		if to.roles[a] == none { // "Master turned into a slave": clusterDelNodeSlots
			for block := range to.owner {
				if to.owner[block] == a {
					to.owner[block] = none
				}
			}
		}
		to.roles[a] = from.follows
		return
	}
	to.roles[a] = none
	to.heard[a] = max(to.heard[a], from.epoch)
	w.rebind(b, a, from.epoch, from.owner)
	// A claim that is out of date is corrected (clusterSendUpdate).
	for block, owner := range to.owner {
		if from.owner[block] == a && owner != a && owner != none && !has(to.unclaimed, int8(block)) && to.epochHeard(b, owner) > from.epoch {
			w.update(a, owner, to.epochHeard(b, owner), to.claimed())
			break
		}
	}
	// Two masters of one epoch: the one with the smaller ID takes a new one (clusterHandleConfigEpochCollision).
	if to.master() && from.master() && to.epoch == from.epoch && b < a {
		to.epoch = to.newEpoch()
	}
}

// introduce makes two nodes know each other (CLUSTER MEET, and what follows from it).
func (w *world) introduce(a, b int8) {
	w.nodes[a].knows |= bit(b)
	w.nodes[a].banned &^= bit(b)
	w.nodes[b].knows |= bit(a)
	w.nodes[b].banned &^= bit(a)
}

// claimed are the owners without those that do not claim their block (clusterSendUpdate leaves it out).
func (n *node) claimed() [blocks]int8 {
	claimed := n.owner
	for block := range claimed {
		if has(n.unclaimed, int8(block)) {
			claimed[block] = none
		}
	}
	return claimed
}

// update makes a node believe what another one knows of some master's claims (CLUSTERMSG_TYPE_UPDATE).
func (w *world) update(at, about int8, epoch uint8, owner [blocks]int8) {
	n := &w.nodes[at]
	if at == about || !has(n.knows, about) || n.heard[about] >= epoch {
		return
	}
	n.roles[about], n.heard[about] = none, epoch
	w.rebind(at, about, epoch, owner)
}

// epochHeard is the epoch of a node, itself included, as one node knows it.
func (n *node) epochHeard(self, other int8) uint8 {
	if self == other {
		return n.epoch
	}
	return n.heard[other]
}

func (n *node) newEpoch() uint8 {
	n.current++
	return n.current
}

// rebind gives the sender what it claims of what nobody owns or an older epoch does (clusterUpdateSlotsConfigWith).
func (w *world) rebind(at, sender int8, epoch uint8, claims [blocks]int8) {
	n := &w.nodes[at]
	shard := at // the master of the shard that this node is of
	if !n.master() {
		shard = n.follows
	}
	taken, others, rest := false, false, false
	var dirty uint8
	for block, claimed := range claims {
		owner, isUnclaimed := n.owner[block], has(n.unclaimed, int8(block))
		switch {
		case claimed == sender:
			n.unclaimed &^= bit(int8(block))
		case owner == sender:
			n.unclaimed |= bit(int8(block))
		}
		if claimed != sender || owner == sender {
			if owner == shard {
				rest = true
			}
			others = others || claimed == sender
			continue
		}
		// An open slot changes hands by SETSLOT only ("The slot is in importing state").
		if block < moving && n.importing[block] != none || owner != none && !isUnclaimed && n.epochHeard(at, owner) >= epoch {
			others, rest = true, rest || owner == shard
			continue
		}
		if owner == shard {
			taken = true
		} else {
			others = true
		}
		if owner == at && block < moving {
			dirty |= bit(int8(block))
		}
		n.owner[block] = sender
	}
	// A shard left without slots follows the sender if that has taken exactly these: it replaced its master.
	if taken && !rest && !others && shard != sender {
		w.follow(at, sender)
		return
	}
	for slot := range int8(moving) {
		if has(dirty, slot) { // delKeysInSlot
			n.data[slot] = [keysInSlot]copied{}
			w.replicate(at)
		}
	}
}

// follow makes a node a replica. Its data becomes that of the master (clusterSetMaster, clusterCloseAllSlots).
func (w *world) follow(at, master int8) {
	n := &w.nodes[at]
	n.follows, n.epoch = master, 0
	for slot := range moving {
		n.migrating[slot], n.importing[slot] = none, none
	}
	w.replicate(master)
}

// replicate brings the replicas of a node that are linked to it into sync.
func (w *world) replicate(master int8) {
	m := &w.nodes[master]
	if !m.up || !m.master() {
		return
	}
	for i := range w.nodes {
		if r := &w.nodes[i]; r.up && r.follows == master {
			r.data = m.data
		}
	}
}

// inSync reports whether a replica has all that its master has.
func (w *world) inSync(r int8) bool {
	n := &w.nodes[r]
	return n.up && !n.master() && n.data == w.nodes[n.follows].data
}

// promote makes a replica the master of its shard (clusterFailoverReplaceYourMaster). A master that lives has been waiting
// for it and hears of it before it serves again.
func (e engine) promote(w *world, r int8) {
	n := &w.nodes[r]
	old := n.follows
	for i := range w.nodes { // who votes knows the highest
		n.current = max(n.current, w.nodes[i].current)
	}
	for block := range n.owner {
		if n.owner[block] == old {
			n.owner[block] = r
		}
	}
	n.follows, n.epoch, n.roles[old] = none, n.newEpoch(), none
	if e.marksReplicated {
		n.migrating, n.importing = w.nodes[old].migrating, w.nodes[old].importing
		w.renameMarks(old, r)
	}
	w.broadcast(r)
	if w.nodes[old].up && w.nodes[old].master() { // it had nothing that the new master could take
		w.follow(old, r)
	}
}

// renameMarks lets marks that name a former master name the one that replaced it (clusterUpdateSlotsConfigWith of Valkey).
func (w *world) renameMarks(from, to int8) {
	for i := range w.nodes {
		for slot := range moving {
			if n := &w.nodes[i]; n.up && n.migrating[slot] == from {
				n.migrating[slot] = to
			} else if n.up && n.importing[slot] == from {
				n.importing[slot] = to
			}
		}
	}
}

// canElect reports whether most masters that own something are alive and know the replica: others do not vote for it.
func (w *world) canElect(r int8) bool {
	owners, votes := 0, 0
	for _, i := range all() {
		if n := &w.nodes[i]; n.pod && w.owned(i) != 0 {
			owners++
			if n.up && has(n.knows, r) {
				votes++
			}
		}
	}
	return 2*votes > owners
}

func (w *world) start(at int8) {
	n := &w.nodes[at]
	n.up, n.banned = true, 0
	if n.master() { // verifyClusterConfigWithData
		for slot := range int8(moving) {
			switch owner := n.owner[slot]; {
			case !has(w.holds(at), slot) || owner == at || n.importing[slot] != none:
			case owner == none:
				n.owner[slot] = at
			default:
				n.importing[slot] = owner
			}
		}
	} else {
		w.replicate(n.follows)
	}
	for _, other := range all() { // before it serves anybody
		w.send(at, other)
		w.send(other, at)
	}
	w.replicate(at)
}

// settle delivers all gossip until nothing is news.
func (w *world) settle() {
	for {
		before := w.nodes
		for _, a := range all() {
			for _, b := range all() {
				w.send(a, b)
			}
		}
		if w.nodes == before {
			return
		}
	}
}

// owned are the blocks that the node takes itself for the owner of, a bit each; those of a replica are its master's.
func (w *world) owned(at int8) uint8 {
	var mask uint8
	for block, owner := range w.nodes[at].owner {
		if owner == at && w.nodes[at].master() {
			mask |= bit(int8(block))
		}
	}
	return mask
}

// holds are the moving slots that the node has keys of, a bit each.
func (w *world) holds(at int8) uint8 {
	var mask uint8
	for slot := range int8(moving) {
		if w.nodes[at].data[slot] != ([keysInSlot]copied{}) {
			mask |= bit(slot)
		}
	}
	return mask
}
