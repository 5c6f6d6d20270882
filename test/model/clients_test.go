// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "fmt"

// route is what a master that takes itself for the owner does with a command about one key (getNodeByQuery): it serves it,
// or sends the client to ask another node.
func (w *world) route(at, slot, key int8) (serves bool, asks int8) {
	n := &w.nodes[at]
	if to := n.migrating[slot]; to != none && n.data[slot][key] == missing {
		return false, to
	}
	return true, none
}

// serves reports whether a node is up and takes the cluster for complete (clusterUpdateState with
// cluster-require-full-coverage).
func (w *world) serves(at int8) bool {
	for _, owner := range w.nodes[at].owner {
		if owner == none || owner != at && (!has(w.nodes[at].knows, owner) || !w.nodes[owner].up) {
			return false
		}
	}
	return w.nodes[at].up
}

// takes reports whether a node serves a client that was told to ask it for a key.
func (w *world) takes(at, slot, key int8) bool {
	n := &w.nodes[at]
	if !w.serves(at) || !n.master() {
		return false
	}
	if n.owner[slot] == at {
		serves, _ := w.route(at, slot, key)
		return serves
	}
	return n.importing[slot] != none
}

// owners are the serving masters that take themselves for the owner of a slot. Clients get to them by MOVED, or by what they
// remember.
func (w *world) owners(slot int8) []int8 {
	var found []int8
	for _, i := range all() {
		if w.serves(i) && has(w.owned(i), slot) {
			found = append(found, i)
		}
	}
	return found
}

// clients write and delete.
func (c *checker) clients(w *world, yield func(string, bool, world)) {
	if l := w.late; l.at != none {
		next := *w
		next.late = ask{at: none}
		yield("a client gives up", true, next)
		if w.takes(l.at, l.slot, l.key) {
			next.write(l.at, l.slot, l.key, fresh)
			yield(fmt.Sprintf("a client asks n%d and writes slot %d", l.at, l.slot), false, next)
		}
		return
	}
	for slot := range int8(moving) {
		for _, at := range w.owners(slot) {
			for key := range int8(keysInSlot) {
				next := *w
				next.left.writes--
				serves, asks := w.route(at, slot, key)
				if !serves {
					next.late = ask{asks, slot, key}
					yield(fmt.Sprintf("a client is told by n%d to ask n%d for slot %d", at, asks, slot), false, next)
					continue
				}
				deleted := next
				next.write(at, slot, key, fresh)
				yield(fmt.Sprintf("a client writes slot %d at n%d", slot, at), false, next)
				if w.isWhole(at, slot, key) {
					deleted.write(at, slot, key, missing)
					yield(fmt.Sprintf("a client deletes slot %d at n%d", slot, at), false, deleted)
				}
			}
		}
	}
}

// isWhole reports whether a key is where it is served, and nowhere else. Else deleting it there brings another copy to light when
// the slot is finished, which is inherent to the engines: MIGRATE (migrateCommand) does not remember what it sent when the
// answer is lost; and a master of Redis 7 that is promoted in the middle of moving a slot does not know what has moved.
func (w *world) isWhole(at, slot, key int8) bool {
	for _, i := range all() {
		if shardOf(i) != shardOf(at) && w.nodes[i].pod && w.nodes[i].data[slot][key] != missing {
			return false
		}
	}
	return w.nodes[at].data[slot][key] == fresh
}

// write makes a value (or its absence) the latest. Every other copy is out of date then.
func (w *world) write(at, slot, key int8, value copied) {
	for i := range w.nodes {
		if other := &w.nodes[i].data[slot][key]; *other == fresh {
			*other = stale
		}
	}
	w.alive[slot][key] = value == fresh
	w.nodes[at].data[slot][key] = value
	w.replicate(at)
	w.late = ask{at: none}
}

// misread says how a client that begins at an owner of the slot would be told something that is not so; empty when it
// would not.
func (w *world) misread(at, slot, key int8) string {
	serves, asks := w.route(at, slot, key)
	if !serves {
		if !w.takes(asks, slot, key) {
			return "" // an error or a redirection, until that changes
		}
		at = asks
	}
	value := w.nodes[at].data[slot][key]
	switch alive := w.alive[slot][key]; {
	case alive && value == missing:
		return fmt.Sprintf("n%d says that a key of slot %d does not exist, which does", at, slot)
	case alive && value == stale:
		return fmt.Sprintf("n%d has an old value of slot %d", at, slot)
	case !alive && value != missing:
		return fmt.Sprintf("n%d has a key of slot %d that was deleted", at, slot)
	}
	return ""
}
