// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "fmt"

// kind is what a command does. Each is one round trip to one node, unless said otherwise.
type kind uint8

const (
	// begin looks at both ends of a move (Describe) and puts the commands that follow from it before what is left.
	begin kind = iota + 1
	// change switches over the slots `owned` to the node `to`, and opens the slots `next` (ChangeSlots).
	change
	// drain lists the keys that `from` has of the slots and puts a MIGRATE before itself, until there are none.
	drain
	// migrate carries the keys of one slot.
	migrate
	// discard removes the keys that both ends have from the one that does not own them.
	discard
	// stable takes marks away.
	stable
	// bind marks slots as imported from `from`, and makes that the owner: two round trips.
	bind
	// claim tells a node that slots are its own.
	claim
	// meet introduces `at` to the nodes `on`, and forget makes the nodes `on` forget the nodes `next`: a round trip each.
	meet
	forget
	follow
	// bump gives `at` an epoch above all that it has heard of.
	bump
	// renew gives `at` an empty claim: it starts again as a node that nobody knows.
	renew
	addSlots
	failover
	// createSet, removeSet and report go to the API server. report writes the goal in the status.
	createSet
	removeSet
	report
)

var kindNames = map[kind]string{begin: "begin", change: "SETSLOT", drain: "drain", migrate: "MIGRATE", discard: "UNLINK",
	stable: "SETSLOT STABLE", bind: "SETSLOT IMPORTING, NODE", claim: "SETSLOT NODE of itself",
	meet: "MEET", forget: "FORGET", follow: "REPLICATE", bump: "BUMPEPOCH",
	renew: "delete claim and pod", addSlots: "ADDSLOTS",
	failover: "FAILOVER", createSet: "create StatefulSet", removeSet: "delete StatefulSet", report: "write status"}

// command is one thing that a reconciliation of the operator does.
type command struct {
	kind kind
	// at is the node that it is sent to.
	at int8
	// from and to are the ends of a move.
	from, to int8
	// owned and next are slots, on are nodes, a bit each.
	owned, next, on uint8
	// targetWins: the copy at the target is the one that clients see (see reshard's winner); replace: overwrite it.
	targetWins, replace bool
}

func (c command) String() string {
	return fmt.Sprintf("%s at=%d from=%d to=%d owned=%02b next=%02b on=%08b targetWins=%t replace=%t", kindNames[c.kind], c.at, c.from, c.to,
		c.owned, c.next, c.on, c.targetWins, c.replace)
}

// push puts commands before those that are left; the first one comes first.
func (w *world) push(commands ...command) {
	for i := len(commands) - 1; i >= 0; i-- {
		w.program[w.length] = commands[i]
		w.length++
	}
}

func (w *world) pop() command {
	w.length--
	return w.program[w.length]
}

// abandon ends the move under way after an error: the moves of one step do not wait for each other. A reconciliation that does not
// move ends.
func (w *world) abandon(failed kind) {
	switch failed {
	case begin, change, drain, migrate, discard:
		for w.length > 0 && w.program[w.length-1].kind != begin {
			w.length--
		}
	default:
		w.length = 0
	}
}

// execute carries a command out and says whether it succeeded. partly, which not all commands know, stops it in the middle.
func (e engine) execute(w *world, c command, partly bool) bool {
	switch c.kind {
	case begin:
		return w.begin(c, e.sourceFirst)
	case change:
		return e.change(w, c, partly)
	case drain:
		return w.drain(c)
	case migrate:
		return w.migrate(c, partly)
	case discard:
		return w.discard(c)
	case stable:
		n := &w.nodes[c.at]
		for slot := range int8(moving) {
			if n.up && n.master() && has(c.owned, slot) {
				n.migrating[slot], n.importing[slot] = none, none
			}
		}
		return n.up && n.master()
	case bind:
		n := &w.nodes[c.at]
		if !n.up || !n.master() || !n.isMaster(c.from) {
			return false
		}
		for slot := range int8(moving) {
			if has(c.owned, slot) && n.owner[slot] != c.at {
				n.importing[slot] = c.from
			}
		}
		return !partly && e.setOwner(w, c.at, c.owned, c.from)
	case claim:
		return w.nodes[c.at].up && e.setOwner(w, c.at, c.owned, c.at)
	case failover:
		if !w.nodes[c.at].up || w.nodes[c.at].master() {
			return false
		}
		e.promote(w, c.at)
		return true
	default:
		return w.administer(c, partly)
	}
}

// administer carries out what has nothing to do with the keys of slots.
func (w *world) administer(c command, partly bool) bool {
	n := &w.nodes[c.at]
	switch c.kind {
	case meet:
		for _, other := range all() {
			if has(c.on, other) && n.up && w.nodes[other].up {
				w.introduce(c.at, other)
				if partly {
					return false
				}
			}
		}
		return n.up
	case forget:
		return w.forget(c, partly)
	case follow:
		if !n.up || !w.nodes[c.to].up || !has(n.knows, c.to) || n.roles[c.to] != none || w.owned(c.at)|w.holds(c.at) != 0 && n.master() {
			return false
		}
		w.follow(c.at, c.to)
		return true
	case bump:
		if n.up && n.epoch < n.current {
			n.epoch = n.newEpoch()
		}
		return n.up
	case renew:
		*n = blank()
		n.pod = true
		for i := range w.nodes { // its ID is new
			w.nodes[i].drop(c.at)
			w.nodes[i].banned &^= bit(c.at)
		}
		return true
	case addSlots:
		for block := range int8(blocks) {
			if has(c.owned, block) && (!n.up || n.owner[block] != none) {
				return false // "Slot is already busy"
			}
		}
		for block := range int8(blocks) {
			if has(c.owned, block) {
				n.owner[block] = c.at
				if block < moving {
					n.importing[block] = none
				}
			}
		}
		return true
	case createSet:
		w.set = present
		for ordinal := range int8(replicas) {
			w.nodes[joining*replicas+ordinal].pod = true
		}
		for i := range w.nodes { // their claims are new, and so are their IDs
			w.nodes[i].banned &^= bit(joining*replicas) | bit(joining*replicas+1)
		}
		return true
	case removeSet:
		w.set = terminating
		return true
	default: // report
		w.goal = w.next
		return true
	}
}

// forget takes nodes out of the tables of others (clusterDelNode).
func (w *world) forget(c command, partly bool) bool {
	done := true
	for _, at := range all() {
		n := &w.nodes[at]
		if !has(c.on, at) {
			continue
		}
		if !n.up || !n.master() && has(c.next, n.follows) {
			done = false
			continue
		}
		for _, gone := range all() {
			if has(c.next, gone) {
				n.drop(gone)
			}
		}
		if partly {
			return false
		}
	}
	return done
}

func (n *node) drop(gone int8) {
	n.knows &^= bit(gone)
	n.banned |= bit(gone)
	n.heard[gone], n.roles[gone] = 0, none
	for block := range n.owner {
		if n.owner[block] == gone {
			n.owner[block] = none
		}
	}
	for slot := range moving {
		if n.migrating[slot] == gone {
			n.migrating[slot] = none
		}
		if n.importing[slot] == gone {
			n.importing[slot] = none
		}
	}
}
