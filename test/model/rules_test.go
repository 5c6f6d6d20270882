// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import "fmt"

// broken is the safety rule that a world breaks; empty when it breaks none.
func (c *checker) broken(w *world) string {
	for slot := range int8(moving) {
		for key := range int8(keysInSlot) {
			if w.alive[slot][key] && !w.exists(slot, key) {
				return fmt.Sprintf("an acknowledged write of slot %d is lost", slot)
			}
		}
		owners := w.owners(slot)
		if !w.upset {
			if len(owners) == 0 {
				return fmt.Sprintf("slot %d has no owner, though nothing died", slot)
			}
			if rule := w.wrong(owners, slot); rule != "" {
				return rule + ", though nothing died"
			}
		}
		if len(owners) > 1 && w.length == 0 && w.settled() {
			return fmt.Sprintf("n%v go on serving slot %d", owners, slot)
		}
	}
	if w.set == terminating {
		for ordinal := range int8(replicas) {
			i := joining*replicas + ordinal
			if n := &w.nodes[i]; n.up && n.master() && w.owned(i)|w.holds(i) != 0 {
				return fmt.Sprintf("the StatefulSet goes while n%d owns or holds something", i)
			}
		}
	}
	return ""
}

func (w *world) exists(slot, key int8) bool {
	for i := range w.nodes {
		if w.nodes[i].pod && w.nodes[i].data[slot][key] == fresh {
			return true
		}
	}
	return false
}

func (w *world) settled() bool {
	after := *w
	after.settle()
	return after == *w
}

// wrong is the first wrong answer that any of the owners of a slot would give.
func (w *world) wrong(owners []int8, slot int8) string {
	for _, at := range owners {
		for key := range int8(keysInSlot) {
			if rule := w.misread(at, slot, key); rule != "" {
				return rule
			}
		}
	}
	return ""
}

// done reports whether the cluster is as the spec asks for: the operator has nothing to do, everybody agrees, no slot is open, and
// every key is where its slot is, with its last value.
func (c *checker) done(w *world) bool {
	if w.length > 0 || w.late.at != none || existing(w) != int(w.wanted) || w.set == terminating || !w.settled() || !c.decide(w, 0).steady {
		return false
	}
	for _, i := range all() {
		if n := &w.nodes[i]; n.pod && (!n.up || n.open() != 0) {
			return false
		}
	}
	for slot := range int8(moving) {
		owners := w.owners(slot)
		if len(owners) != 1 || int(shardOf(owners[0])) >= int(w.wanted) || w.wrong(owners, slot) != "" {
			return false
		}
		for _, i := range all() {
			if shardOf(i) != shardOf(owners[0]) && has(w.holds(i), slot) {
				return false
			}
		}
	}
	return true
}

// stuck are worlds from which the cluster that was asked for cannot be reached without help, shortest way there first. Where the
// operator waits (or stalls) for something that does not come, the world is one of them: no fault, client or change of the spec
// counts as what ends a wait.
func (c *checker) stuck() []int32 {
	reaches := make([]bool, len(c.worlds))
	var queue []int32
	for id := range c.worlds {
		if c.done(&c.worlds[id]) {
			reaches[id] = true
			queue = append(queue, int32(id))
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		for _, earlier := range c.before[id] {
			if !reaches[earlier] {
				reaches[earlier] = true
				queue = append(queue, earlier)
			}
		}
	}
	var found []int32
	for id, reached := range reaches {
		if !reached {
			found = append(found, int32(id))
		}
	}
	return found
}

// loops is a world in which the operator, undisturbed, goes round in circles; -1 when there is none. Between two reconciliations all
// gossip arrives and every pod starts.
func (c *checker) loops() int32 {
	left := map[int32]int{} // passes to look at, by the world they begin in
	earlier := map[int32][]int32{}
	var queue []int32
	for id := range c.worlds {
		w := c.worlds[id]
		if w.length > 0 || !w.quiet() {
			continue
		}
		for _, next := range c.undisturbed(w) {
			if next != int32(id) {
				left[int32(id)]++
				earlier[next] = append(earlier[next], int32(id))
			}
		}
		if left[int32(id)] == 0 {
			queue = append(queue, int32(id))
		}
	}
	for len(queue) > 0 {
		id := queue[0]
		queue = queue[1:]
		delete(left, id)
		for _, before := range earlier[id] {
			if left[before]--; left[before] == 0 {
				queue = append(queue, before)
			}
		}
	}
	for id := range int32(len(c.worlds)) {
		if left[id] > 0 {
			return id
		}
	}
	return -1
}

// quiet reports whether there is no news and no pod that could start.
func (w *world) quiet() bool {
	for i := range w.nodes {
		if w.nodes[i].pod && (!w.nodes[i].up || w.set == terminating && shardOf(int8(i)) == joining) {
			return false
		}
	}
	return w.settled()
}

// undisturbed are the worlds after one whole reconciliation of the operator.
func (c *checker) undisturbed(w world) []int32 {
	var after []int32
	c.begins(&w, 0, true, func(_ string, _ bool, next world) {
		for next.length > 0 {
			command := next.pop()
			if !c.execute(&next, command, false) {
				next.abandon(command.kind)
			}
		}
		next.calm()
		if id, known := c.ids[next.normal()]; known { // not when a violation ended the visit early
			after = append(after, id)
		}
	})
	return after
}

// calm lets everything happen that happens by itself.
func (w *world) calm() {
	for i := range w.nodes {
		switch n := &w.nodes[i]; {
		case n.pod && w.set == terminating && shardOf(int8(i)) == joining:
			n.pod, n.up = false, false
		case n.pod && !n.up:
			w.start(int8(i))
		}
	}
	if w.set == terminating {
		w.set = absent
	}
	w.settle()
}
