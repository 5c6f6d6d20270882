// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"fmt"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Classic moves slots the way the cluster specification describes for every engine: the slot is marked as importing at the
// destination and as migrating at the source, its keys are moved, and both are told the new owner, the destination first.
// While a slot is open, clients of a key that moved are redirected with ASK; a command with several keys of the slot may be
// answered with TRYAGAIN, for some 10 ms.
//
// Slots that an earlier call left half done in the same direction come first. Slots that are open in another direction, and
// slots that neither end owns, are not touched and are an error. The error names the first trouble of each move; the
// progress counts in any case.
func Classic(ctx context.Context, moves []Move, o Options) (Progress, error) {
	o = o.withDefaults()
	end := o.Now().Add(o.Slice)
	limit := &limiter{now: o.Now, perSecond: o.KeysPerSecond}
	sources := map[string]chan struct{}{}
	for _, move := range moves {
		sources[move.From.ID] = make(chan struct{}, 1)
	}
	return sideBySide(ctx, moves, func(ctx context.Context, m Move) (Progress, error) {
		d := &drain{
			from: m.From, to: m.To, wins: sourceWins, options: o, pace: newPace(), limit: limit,
			alone: sources[m.From.ID], giveUp: end.Add(o.Slice),
		}
		err := d.move(ctx, m.Slots, end)
		if err != nil {
			err = fmt.Errorf("moving slots from %s to %s: %w", m.From.Node, m.To.Node, err)
		}
		return d.done, err
	})
}

// move moves the slots group by group until the slice ends.
func (d *drain) move(ctx context.Context, set slots.Set, end time.Time) error {
	source, err := d.from.Node.Describe(ctx)
	if err != nil {
		return err
	}
	destination, err := d.to.Node.Describe(ctx)
	if err != nil {
		return err
	}
	if source.Engine == redis.EngineValkey {
		d.from.Node, d.to.Node = d.from.Node.InParallel(), d.to.Node.InParallel()
	}
	work, refused := sort(source, destination, d.from.ID, d.to.ID, set)
	counts, err := d.from.Node.CountKeysInSlots(ctx, set)
	if err != nil {
		return err
	}
	if err := d.finish(ctx, work.moved); err != nil {
		return errors.Join(err, refused)
	}
	queue := func(n slots.Set) slots.Set { // half done slots first
		if work.open = work.open.Subtract(n); !work.open.IsEmpty() {
			return work.open
		}
		work.fresh = work.fresh.Subtract(n)
		return work.fresh
	}
	return errors.Join(d.moveGroups(ctx, queue, counts, end), refused)
}

// moveGroups moves slots that the source owns. The queue takes slots out and returns those that come next. The end of each
// group and the beginning of the next one share their round trips.
func (d *drain) moveGroups(ctx context.Context, queue func(slots.Set) slots.Set, counts map[uint16]int64, end time.Time) error {
	var drained slots.Set
	for {
		var next slots.Set
		if d.options.Now().Before(end) {
			next = d.nextGroup(queue(drained), counts)
		}
		if drained.IsEmpty() && next.IsEmpty() {
			return nil
		}
		if err := d.mark(ctx, drained, next); err != nil {
			return fmt.Errorf("slots %s: %w", drained.Union(next), err)
		}
		d.done.Slots = d.done.Slots.Union(drained)
		if err := d.slots(ctx, next); errors.Is(err, errSliceOver) {
			return nil
		} else if err != nil {
			return fmt.Errorf("slots %s: %w", next, err)
		}
		drained = next
	}
}

// mark hands the drained slots over and opens the next ones. The destination comes first: it must take keys before the
// source sends any, and be the owner before the source says so.
func (d *drain) mark(ctx context.Context, drained, next slots.Set) error {
	start := d.options.Now()
	owned := redis.SlotChange{Slots: drained, State: redis.SlotOwned, NodeID: d.to.ID}
	if err := d.to.Node.ChangeSlots(ctx, owned,
		redis.SlotChange{Slots: next, State: redis.SlotImporting, NodeID: d.from.ID}); err != nil {
		return err
	}
	if err := hears(ctx, d.from.Node, drained); err != nil {
		return err
	}
	if err := d.from.Node.ChangeSlots(ctx, owned,
		redis.SlotChange{Slots: next, State: redis.SlotMigrating, NodeID: d.to.ID}); err != nil {
		return err
	}
	d.pace.marked(d.options.Now().Sub(start))
	return nil
}

// heardWithin is how long the source may take to hear from the destination itself that it has lost slots.
const heardWithin = 500 * time.Millisecond

// hears waits until a former owner has heard on the cluster bus that it lost the slots, which takes a round trip. One that is
// told first gets older messages of the new owner afterwards, which do not claim the slots, and marks them as unclaimed
// (owner_not_claiming_slot in cluster.c). Redis 7.0 keeps the mark when the slots come back: any late message of whoever had them
// takes them away again, whatever its epoch, and their keys are deleted. One that does not hear in time is told all the same.
func hears(ctx context.Context, node *redis.Node, lost slots.Set) error {
	const first, longest = time.Millisecond, 20 * time.Millisecond
	var waited time.Duration
	for pause := first; !lost.IsEmpty() && waited < heardWithin; pause = min(2*pause, longest) {
		owned, err := node.OwnSlots(ctx)
		if err != nil || owned.Intersect(lost).IsEmpty() {
			return err
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
		waited += pause
	}
	return nil
}

// finish ends the move of slots that the destination owns already. Keys that the source should not have any more give way
// to those of the owner.
func (d *drain) finish(ctx context.Context, set slots.Set) error {
	d.wins = targetWins
	defer func() { d.wins = sourceWins }()
	err := d.slots(ctx, set)
	if err == nil {
		err = d.mark(ctx, set, slots.Set{})
	}
	if errors.Is(err, errSliceOver) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("slots %s: %w", set, err)
	}
	d.done.Slots = d.done.Slots.Union(set)
	return nil
}

// nextGroup is the first slots of the set that may be open at once, at least one.
func (d *drain) nextGroup(set slots.Set, counts map[uint16]int64) slots.Set {
	budget, n := d.groupBudget(), 0
	var keys float64
	for slot := range set.Slots() {
		if keys += float64(counts[slot]); n > 0 && keys > budget || n == d.pace.slots {
			break
		}
		n++
	}
	return set.Take(n)
}

// sorted are the slots of a move by what is to be done with them.
type sorted struct {
	// moved are owned by the destination already, open are half done, fresh are not begun.
	moved, open, fresh slots.Set
}

// sort looks where each slot stands. The error names the slots that the move must not touch; they are in no set.
func sort(source, destination redis.View, fromID, toID string, set slots.Set) (sorted, error) {
	var open, foreign []uint16
	for slot := range set.Slots() {
		to, migrating := source.Migrating[slot]
		from, importing := destination.Importing[slot]
		switch {
		case migrating && to != toID || importing && from != fromID:
			foreign = append(foreign, slot)
		case migrating || importing:
			open = append(open, slot)
		}
	}
	moved := set.Intersect(destination.Slots)
	lost := set.Subtract(source.Slots).Subtract(moved)
	var errs []error
	if !lost.IsEmpty() {
		errs = append(errs, fmt.Errorf("slots %s: neither end owns them", lost))
	}
	if len(foreign) > 0 {
		errs = append(errs, fmt.Errorf("slots %s: they are open to or from another node, which must be finished first",
			slots.Of(foreign...)))
	}
	usable := set.Subtract(lost).Subtract(slots.Of(foreign...))
	moved = usable.Intersect(moved)
	half := usable.Intersect(slots.Of(open...)).Subtract(moved)
	return sorted{moved: moved, open: half, fresh: usable.Subtract(half).Subtract(moved)}, errors.Join(errs...)
}
