// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/slots"
)

// Return moves the keys that a master holds of slots that another one owns to that owner, and takes the marks of the
// slots away at the former. Where both have a key, the owner's value stays, since that is the one that clients see;
// Conflicts counts those that differed. It is refused when `from` takes itself for the owner of one of the slots.
//
// Slots that are not done when the slice ends keep the mark importing; call it again. Progress.Slots are those without any
// key left.
func Return(ctx context.Context, from, to End, set slots.Set, o Options) (Progress, error) {
	o = o.withDefaults()
	end := o.Now().Add(o.Slice)
	d := &drain{
		from: from, to: to, wins: targetWins, options: o, pace: newPace(),
		limit: &limiter{now: o.Now, perSecond: o.KeysPerSecond}, alone: &sync.Mutex{}, giveUp: end.Add(o.Slice),
	}
	counts, err := from.Node.CountKeysInSlots(ctx, set)
	for err == nil && !set.IsEmpty() && o.Now().Before(end) {
		group := d.nextGroup(set, counts)
		if err = d.returnGroup(ctx, group); err != nil {
			break
		}
		d.done.Slots, set = d.done.Slots.Union(group), set.Subtract(group)
	}
	if err != nil && !errors.Is(err, errSliceOver) {
		return d.done, fmt.Errorf("returning keys of slots %s from %s to %s: %w", set, from.Node, to.Node, err)
	}
	return d.done, nil
}

func (d *drain) returnGroup(ctx context.Context, group slots.Set) error {
	// The mark makes MIGRATE, and commands behind ASKING, be executed by a node that does not own the slot.
	if err := d.from.Node.SetSlots(ctx, group, redis.SlotImporting, d.to.ID); err != nil {
		return err
	}
	if err := d.slots(ctx, group); err != nil {
		return err
	}
	return d.from.Node.SetSlots(ctx, group, redis.SlotStable, "")
}
