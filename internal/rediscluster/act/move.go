// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// moveSlots moves slots for a while. What it does not come to is decided again, and so are moves of which an end is not the
// node that was observed.
func (a *Actor) moveSlots(ctx context.Context, s Subject, step plan.MoveSlots) (reshard.Progress, error) {
	nodes, failed := a.ends(ctx, s, step)
	var moves []reshard.Move
	var errs []error
	for _, move := range step.Moves {
		if err := cmp.Or(failed[move.From], failed[move.To]); err != nil {
			errs = append(errs, err)
			continue
		}
		moves = append(moves, reshard.Move{From: end(nodes, move.From), To: end(nodes, move.To), Slots: move.Slots})
	}
	options := reshard.Options{Pipeline: s.Pipeline, KeysPerSecond: int(s.Cluster.Spec.UpdateStrategy.KeysPerSecond)}
	run := reshard.Classic
	if step.Atomic {
		run = reshard.Atomic
	}
	progress, err := run(ctx, moves, options)
	return progress, cmp.Or(append(errs, err)...)
}

// ends connects to the masters that slots move between, and says which are not identified.
func (a *Actor) ends(ctx context.Context, s Subject, step plan.MoveSlots) (map[plan.Target]*redis.Node, map[plan.Target]error) {
	var targets []plan.Target
	nodes := map[plan.Target]*redis.Node{}
	for _, move := range step.Moves {
		for _, t := range []plan.Target{move.From, move.To} {
			if !slices.Contains(targets, t) {
				targets = append(targets, t)
				nodes[t] = a.node(s, t)
			}
		}
	}
	return nodes, a.identify(ctx, s, targets)
}

func end(nodes map[plan.Target]*redis.Node, t plan.Target) reshard.End {
	port := v1alpha1.PortRedis
	if t.MovesBySecondPort {
		port = v1alpha1.PortRedisTLS
	}
	return reshard.End{Node: nodes[t], ID: t.NodeID, IP: t.IP, Port: int(port)}
}

// copyFunctions loads the function libraries of one master into new ones.
func (a *Actor) copyFunctions(ctx context.Context, s Subject, step plan.CopyFunctions) error {
	from, err := a.identified(ctx, s, step.From)
	if err != nil {
		return err
	}
	functions, err := from.Functions(ctx)
	if err != nil {
		return fmt.Errorf("read the functions of %s: %w", step.From.Pod, err)
	}
	return each(ctx, step.To, func(ctx context.Context, t plan.Target) error {
		to, err := a.identified(ctx, s, t)
		if err != nil {
			return err
		}
		if err := to.RestoreFunctions(ctx, functions); err != nil {
			return fmt.Errorf("copy the functions of %s to %s: %w", step.From.Pod, t.Pod, err)
		}
		return nil
	})
}

// stabilizeSlots takes marks of moving off slots.
func (a *Actor) stabilizeSlots(ctx context.Context, s Subject, step plan.StabilizeSlots) error {
	return each(ctx, step.Stabilizations, func(ctx context.Context, closing plan.Stabilization) error {
		node, err := a.identified(ctx, s, closing.On)
		if err != nil {
			return err
		}
		if err := node.SetSlots(ctx, closing.Slots, redis.SlotStable, ""); err != nil {
			return fmt.Errorf("close slots %s at %s: %w", closing.Slots, closing.On.Pod, err)
		}
		return nil
	})
}

// reclaimSlots tells masters that slots are their own, as long as they think of them what was seen. One that has begun to receive a slot
// since would take it with a new epoch, from whoever has its keys.
func (a *Actor) reclaimSlots(ctx context.Context, s Subject, step plan.ReclaimSlots) error {
	return each(ctx, step.Claims, func(ctx context.Context, claim plan.Claim) error {
		node, err := a.identified(ctx, s, claim.On)
		if err != nil {
			return err
		}
		view, err := node.Table(ctx)
		if err != nil {
			return fmt.Errorf("look at %s before it is told that slots %s are its own: %w", claim.On.Pod, claim.Slots, err)
		}
		left := stillDisowned(view, claim) // if there are none, it is told nothing
		if err := node.SetSlots(ctx, left, redis.SlotOwned, claim.On.NodeID); err != nil {
			return fmt.Errorf("tell %s that slots %s are its own: %w", claim.On.Pod, left, err)
		}
		return nil
	})
}

// stillDisowned are the slots of a claim that the master does not own, does not receive, and takes the same one for the owner of.
func stillDisowned(view redis.View, claim plan.Claim) slots.Set {
	left := claim.Slots.Subtract(view.Slots).Subtract(slots.Of(slices.Collect(maps.Keys(view.Importing))...))
	for _, p := range view.Peers {
		left = left.Subtract(p.Slots.Subtract(claim.Owners[p.ID]))
	}
	for id, seen := range claim.Owners {
		is, _ := view.Peer(id)
		left = left.Subtract(seen.Subtract(is.Slots))
	}
	return left
}

// repairSlots tells the destination of open slots who owns them, and then the owner who
// receives them. NODE with another node's ID binds a slot, and keeps the mark importing.
func (a *Actor) repairSlots(ctx context.Context, s Subject, step plan.RepairSlots) error {
	return each(ctx, step.Moves, func(ctx context.Context, move plan.Move) error {
		from, err := a.identified(ctx, s, move.From)
		if err != nil {
			return err
		}
		to, err := a.identified(ctx, s, move.To)
		if err != nil {
			return err
		}
		for _, state := range []redis.SlotState{redis.SlotImporting, redis.SlotOwned} {
			if err := to.SetSlots(ctx, move.Slots, state, move.From.NodeID); err != nil {
				return fmt.Errorf("mark slots %s at %s: %w", move.Slots, move.To.Pod, err)
			}
		}
		if err := from.SetSlots(ctx, move.Slots, redis.SlotMigrating, move.To.NodeID); err != nil {
			return fmt.Errorf("mark slots %s at %s: %w", move.Slots, move.From.Pod, err)
		}
		return nil
	})
}

// cancelJobs stops atomic migrations. It may come too late: somebody may have let slots be taken over since they were looked at. So
// clients of a source wait until it is known who owns the slots.
func (a *Actor) cancelJobs(ctx context.Context, s Subject, step plan.CancelJobs) error {
	return each(ctx, step.On, func(ctx context.Context, on plan.Target) error {
		node, err := a.identified(ctx, s, on)
		if err != nil {
			return err
		}
		if len(step.Takers) > 0 {
			if err := node.PauseWrites(ctx, importEndsWithin); err != nil {
				return fmt.Errorf("have clients of %s wait: %w", on.Pod, err)
			}
		}
		if err := node.CancelSlotMigrations(ctx); err != nil {
			return fmt.Errorf("cancel the migrations of %s: %w", on.Pod, err)
		}
		if len(step.Takers) == 0 || !a.agreed(ctx, s, node, on, step.Takers) {
			return nil // the pause ends by itself
		}
		if err := node.ResumeWrites(ctx); err != nil {
			return fmt.Errorf("let clients of %s write again: %w", on.Pod, err)
		}
		return nil
	})
}

const (
	// importEndsWithin is how long clients wait at most for the end of a migration: as long as the engine has them wait by itself.
	importEndsWithin = 2 * time.Second
	importPoll       = 5 * time.Millisecond
)

// agreed waits until no taker imports anything from a source any more, and the source knows what they took. False: it is not known in time.
func (a *Actor) agreed(ctx context.Context, s Subject, source *redis.Node, on plan.Target, takers []plan.Target) bool {
	ctx, cancel := context.WithTimeout(ctx, importEndsWithin)
	defer cancel()
	for ctx.Err() == nil {
		if a.agree(ctx, s, source, on, takers) {
			return true
		}
		select {
		case <-ctx.Done():
		case <-time.After(importPoll):
		}
	}
	return false
}

// agree reports whether that is so now, by what all of them say.
func (a *Actor) agree(ctx context.Context, s Subject, source *redis.Node, on plan.Target, takers []plan.Target) bool {
	var taken slots.Set
	for _, taker := range takers {
		node, err := a.identified(ctx, s, taker)
		if err != nil {
			return false
		}
		jobs, err := node.SlotMigrations(ctx, slots.AtomicSource)
		if err != nil {
			return false
		}
		for _, job := range jobs {
			if job.SourceID == on.NodeID && job.Outcome == redis.SlotMigrationUnderWay {
				return false
			}
		}
		view, err := node.Table(ctx) // after that: nothing is taken any more
		if err != nil {
			return false
		}
		taken = taken.Union(view.Slots)
	}
	view, err := source.Table(ctx)
	return err == nil && view.Slots.Intersect(taken).IsEmpty()
}

// switchover makes a replica that can write to its disk the master of its shard, and loses no write. Clients wait meanwhile,
// and asked a second time Redis would begin anew: so it is watched, which takes milliseconds.
func (a *Actor) switchover(ctx context.Context, s Subject, step plan.Switchover) error {
	master, err := a.identified(ctx, s, step.Master)
	if err != nil {
		return err
	}
	replica, err := a.identified(ctx, s, step.Replica)
	if err != nil {
		return err
	}
	if err := replica.SaveConfig(ctx); err != nil {
		return fmt.Errorf("%s cannot take over: a master writes nodes.conf, and ends if it cannot; make room on its volume, or a larger one "+
			"(spec.storage.size): %w", step.Replica.Pod, err)
	}
	end, err := master.SuppressPings(ctx)
	if end != nil {
		// Where this does not happen, planConfig does it in the next reconciliation.
		defer func() { _ = end(context.WithoutCancel(ctx)) }()
	}
	if err != nil {
		return fmt.Errorf("prepare %s for switching over: %w", step.Master.Pod, err)
	}
	if err := replica.Failover(ctx, redis.FailoverDefault); err != nil {
		return fmt.Errorf("switch over to %s: %w", step.Replica.Pod, err)
	}
	a.watch(ctx, replica)
	return nil
}

const switchoverPoll = 20 * time.Millisecond

// watch waits until a replica is a master, or the time that this may take is over: the next reconciliation
// sees what has become of it.
func (a *Actor) watch(ctx context.Context, node *redis.Node) {
	ctx, cancel := context.WithTimeout(ctx, a.SwitchoverWithin)
	defer cancel()
	for ctx.Err() == nil {
		if view, err := node.Describe(ctx); err == nil && view.Role == redis.RoleMaster {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(switchoverPoll):
		}
	}
}
