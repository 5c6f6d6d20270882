// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// errSliceOver ends the work on a slot that has more keys than the slice has time for.
var errSliceOver = errors.New("the time slice is over")

// winner says whose value stays when both ends have a key.
type winner int

const (
	// sourceWins is for slots that the source owns: it serves each key that it has, so its value is the one that
	// clients see. A copy at the target is left over from a MIGRATE whose answer was lost.
	sourceWins winner = iota
	// targetWins is for unowned keys of a slot that the target owns.
	targetWins
)

// drain moves keys from one end to the other.
type drain struct {
	from, to End
	wins     winner
	options  Options
	pace     *pace
	limit    *limiter
	// alone is held for a round trip of MIGRATE by one of the moves from a source: each of them blocks it. It is a channel of
	// one place, and no mutex, because testing/synctest sees who waits for a channel.
	alone chan struct{}
	// giveUp is when a slot that is not done is left to the next call.
	giveUp time.Time
	done   Progress
}

// mostAtOnce is how many keys of one slot are listed at once, mostListed how many of several together: names of 100 bytes are
// an ordinary answer.
const mostAtOnce, mostListed = 2000, 6000

// listable is as many of the slots as have no more keys than are listed at once, and at least one.
func listable(set slots.Set, counts map[uint16]int64) slots.Set {
	n, keys := 0, int64(0)
	for slot := range set.Slots() {
		if keys += min(counts[slot], mostAtOnce); n > 0 && keys > mostListed {
			break
		}
		n++
	}
	return set.Take(n)
}

// slots moves the keys of the slots, which must be open, until the source holds none. On errSliceOver some are left.
func (d *drain) slots(ctx context.Context, set slots.Set) error {
	emptyLists := 0
	for {
		counts, err := d.from.Node.CountKeysInSlots(ctx, set)
		if err != nil || len(counts) == 0 {
			return err
		}
		set = setOf(counts)
		keys, err := d.from.Node.KeysInSlots(ctx, listable(set, counts), mostAtOnce)
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			// The last ones may have expired between the two commands, but not twice.
			if emptyLists++; emptyLists > 1 {
				return fmt.Errorf("%s holds keys of slots %s that it does not list: are they in another database than 0?",
					d.from.Node, set)
			}
			continue
		}
		batches, err := d.batches(ctx, keys)
		if err != nil {
			return err
		}
		for len(batches) > 0 {
			if d.options.Now().After(d.giveUp) {
				return errSliceOver
			}
			n := d.fitting(batches)
			if err := d.send(ctx, batches[:n]); err != nil {
				return err
			}
			batches = batches[n:]
		}
	}
}

// batches cuts the keys of each slot into what one MIGRATE may carry.
func (d *drain) batches(ctx context.Context, keys map[uint16][]string) ([]redis.MigrateBatch, error) {
	order := setOf(keys)
	var all []string
	for slot := range order.Slots() {
		all = append(all, keys[slot]...)
	}
	sizes, err := d.from.Node.MemoryUsage(ctx, all, d.wins == targetWins)
	if err != nil {
		return nil, err
	}
	var batches []redis.MigrateBatch
	for slot := range order.Slots() {
		last := redis.MigrateBatch{Slot: slot}
		for i, key := range keys[slot] {
			if len(last.Keys) > 0 && (len(last.Keys) == d.options.Pipeline || last.Bytes+sizes[i] > batchBytes) {
				batches = append(batches, last)
				last = redis.MigrateBatch{Slot: slot}
			}
			last.Keys, last.Bytes = append(last.Keys, key), last.Bytes+sizes[i]
		}
		batches = append(batches, last)
		sizes = sizes[len(keys[slot]):]
	}
	return batches, nil
}

// budget is the cost that one round trip may have.
func (d *drain) budget() float64 {
	if d.limit.perSecond > 0 { // evenly: no more than one MIGRATE at once
		return min(d.pace.budget(), float64(d.options.Pipeline))
	}
	return d.pace.budget()
}

// groupBudget is the cost that a group of slots may have.
func (d *drain) groupBudget() float64 {
	if d.limit.perSecond > 0 {
		return d.budget()
	}
	return d.pace.groupBudget()
}

// fitting is how many of the batches go into one round trip, at least one.
func (d *drain) fitting(batches []redis.MigrateBatch) int {
	var total float64
	for i, batch := range batches {
		total += cost(len(batch.Keys), batch.Bytes)
		if i > 0 && total > d.budget() {
			return i
		}
	}
	return len(batches)
}

// send moves the batches in one round trip, and those again that met a key of the same name.
func (d *drain) send(ctx context.Context, batches []redis.MigrateBatch) error {
	keys, bytes := 0, int64(0)
	for _, batch := range batches {
		keys, bytes = keys+len(batch.Keys), bytes+batch.Bytes
	}
	if err := d.limit.wait(ctx, keys); err != nil {
		return err
	}
	results, err := d.migrate(ctx, batches, cost(keys, bytes))
	if err != nil {
		return err
	}
	for i, err := range results {
		if errors.Is(err, redis.ErrBusyKey) {
			err = d.resolve(ctx, batches[i])
		}
		if err != nil {
			return err
		}
	}
	d.done.Keys, d.done.Bytes = d.done.Keys+int64(keys), d.done.Bytes+bytes
	return nil
}

func (d *drain) migrate(ctx context.Context, batches []redis.MigrateBatch, cost float64) ([]error, error) {
	d.alone <- struct{}{}
	defer func() { <-d.alone }()
	start := d.options.Now()
	results, err := d.from.Node.Migrate(ctx, d.to.target(), batches)
	took := d.options.Now().Sub(start)
	d.done.LongestBlock = max(d.done.LongestBlock, took)
	d.pace.moved(cost, took)
	return results, err
}

// resolve settles a batch of which keys exist at both ends.
func (d *drain) resolve(ctx context.Context, batch redis.MigrateBatch) error {
	var both []string
	var over error
	for i, key := range batch.Keys {
		if i > 0 && d.options.Now().After(d.giveUp) { // the others are met again
			batch.Keys, over = batch.Keys[:i], errSliceOver
			break
		}
		here, err := d.from.Node.Fingerprint(ctx, key)
		if err != nil {
			return err
		}
		if here == "" { // it moved
			continue
		}
		there, err := d.to.Node.Fingerprint(ctx, key)
		if err != nil {
			return err
		}
		if there == "" {
			continue
		}
		both = append(both, key)
		if here != there {
			d.done.Conflicts++
		}
	}
	if d.wins == targetWins {
		return cmp.Or(d.from.Node.Discard(ctx, both), over) // what is left is moved when the slot is looked at again
	}
	batch.Replace = true
	results, err := d.migrate(ctx, []redis.MigrateBatch{batch}, cost(len(batch.Keys), batch.Bytes))
	if err != nil {
		return err
	}
	return cmp.Or(results[0], over)
}

// setOf is the slots that the map has.
func setOf[V any](m map[uint16]V) slots.Set { return slots.Of(slices.Collect(maps.Keys(m))...) }
