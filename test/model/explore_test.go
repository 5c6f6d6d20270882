// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
)

// checker visits every world that can come of one.
type checker struct {
	operator
	engine
	// restless are the instances that may die or be promoted, and that gossip may reach one by one.
	restless []int8
	// whispers reports whether gossip also gets from one node to one other, not only to all.
	whispers bool
	// unownedKeys reports that the instances of the joining shard may follow the master of another one.
	unownedKeys bool

	ids    map[world]int32
	worlds []world
	parent []int32
	how    []string
	// before are the worlds from which a world is reached without any fault, client or change of the spec.
	before [][]int32
	steps  int
}

// violation is a broken rule, with the world that breaks it.
type violation struct {
	rule string
	id   int32
}

// explore visits all worlds, breadth first, and returns the first violation of a safety rule.
func (c *checker) explore(start world) *violation {
	c.ids, c.decisions = map[world]int32{}, map[world]decided{}
	c.add(start.normal(), -1, "start", false)
	for id := int32(0); int(id) < len(c.worlds); id++ {
		w := c.worlds[id]
		if rule := c.broken(&w); rule != "" {
			return &violation{rule, id}
		}
		c.successors(&w, func(how string, isFair bool, next world) {
			if next = next.normal(); next != w {
				c.steps++
				c.add(next, id, how, isFair)
			}
		})
	}
	return nil
}

func (c *checker) add(w world, parent int32, how string, isFair bool) {
	id, known := c.ids[w]
	if !known {
		id = int32(len(c.worlds))
		c.ids[w] = id
		c.worlds, c.parent, c.how, c.before = append(c.worlds, w), append(c.parent, parent), append(c.how, how), append(c.before, nil)
	}
	if isFair && parent >= 0 {
		c.before[id] = append(c.before[id], parent)
	}
}

// successors yields what can happen next. Fair is what happens sooner or later by itself.
func (c *checker) successors(w *world, yield func(how string, isFair bool, next world)) {
	c.reconcile(w, yield)
	c.cluster(w, yield)
	if w.left.writes > 0 || w.late.at != none {
		c.clients(w, yield)
	}
	if w.stopped.kind != 0 && w.length == 0 && w.known(w.stopped.at) {
		next := *w
		next.stopped, next.upset = command{}, true
		c.execute(&next, w.stopped, false)
		next.settle()
		yield("late: "+kindNames[w.stopped.kind], false, next)
	}
	if w.left.changes > 0 {
		next := *w
		next.left.changes--
		next.wanted = 2*shards - 1 - w.wanted
		yield("the spec changes", false, next)
	}
}

// known reports whether all instances of other shards know the node. One that they have begun to forget is about to go: until it is
// introduced again it tells nobody what it is told.
func (w *world) known(node int8) bool {
	for _, i := range all() {
		if n := &w.nodes[i]; shardOf(i) != shardOf(node) && n.up && !has(n.knows, node) {
			return false
		}
	}
	return true
}

// reconcile is the operator: it begins a reconciliation, or executes the next command of the one under way.
func (c *checker) reconcile(w *world, yield func(string, bool, world)) {
	if w.length == 0 {
		c.begins(w, 0, true, yield)
		for _, i := range c.restless {
			if w.left.faults > 0 && w.nodes[i].up {
				c.begins(w, bit(i), false, yield)
			}
		}
		return
	}
	done := *w
	command := done.pop()
	if !c.execute(&done, command, false) {
		done.abandon(command.kind)
	}
	yield("the operator: "+kindNames[command.kind], true, done)
	if w.left.stops > 0 && command.owned != 0 && (command.kind == change || command.kind == claim) {
		next := *w
		next.left.stops--
		next.length, next.stopped = 0, command
		next.stopped.next = 0 // whose marks are the next reconciliation's to take off
		yield("the operator is stopped before "+kindNames[command.kind], false, next)
	}
	if w.left.faults == 0 {
		return
	}
	fault := func(how string, next world) {
		next.left.faults--
		next.upset = next.upset || w.upset
		yield(how+" "+kindNames[command.kind], false, next)
	}
	crashed := *w
	crashed.length = 0
	fault("the operator crashes before", crashed)
	refused := *w
	refused.abandon(refused.pop().kind)
	fault("not executed:", refused)
	done = *w
	done.pop()
	c.execute(&done, command, false)
	done.abandon(command.kind)
	fault("the answer is lost:", done)
	switch command.kind {
	case change, migrate, bind, meet, forget:
		done = *w
		done.pop()
		c.execute(&done, command, true)
		done.abandon(command.kind)
		fault("executed in part:", done)
	default:
	}
}

// begins decides. A reconciliation of which nothing comes is as if it had not been.
func (c *checker) begins(w *world, unknown uint8, isFair bool, yield func(string, bool, world)) {
	d := c.decide(w, unknown)
	for _, program := range d.programs {
		if len(program) == 0 {
			continue
		}
		next := *w
		next.next = d.goal
		next.push(program...)
		if unknown != 0 {
			next.left.faults--
		}
		yield(d.name, isFair, next)
	}
}

// cluster is what happens among nodes and in Kubernetes.
func (c *checker) cluster(w *world, yield func(string, bool, world)) {
	settled := *w
	settled.settle()
	yield("gossip settles", true, settled)
	for _, a := range c.restless {
		for _, b := range c.restless {
			if next := *w; c.whispers && w.knowsOtherwise(a, b) {
				next.send(a, b)
				yield(fmt.Sprintf("gossip from n%d to n%d", a, b), false, next)
			}
		}
	}
	for _, i := range all() {
		n, next := &w.nodes[i], *w
		switch {
		case !n.pod:
		case w.set == terminating && shardOf(i) == joining:
			next.nodes[i].pod, next.nodes[i].up = false, false
			if !next.nodes[joining*replicas].pod && !next.nodes[joining*replicas+1].pod {
				next.set = absent
			}
			yield(fmt.Sprintf("pod n%d is gone", i), true, next)
		case !n.up && w.length == 0:
			next.start(i)
			yield(fmt.Sprintf("n%d starts", i), true, next)
		}
	}
	for _, i := range c.restless {
		c.upset(w, i, yield)
	}
	if c.unownedKeys && w.left.faults > 0 && w.length == 0 && w.canFollowAnother() {
		next := *w
		next.left.faults--
		for ordinal := range int8(replicas) {
			next.follow(joining*replicas+ordinal, 0)
		}
		yield("the instances of the joining shard follow n0", false, next)
	}
}

// canFollowAnother reports whether the joining shard owns and holds nothing. Its instances follow the master of another shard then, if
// that took all they had, owns nothing else, and they hear of it at once (clusterUpdateSlotsConfigWith); the taker here owns
// more, which makes no difference afterwards.
func (w *world) canFollowAnother() bool {
	for ordinal := range int8(replicas) {
		i := joining*replicas + ordinal
		if n := &w.nodes[i]; !n.up || w.owned(i)|w.holds(i)|n.open() != 0 || !n.isMaster(0) || slices.Contains(n.owner[:], i) {
			return false
		}
	}
	return w.set == present && w.nodes[0].up && w.nodes[0].master() && w.owned(0) != 0
}

// knowsOtherwise reports whether a node takes another one for the owner of other moving slots than that does itself. (Other news
// arrives everywhere at once, which spares states.)
func (w *world) knowsOtherwise(a, b int8) bool {
	claimed := w.owned(a)
	for slot := range int8(moving) {
		if has(claimed, slot) != (w.nodes[b].owner[slot] == a) {
			return true
		}
	}
	return false
}

// moves reports whether the reconciliation under way takes slots from the node. Who promotes a replica of it by hand in this instant
// may lose what clients write at the new master before the slot goes to the destination, which has the newer epoch: inherent to SETSLOT,
// which cannot be made to depend on anything at the other end.
func (w *world) moves(from int8) bool {
	for _, c := range w.program[:w.length] {
		switch c.kind {
		case begin, change, drain, migrate, discard:
			if c.from == from {
				return true
			}
		default:
		}
	}
	return false
}

// upset lets an instance die or be promoted. Elections and restarts take longer than what is left of a reconciliation: a command sent
// to a dead node ends it.
func (c *checker) upset(w *world, i int8, yield func(string, bool, world)) {
	n, next := &w.nodes[i], *w
	next.upset = true
	if n.up && w.left.faults > 0 {
		died := next
		died.nodes[i].up = false
		died.left.faults--
		yield(fmt.Sprintf("n%d dies", i), false, died)
	}
	// A replica whose master owns nothing, as far as it knows, is not elected (clusterHandleSlaveFailover).
	if n.up && !n.master() && slices.Contains(n.owner[:], n.follows) && w.inSync(i) && w.canElect(i) {
		switch master := &w.nodes[n.follows]; {
		case !master.up && w.length == 0:
			c.promote(&next, i)
			yield(fmt.Sprintf("n%d is elected", i), false, next)
		case master.up && !w.moves(n.follows) && w.left.faults > 0:
			c.promote(&next, i)
			next.left.faults--
			yield(fmt.Sprintf("n%d is promoted by hand", i), false, next)
		}
	}
}

// trace is how a world came about, and what an undisturbed operator makes of it.
func (c *checker) trace(id int32) string {
	var lines []string
	for at := id; at >= 0; at = c.parent[at] {
		lines = append(lines, c.how[at])
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		fmt.Fprintf(&b, "%3d %s\n", len(lines)-1-i, lines[i])
	}
	w := c.worlds[id]
	fmt.Fprint(&b, w)
	for seen := map[int32]bool{}; !seen[id]; { // what would come of it
		seen[id] = true
		w := c.worlds[id]
		fmt.Fprintf(&b, "  the operator: %s\n", c.decide(&w, 0).name)
		if next := c.undisturbed(w); w.length == 0 && len(next) > 0 {
			id = next[0]
		}
	}
	return b.String()
}
