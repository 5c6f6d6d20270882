// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
)

const (
	shards    = 4 // the last one joins or leaves
	replicas  = 2 // instances a shard
	instances = shards * replicas
	joining   = shards - 1

	moving     = 2          // slots that can move: 0 and 1
	blocks     = moving + 3 // and all other slots of shards 0, 1 and 2, a block each
	keysInSlot = 1
)

// none is no node, no slot's owner, no mark.
const none = int8(-1)

// copied is what a node has of a key.
type copied uint8

const (
	missing copied = iota
	fresh          // what was acknowledged last
	stale          // an older value, or one that was deleted
)

// node is one instance: what it is, what it believes and what it holds. Nodes are numbered shard by shard.
type node struct {
	pod, up bool
	// follows is the master of a replica.
	follows int8
	// knows are the nodes in its table, and banned those that it was told to forget, a bit each.
	knows, banned uint8
	// owner is whom it takes for the owner of each block, and unclaimed are the blocks that this owner did not claim when it
	// was heard last, a bit each (owner_not_claiming_slot).
	owner     [blocks]int8
	unclaimed uint8
	// epoch is its configuration epoch and current the highest one that anybody has told it (currentEpoch); heard are those of
	// the others and roles whom they follow, as far as it has heard.
	epoch, current uint8
	heard          [instances]uint8
	roles          [instances]int8
	// migrating and importing are its marks: the other end.
	migrating, importing [moving]int8
	data                 [moving][keysInSlot]copied
}

func (n *node) master() bool { return n.follows == none }

// ask is a client that was told to ask a node for a key, and has not done so yet.
type ask struct{ at, slot, key int8 }

// statefulSet is that of the joining shard.
type statefulSet uint8

const (
	absent statefulSet = iota
	present
	terminating
)

// budget is what may still happen on a path.
type budget struct {
	// faults are lost commands and answers, crashes, deaths and promotions; writes are those of clients; changes are those of
	// the spec; stops are of the operator's process for longer than its lease.
	faults, writes, changes, stops uint8
}

// world is a state. It is comparable, so that states can be told apart.
type world struct {
	nodes [instances]node
	// wanted is how many shards the spec asks for.
	wanted uint8
	set    statefulSet
	// goal is the one in the status, and next the one that the reconciliation under way writes there: numbers in the checker's list.
	goal, next int8
	// program is what is left of the reconciliation under way, the next command last.
	program [12]command
	length  uint8
	// alive reports whether a key exists, as far as clients were told.
	alive [moving][keysInSlot]bool
	late  ask
	// stopped is the command that a process of the operator was about to send when it was stopped; of no kind when none was.
	stopped command
	left    budget
	// upset reports whether an instance died or was promoted.
	upset bool
}

// bit is the bit of a node or block in a mask.
func bit(i int8) uint8 { return 1 << i }

func has(mask uint8, i int8) bool { return mask&bit(i) != 0 }

func shardOf(i int8) int8 { return i / replicas }

// all are the numbers of the instances.
func all() []int8 {
	numbers := make([]int8, instances)
	for i := range numbers {
		numbers[i] = int8(i)
	}
	return numbers
}

// blank is a process that was just started for the first time: a master that knows nobody.
func blank() node {
	n := node{follows: none}
	for i := range n.roles {
		n.roles[i] = none
	}
	for i := range n.owner {
		n.owner[i] = none
	}
	for i := range moving {
		n.migrating[i], n.importing[i] = none, none
	}
	return n
}

// steady is a cluster of three or four shards healthy; owners are those of the moving slots.
func steady(exist int, owners [moving]int8) world {
	w := world{goal: none, next: none, wanted: uint8(exist), late: ask{at: none}}
	if exist == shards {
		w.set = present
	}
	for _, i := range all() {
		w.nodes[i] = blank()
		if int(shardOf(i)) >= exist {
			continue
		}
		n := &w.nodes[i]
		n.pod, n.up = true, true
		n.knows = bit(int8(exist*replicas)) - 1 - bit(i)
		copy(n.owner[:], owners[:])
		for shard := range int8(3) {
			n.owner[moving+shard] = shard * replicas
		}
		for _, other := range all()[:exist*replicas] {
			if other%replicas != 0 {
				n.roles[other] = other - 1
			}
			n.heard[other] = epochOf(other)
		}
		n.epoch, n.current = epochOf(i), uint8(exist)
		n.follows = n.roles[i]
		n.heard[i], n.roles[i] = 0, none // of itself it knows better
	}
	for slot, owner := range owners {
		for key := range keysInSlot {
			w.alive[slot][key] = true
			w.nodes[owner].data[slot][key] = fresh
			w.nodes[owner+1].data[slot][key] = fresh
		}
	}
	return w
}

// epochOf is the epoch that a master starts with; replicas have none of their own.
func epochOf(i int8) uint8 {
	if i%replicas != 0 {
		return 0
	}
	return uint8(shardOf(i)) + 1
}

// normal makes states equal that differ in nothing that matters: only the order of epochs does, and what pods that are gone
// were does not.
func (w world) normal() world {
	var seen [256]bool
	seen[0] = true
	for i := range w.nodes {
		n := &w.nodes[i]
		if !n.pod {
			*n = blank()
		}
		seen[n.epoch], seen[n.current] = true, true
		for _, e := range n.heard {
			seen[e] = true
		}
	}
	var rank [256]uint8
	next := uint8(0)
	for e := range seen {
		if seen[e] {
			rank[e] = next
			next++
		}
	}
	for i := range w.nodes {
		n := &w.nodes[i]
		n.epoch, n.current = rank[n.epoch], rank[n.current]
		for j := range n.heard {
			n.heard[j] = rank[n.heard[j]]
		}
	}
	for i := w.length; int(i) < len(w.program); i++ {
		w.program[i] = command{}
	}
	if w.length == 0 {
		w.next = w.goal
	}
	return w
}

// String shows what is not as at the beginning, for traces.
func (w world) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  spec %d, set %d, goal %d, left %+v, late %+v, alive %v\n", w.wanted, w.set, w.goal, w.left, w.late, w.alive)
	for i, n := range w.nodes {
		if n.pod {
			fmt.Fprintf(&b, "  n%d up=%t follows=%d owners=%v-%05b epoch=%d heard=%v roles=%v knows=%08b migrating=%v importing=%v data=%v\n",
				i, n.up, n.follows, n.owner, n.unclaimed, n.epoch, n.heard, n.roles, n.knows, n.migrating, n.importing, n.data)
		}
	}
	for _, c := range slices.Backward(w.program[:w.length]) {
		fmt.Fprintf(&b, "  then %s\n", c)
	}
	return b.String()
}
