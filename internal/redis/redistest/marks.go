// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// marks are open slots by number, with the ID of the node at the other end (migrating_slots_to, importing_slots_from).
type marks map[uint16]string

// set is the slots that are marked.
func (m marks) set() slots.Set {
	if len(m) == 0 {
		return slots.Set{}
	}
	return slots.Of(slices.Collect(maps.Keys(m))...)
}

// drop removes the marks that name the node.
func (m marks) drop(id string) {
	maps.DeleteFunc(m, func(_ uint16, other string) bool { return other == id })
}

// rename lets the marks that name one node name another.
func (m marks) rename(from, to string) {
	for slot, id := range m {
		if id == from {
			m[slot] = to
		}
	}
}

// closeSlots removes all marks (clusterCloseAllSlots).
func (n *Node) closeSlots() { n.migrating, n.importing = marks{}, marks{} }

// copyMarks takes over the marks of the master: Valkey replicates CLUSTER SETSLOT, and a full synchronization brings the
// marks, too (cluster-slot-states).
func (n *Node) copyMarks(master *Node) {
	n.migrating, n.importing = maps.Clone(master.migrating), maps.Clone(master.importing)
	isUnknown := func(_ uint16, id string) bool { return n.find(id) == nil }
	maps.DeleteFunc(n.migrating, isUnknown)
	maps.DeleteFunc(n.importing, isUnknown)
}

// openSlots is what CLUSTER NODES appends to the line of the node itself (clusterGenNodeDescription).
func (n *Node) openSlots() string {
	var b strings.Builder
	for slot := range n.migrating.set().Union(n.importing.set()).Slots() {
		if to, marked := n.migrating[slot]; marked {
			fmt.Fprintf(&b, " [%d->-%s]", slot, to)
		} else {
			fmt.Fprintf(&b, " [%d-<-%s]", slot, n.importing[slot])
		}
	}
	return b.String()
}

// setSlotCommand is CLUSTER SETSLOT (clusterCommand; clusterCommandSetSlot of Valkey).
func (n *Node) setSlotCommand(args []string) any {
	action := strings.ToUpper(args[1])
	if n.self().replica {
		return errorText("ERR Please use SETSLOT only with masters.")
	}
	if refusal := n.busyWithJobs(); refusal != "" {
		return refusal
	}
	slot, err := slots.ParseNumber(args[0])
	if err != nil {
		return invalidSlot
	}
	arguments := 3
	if action == "STABLE" {
		arguments = 2
	}
	// Valkey takes further arguments, for TIMEOUT.
	if !slices.Contains([]string{"MIGRATING", "IMPORTING", "STABLE", "NODE"}, action) ||
		len(args) < arguments || len(args) > arguments && !n.options.Valkey {
		return errorText("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP")
	}
	other := ""
	if action != "STABLE" {
		other = args[2]
		if refusal := n.refuseSetSlot(action, slot, other); refusal != "" {
			return refusal
		}
	}
	// Valkey executes the command at the replicas before it does so itself.
	for _, replica := range n.syncedReplicas() {
		if n.options.Valkey {
			replica.setSlot(action, slot, other)
		}
	}
	n.setSlot(action, slot, other)
	return okReply
}

// refuseSetSlot is why the slot cannot be marked or assigned; empty when it can.
func (n *Node) refuseSetSlot(action string, slot uint16, id string) errorText {
	isMine, other := n.self().slots.Contains(slot), n.find(id)
	switch {
	case action == "MIGRATING" && !isMine:
		return errorText(fmt.Sprintf("ERR I'm not the owner of hash slot %d", slot))
	case action == "IMPORTING" && isMine:
		return errorText(fmt.Sprintf("ERR I'm already the owner of hash slot %d", slot))
	case other == nil && action == "NODE":
		return errorText("ERR Unknown node " + id)
	case other == nil:
		return errorText("ERR I don't know about node " + id)
	case other == n.self() && action != "NODE" && n.options.Valkey:
		return "ERR Target node is myself"
	case other.replica:
		return "ERR Target node is not a master"
	case action == "NODE" && isMine && other != n.self() && len(n.keysIn(slots.Of(slot))) > 0:
		return errorText(fmt.Sprintf("ERR Can't assign hashslot %d to a different node while I still hold keys for this hash slot.", slot))
	}
	return ""
}

// setSlot executes what was not refused. A master that gives its last slot away stays a master
// (cluster-allow-replica-migration no).
func (n *Node) setSlot(action string, slot uint16, id string) {
	switch action {
	case "MIGRATING":
		n.migrating[slot] = id
	case "IMPORTING":
		n.importing[slot] = id
	case "STABLE":
		delete(n.migrating, slot)
		delete(n.importing, slot)
	case "NODE":
		if other := n.find(id); other != nil { // a replica may not know the node
			n.setSlotNode(slot, other)
		}
	}
}

func (n *Node) setSlotNode(slot uint16, owner *peer) {
	if len(n.keysIn(slots.Of(slot))) == 0 {
		delete(n.migrating, slot)
	}
	n.assign(slots.Of(slot), owner)
	if _, imported := n.importing[slot]; !imported || owner != n.self() && owner != n.master() {
		return
	}
	delete(n.importing, slot)
	if owner == n.self() {
		n.bumpEpoch()
		n.broadcast()
	}
}

// assign binds slots to an entry of the table, nobody when nil (clusterDelSlot, clusterAddSlot).
func (n *Node) assign(moved slots.Set, owner *peer) {
	for _, p := range n.table {
		if p != owner && !p.slots.Intersect(moved).IsEmpty() {
			p.slots = p.slots.Subtract(moved)
		}
	}
	if n.options.Valkey {
		n.notClaimed = n.notClaimed.Subtract(moved)
	}
	if owner != nil && !moved.Subtract(owner.slots).IsEmpty() {
		owner.slots = owner.slots.Union(moved)
	}
}

// bumpEpoch takes a new epoch unless the node has the highest one already
// (clusterBumpConfigEpochWithoutConsensus).
func (n *Node) bumpEpoch() (bumped bool) {
	self, highest := n.self(), n.currentEpoch
	for _, p := range n.table {
		highest = max(highest, p.configEpoch)
	}
	if self.configEpoch != 0 && self.configEpoch == highest {
		return false
	}
	n.currentEpoch++
	self.configEpoch = n.currentEpoch
	return true
}

func (n *Node) bumpEpochCommand([]string) any {
	word := "STILL"
	if n.bumpEpoch() {
		word = "BUMPED"
	}
	return simple(fmt.Sprintf("%s %d", word, n.self().configEpoch))
}

// syncedReplicas are the replicas whose link to this node is up.
func (n *Node) syncedReplicas() []*Node {
	var found []*Node
	for _, other := range n.world.nodes {
		if other.alive() && other.masterLinkUp && other.self().masterID == n.id && n.world.isolated[other] == n.world.isolated[n] {
			found = append(found, other)
		}
	}
	return found
}

// keysIn are the keys of the slots, sorted.
func (n *Node) keysIn(set slots.Set) []string {
	var found []string
	if set.IsEmpty() {
		return nil
	}
	for key := range n.keys {
		if set.Contains(n.world.slotOf(key)) {
			found = append(found, key)
		}
	}
	slices.Sort(found)
	return found
}

// slotOf is the slot of a key, which is remembered: the same few are asked for again and again.
func (w *World) slotOf(key string) uint16 {
	slot, known := w.slots[key]
	if !known {
		slot = slots.KeySlot(key)
		w.slots[key] = slot
	}
	return slot
}

// deleteKeysIn empties slots (delKeysInSlot).
func (n *Node) deleteKeysIn(set slots.Set) {
	for _, key := range n.keysIn(set) {
		n.delete(key)
	}
}

// verifyData settles what to do with keys in slots of others, when a process starts (verifyClusterConfigWithData), and in
// Valkey also when a replica becomes master: Redis keeps them under an importing mark, Valkey deletes them. Slots of
// nobody are claimed.
func (n *Node) verifyData() {
	if n.self().replica {
		return
	}
	var foreign slots.Set
	for key := range n.keys {
		slot := slots.KeySlot(key)
		owner := n.ownerOf(slot)
		switch {
		case owner == n.self() || n.importing[slot] != "":
		case owner == nil:
			n.assign(slots.Of(slot), n.self())
		case n.options.Valkey:
			foreign = foreign.Union(slots.Of(slot))
		default:
			n.importing[slot] = owner.id
		}
	}
	n.deleteKeysIn(foreign)
}

func (n *Node) countKeysCommand(args []string) any {
	slot, err := strconv.ParseInt(args[0], 10, 64)
	switch {
	case err != nil:
		return notAnInteger
	case slot < 0 || slot >= slots.Count:
		return errorText("ERR Invalid slot")
	}
	return len(n.keysIn(slots.Of(uint16(slot))))
}

// getKeysCommand answers sorted keys; the order of real ones is arbitrary.
func (n *Node) getKeysCommand(args []string) any {
	slot, err := strconv.ParseInt(args[0], 10, 64)
	count, err2 := strconv.ParseInt(args[1], 10, 64)
	switch {
	case err != nil || err2 != nil:
		return notAnInteger
	case slot < 0 || slot >= slots.Count || count < 0:
		return errorText("ERR Invalid slot or number of keys")
	}
	answer := []any{}
	for _, key := range n.keysIn(slots.Of(uint16(slot))) {
		if int64(len(answer)) == count {
			break
		}
		answer = append(answer, key)
	}
	return answer
}
