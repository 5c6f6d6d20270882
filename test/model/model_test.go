// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// newChecker checks a cluster in which slots 5459 and 5460, of shard 0, are the joining shard's share.
func newChecker() *checker {
	c := &checker{restless: []int8{0, 1, 6, 7}, whispers: true, unownedKeys: true}
	c.sets = map[uint8]slots.Set{}
	c.blocks = [blocks]slots.Set{slots.Of(5459), slots.Of(5460), slots.Range(0, 5458), slots.Range(5461, 10922), slots.Range(10923, 16383)}
	c.assignments = []plan.SlotAssignment{{Slots: moving, From: []string{nodeIDs[0], nodeIDs[1]}}}
	return c
}

// scaleOut is a cluster of three shards that is asked for the fourth.
func scaleOut(b budget) world {
	w := steady(shards-1, [moving]int8{0, 0})
	w.wanted, w.left = shards, b
	return w
}

// scaleIn is a cluster of four shards of which the last is to go.
func scaleIn(b budget) world {
	w := steady(shards, [moving]int8{joining * replicas, joining * replicas})
	w.wanted, w.left = shards-1, b
	return w
}

// emptied is a cluster whose first slot has no keys.
func emptied(w world) world {
	w.alive[0] = [keysInSlot]bool{}
	for i := range w.nodes {
		w.nodes[i].data[0] = [keysInSlot]copied{}
	}
	return w
}

// TestModel visits all that can happen within small budgets. MODEL_DEPTH=2 visits more: some minutes.
func TestModel(t *testing.T) {
	budgets := []budget{{writes: 2}, {changes: 2}, {faults: 1, writes: 1}, {faults: 1, changes: 1},
		{stops: 1, changes: 1, writes: 1}, {stops: 1, changes: 1}}
	if os.Getenv("MODEL_DEPTH") == "2" {
		budgets = append(budgets, budget{faults: 2}, budget{faults: 1, writes: 1, changes: 1}, budget{faults: 2, writes: 1},
			budget{faults: 2, changes: 1}, budget{faults: 1, changes: 1, stops: 1})
	}
	for _, b := range budgets {
		for _, e := range []engine{{}, {marksReplicated: true}} {
			what := fmt.Sprintf("marks replicated %t, %d faults, %d writes, %d changes, %d stops", e.marksReplicated, b.faults, b.writes,
				b.changes, b.stops)
			t.Run("out, "+what, func(t *testing.T) { check(t, e, scaleOut(b)) })
			t.Run("in, "+what, func(t *testing.T) { check(t, e, scaleIn(b)) })
			if b.stops > 0 && b.writes == 0 { // only slots without keys are given away
				t.Run("out, without keys, "+what, func(t *testing.T) { check(t, e, emptied(scaleOut(b))) })
				t.Run("in, without keys, "+what, func(t *testing.T) { check(t, e, emptied(scaleIn(b))) })
			}
		}
	}
}

func check(t *testing.T, e engine, start world) {
	t.Helper()
	c := newChecker()
	c.engine, c.valkey = e, e.marksReplicated
	if v := c.explore(start); v != nil {
		t.Fatalf("%s:\n%s", v.rule, c.trace(v.id))
	}
	t.Logf("%d states, %d transitions, %d decisions", len(c.worlds), c.steps, len(c.decisions))
	stuck, shown := c.stuck(), map[string]bool{}
	for _, id := range stuck { // one of each sort
		w := c.worlds[id]
		name, _, _ := strings.Cut(c.decide(&w, 0).name, ":")
		if w.length == 0 && w.quiet() && !shown[name] {
			shown[name] = true
			t.Errorf("%d states lead nowhere, such as:\n%s", len(stuck), c.trace(id))
		}
	}
	if len(stuck) > 0 && len(shown) == 0 {
		t.Errorf("%d states lead nowhere, such as:\n%s", len(stuck), c.trace(stuck[0]))
	}
	if id := c.loops(); id >= 0 {
		t.Errorf("the operator goes round in circles:\n%s", c.trace(id))
	}
}

// TestMutations shows that mistakes are found: each of these breaks a rule, or leads nowhere.
func TestMutations(t *testing.T) {
	for name, tt := range map[string]struct {
		start    world
		mutation func(*checker)
	}{
		"the former owner hears first": {scaleIn(budget{}), func(c *checker) { c.sourceFirst = true }},
		"open slots are closed": {
			scaleIn(budget{faults: 1}), func(c *checker) { c.mutation = closeInstead }},
		"marks are taken off after a failover, and a destination restarts": {
			scaleIn(budget{faults: 2}), func(c *checker) { c.mutation = reopenByStable }},
		"instances that follow another shard's master are left alone": {
			scaleOut(budget{faults: 1}), func(c *checker) { c.mutation = leaveFollowing }},
		"slots that nobody claims are left so": {
			scaleOut(budget{stops: 1, changes: 1, writes: 1}), func(c *checker) { c.mutation = leaveDisowned }},
		"news of a new owner stays on the way while it is replaced": {scaleIn(budget{changes: 2}), func(c *checker) { c.slowBus = true }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newChecker()
			tt.mutation(c)
			if v := c.explore(tt.start); v != nil {
				t.Logf("found after %d states: %s", len(c.worlds), v.rule)
				return
			}
			stuck := c.stuck()
			if len(stuck) == 0 {
				t.Fatalf("not found in %d states", len(c.worlds))
			}
			w := c.worlds[stuck[len(stuck)-1]]
			t.Logf("%d of %d states lead nowhere, such as one where the operator decides %s", len(stuck), len(c.worlds), c.decide(&w, 0).name)
		})
	}
}
