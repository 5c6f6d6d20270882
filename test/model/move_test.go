// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

// The commands of reshard.Classic, in its order.

// begin sorts the slots by where they stand (reshard's sort): what the target owns already is finished, then come the slots
// that are half moved, then the others, group by group. Slots open to or from another node, and those that neither end
// owns, are left out and make the move end with an error.
func (w *world) begin(c command, sourceFirst bool) bool {
	from, to := &w.nodes[c.from], &w.nodes[c.to]
	if !from.up || !to.up {
		return false
	}
	var moved uint8
	var open, untouched []uint8 // groups
	for slot := range int8(moving) {
		if !has(c.owned, slot) {
			continue
		}
		m, i := from.migrating[slot], to.importing[slot]
		switch {
		case m != none && m != c.to || i != none && i != c.from:
		case has(w.owned(c.to), slot):
			moved |= bit(slot)
		case !has(w.owned(c.from), slot):
		case m != none || i != none:
			open = append(open, bit(slot))
		default:
			untouched = append(untouched, bit(slot))
		}
	}
	var commands []command
	if moved != 0 {
		commands = append(commands, command{kind: drain, from: c.from, to: c.to, owned: moved, targetWins: true},
			command{kind: change, at: c.to, from: c.from, to: c.to, owned: moved},
			command{kind: change, at: c.from, from: c.from, to: c.to, owned: moved})
	}
	var drained uint8
	for _, group := range append(append(open, untouched...), 0) {
		if drained|group == 0 {
			break
		}
		commands = append(commands, command{kind: change, at: c.to, from: c.from, to: c.to, owned: drained, next: group},
			command{kind: change, at: c.from, from: c.from, to: c.to, owned: drained, next: group})
		if group != 0 {
			commands = append(commands, command{kind: drain, from: c.from, to: c.to, owned: group})
		}
		drained = group
	}
	if sourceFirst {
		for i := 0; i < len(commands); i++ {
			if c := &commands[i]; c.kind == change && c.owned != 0 {
				c.at, commands[i+1].at = commands[i+1].at, c.at
				i++ // of a pair
			}
		}
	}
	w.push(commands...)
	return true
}

// change is one round trip of CLUSTER SETSLOT. All commands of it are executed, whatever becomes of the others.
func (e engine) change(w *world, c command, partly bool) bool {
	n := &w.nodes[c.at]
	if !n.up || !n.master() {
		return false
	}
	ok := e.setOwner(w, c.at, c.owned, c.to)
	if partly {
		return false
	}
	for slot := range int8(moving) {
		isMine := has(w.owned(c.at), slot)
		switch {
		case !has(c.next, slot):
		case c.at == c.to && (isMine || !n.isMaster(c.from)), c.at == c.from && (!isMine || !n.isMaster(c.to)):
			ok = false // "I'm already the owner", "I'm not the owner", "Target node is not a master"
		case c.at == c.to:
			n.importing[slot] = c.from
		default:
			n.migrating[slot] = c.to
		}
	}
	return ok
}

// isMaster reports whether the node knows another one, as a master.
func (n *node) isMaster(other int8) bool { return has(n.knows, other) && n.roles[other] == none }

// setOwner is CLUSTER SETSLOT NODE for each slot.
func (e engine) setOwner(w *world, at int8, owned uint8, to int8) bool {
	n, ok := &w.nodes[at], true
	if e.marksReplicated {
		defer w.tellReplicas(at)
	}
	for slot := range int8(moving) {
		isMine := n.owner[slot] == at
		switch {
		case !has(owned, slot):
			continue
		case !n.master(), at != to && !n.isMaster(to), isMine && at != to && has(w.holds(at), slot):
			ok = false // "I still hold keys for this hash slot"
			continue
		}
		if !has(w.holds(at), slot) {
			n.migrating[slot] = none
		}
		n.owner[slot] = to
		n.unclaimed &^= bit(slot) // clusterDelSlot; Redis 7.0 forgets to (github.com/redis/redis/pull/12564)
		if at == to && n.importing[slot] != none {
			n.importing[slot] = none
			if n.epoch < n.current || n.epoch == 0 {
				n.epoch = n.newEpoch() // clusterBumpConfigEpochWithoutConsensus
			}
			if !e.slowBus {
				w.broadcast(at)
			}
		}
	}
	return ok
}

// tellReplicas gives the replicas that are linked to a node what it has made of the moving slots: Valkey replicates SETSLOT.
func (w *world) tellReplicas(at int8) {
	n := &w.nodes[at]
	for i := range w.nodes {
		if r := &w.nodes[i]; r.up && r.follows == at && n.master() {
			copy(r.owner[:moving], n.owner[:moving])
		}
	}
}

func (w *world) drain(c command) bool {
	if !w.nodes[c.from].up {
		return false
	}
	holds := w.holds(c.from) & c.owned
	for slot := range int8(moving) {
		if has(holds, slot) {
			again := c
			again.owned = holds
			w.push(command{kind: migrate, from: c.from, to: c.to, owned: bit(slot), targetWins: c.targetWins}, again)
			return true
		}
	}
	return true
}

// migrate is MIGRATE of all keys of a slot. partly: they arrive, and the source does not hear of it.
func (w *world) migrate(c command, partly bool) bool {
	from, to := &w.nodes[c.from], &w.nodes[c.to]
	if !from.up || !to.up {
		return false
	}
	busy := false
	for slot := range int8(moving) {
		if !has(c.owned, slot) {
			continue
		}
		isOpen := from.importing[slot] != none || from.migrating[slot] != none && from.owner[slot] == c.from
		if !from.master() || from.owner[slot] != c.from && !isOpen {
			return false // MOVED
		}
		for key, value := range from.data[slot] {
			there := &to.data[slot][key]
			switch {
			case value == missing:
			case !to.master() || to.owner[slot] != c.to && to.importing[slot] == none:
				return false // the target answers MOVED
			case *there != missing && !c.replace:
				busy = true
			default:
				*there = value
				if !partly {
					from.data[slot][key] = missing
				}
			}
		}
	}
	w.replicate(c.from)
	w.replicate(c.to)
	if busy && c.targetWins {
		w.push(command{kind: discard, from: c.from, to: c.to, owned: c.owned})
	} else if busy {
		c.replace = true
		w.push(c)
	}
	return !partly
}

// discard is UNLINK behind ASKING of the keys that the target has, too.
func (w *world) discard(c command) bool {
	from, to := &w.nodes[c.from], &w.nodes[c.to]
	if !from.up || !to.up {
		return false
	}
	for slot := range int8(moving) {
		for key := range keysInSlot {
			if has(c.owned, slot) && to.data[slot][key] != missing {
				from.data[slot][key] = missing
			}
		}
	}
	w.replicate(c.from)
	return true
}
