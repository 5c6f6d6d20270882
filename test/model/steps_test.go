// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"

	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// programs are the commands that package act sends for a step. Where it sends some at the same time, there is a program for
// each order.
func (o *operator) programs(w *world, step plan.Step) [][]command {
	switch step := step.(type) {
	case plan.None, plan.Wait, plan.Hold, plan.Stall, plan.RolloutWait, plan.RecordGoal, plan.RecordNodes, plan.RecordKeys,
		plan.RecordHibernation, plan.Sleep, plan.RewriteAOF, plan.SetShards, plan.TakeTurn:
		return [][]command{nil}
	case plan.ApplyChildren:
		return [][]command{{{kind: createSet}}}
	case plan.RemoveShards:
		return [][]command{{{kind: removeSet}}}
	case plan.MoveSlots:
		if open := o.opened(w); o.mutation == closeInstead && len(open) > 0 {
			return orders(open)
		}
		return o.moves(step)
	case plan.StabilizeSlots:
		var closings []command
		for _, c := range step.Stabilizations {
			closings = append(closings, command{kind: stable, at: number(c.On.NodeID), owned: o.mask(c.Slots)})
		}
		return orders(closings)
	case plan.ReclaimSlots:
		if o.mutation == leaveDisowned {
			return [][]command{nil}
		}
		var claims []command
		for _, c := range step.Claims {
			claims = append(claims, command{kind: claim, at: number(c.On.NodeID), owned: o.mask(c.Slots)})
		}
		return orders(claims)
	case plan.RepairSlots:
		var program []command
		for _, m := range step.Moves {
			from, to := number(m.From.NodeID), number(m.To.NodeID)
			program = append(program, o.reopen(from, to, o.mask(m.Slots))...)
		}
		return [][]command{program}
	case plan.Meet:
		return [][]command{meetings(step)}
	case plan.Forget:
		c := command{kind: forget}
		for _, id := range step.NodeIDs {
			c.next |= bit(number(id))
		}
		for _, on := range step.On {
			c.on |= bit(number(on.NodeID))
		}
		return [][]command{{c}}
	case plan.Replicate:
		var program []command
		for _, r := range step.Replications {
			program = append(program, command{kind: follow, at: number(r.Replica.NodeID), to: number(r.MasterID)})
		}
		return [][]command{program}
	case plan.BumpEpoch:
		return [][]command{{{kind: bump, at: number(step.On.NodeID)}}}
	case plan.Recreate:
		if o.mutation == leaveFollowing {
			return [][]command{nil}
		}
		return [][]command{{{kind: renew, at: int8(slices.Index(podNames[:], step.Pod))}}}
	case plan.AssignSlots:
		var program []command
		for _, a := range step.Assignments {
			program = append(program, command{kind: addSlots, at: number(a.To.NodeID), owned: o.mask(a.Slots)})
		}
		return [][]command{program}
	case plan.Promote:
		return [][]command{{{kind: failover, at: number(step.Replica.NodeID)}}}
	case plan.Switchover:
		return [][]command{{{kind: failover, at: number(step.Replica.NodeID)}}}
	default:
		panic(fmt.Sprintf("the model does not know step %s: %s", step.Name(), step.Why()))
	}
}

func (o *operator) moves(step plan.MoveSlots) [][]command {
	var begins []command
	for _, m := range step.Moves {
		begins = append(begins, command{kind: begin, from: number(m.From.NodeID), to: number(m.To.NodeID), owned: o.mask(m.Slots)})
	}
	return orders(begins)
}

// opened are commands that close every open slot.
func (o *operator) opened(w *world) []command {
	var closings []command
	for _, i := range all() {
		if n := &w.nodes[i]; n.up && n.master() && n.open() != 0 {
			closings = append(closings, command{kind: stable, at: i, owned: n.open()})
		}
	}
	return closings
}

// meetings are grouped by the instance that is met.
func meetings(step plan.Meet) []command {
	var program []command
	for _, m := range step.Meetings {
		to, from := number(m.To.NodeID), number(m.From.NodeID)
		i := slices.IndexFunc(program, func(c command) bool { return c.at == to })
		if i < 0 {
			i = len(program)
			program = append(program, command{kind: meet, at: to})
		}
		program[i].on |= bit(from)
	}
	return program
}

// orders are all orders of a few commands.
func orders(commands []command) [][]command {
	if len(commands) <= 1 {
		return [][]command{commands}
	}
	var all [][]command
	for i, first := range commands {
		for _, rest := range orders(slices.Concat(commands[:i], commands[i+1:])) {
			all = append(all, append([]command{first}, rest...))
		}
	}
	return all
}

// reopen makes a destination import from the owner of now, and the owner send clients there. The destination comes first, and keeps
// its mark all the time: without one, and with nobody in its table that owns the slot, it would claim the slot when it
// restarts, lose it to the owner's next ping, and drop what has moved (verifyClusterConfigWithData, delKeysInSlot).
func (o *operator) reopen(from, to int8, mask uint8) []command {
	mark := command{kind: change, at: from, from: from, to: to, next: mask}
	if o.mutation == reopenByStable {
		return []command{mark, {kind: stable, at: to, owned: mask}}
	}
	return []command{{kind: bind, at: to, from: from, to: to, owned: mask}, mark}
}
