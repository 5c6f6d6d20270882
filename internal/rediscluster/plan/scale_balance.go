// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// SlotAssignment is what one shard receives under AssignReceive.
type SlotAssignment struct {
	// Slots is how many it owns then, 1 to slots.Count.
	Slots int
	// From are the node IDs of instances whose shards give them.
	From []string
	// To is the number of a shard that exists; nil for a new master.
	To *int
}

// share is a SlotAssignment whose destination and sources are known: shard numbers.
type share struct {
	entry int // of assignStrategies
	slots int
	to    int
	from  []int
}

// balance returns which slots each shard is to own so that the first want shards own all of
// them, no two of them differing by more than one. owned is what each shard owns now. The
// fewest slots that make it so change their owner, each of them once.
func balance(owned []slots.Set, want int) []slots.Set {
	targets := make([]int, max(len(owned), want))
	order := make([]int, want)
	for i := range order {
		order[i] = i
	}
	// Those that own most keep the slot that does not divide: it need not move then.
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(size(owned, b), size(owned, a)) })
	total := 0
	for _, set := range owned {
		total += set.Len()
	}
	for rank, shard := range order {
		targets[shard] = total / want
		if rank < total%want {
			targets[shard]++
		}
	}
	return redistribute(owned, targets)
}

// drain returns which slots each shard is to own so that the first want shards own all of
// them and none of these gives any away: the smallest are filled up first.
func drain(owned []slots.Set, want int) []slots.Set {
	targets := make([]int, max(len(owned), want))
	left := 0
	for shard := range targets {
		if shard < want {
			targets[shard] = size(owned, shard)
		} else {
			left += size(owned, shard)
		}
	}
	for ; left > 0; left-- {
		smallest := 0
		for shard := range want {
			if targets[shard] < targets[smallest] {
				smallest = shard
			}
		}
		targets[smallest]++
	}
	return redistribute(owned, targets)
}

// assign returns which slots each shard is to own when shards receive the shares, in this
// order. Each source gives in proportion to what it owns. A share counts what the destination owns
// already.
func assign(owned []slots.Set, shares []share) ([]slots.Set, error) {
	goal := slices.Clone(owned)
	for _, s := range shares {
		for len(goal) <= s.to {
			goal = append(goal, slots.Set{})
		}
		needed := s.slots - goal[s.to].Len()
		counts := make([]int, len(s.from))
		available := 0
		for k, from := range s.from {
			counts[k] = goal[from].Len()
			available += counts[k]
		}
		// A master must keep a slot: without one it has no vote and serves nobody.
		if needed > available-len(s.from) {
			return nil, fmt.Errorf(
				"spec.updateStrategy.assignStrategies[%d]: the named masters own %d slots and must keep one each, which is less than the %d that are asked of them; lower slots, or name more masters in fromReplicas", s.entry, available, needed)
		}
		for k, n := range proportional(max(needed, 0), counts) {
			given := last(goal[s.from[k]], n)
			goal[s.from[k]] = goal[s.from[k]].Subtract(given)
			goal[s.to] = goal[s.to].Union(given)
		}
	}
	return goal, nil
}

// proportional divides n in proportion to the counts, each of which keeps one: by largest
// remainder, the first of equals. n must be at most their sum less their number.
func proportional(n int, counts []int) []int {
	total := 0
	for _, c := range counts {
		total += c
	}
	parts := make([]int, len(counts))
	if total == 0 {
		return parts
	}
	order, given := make([]int, len(counts)), 0
	for i, c := range counts {
		order[i] = i
		parts[i] = n * c / total
		given += parts[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(n*counts[b]%total, n*counts[a]%total) })
	for given < n {
		for _, i := range order {
			if given < n && parts[i] < counts[i]-1 {
				parts[i]++
				given++
			}
		}
	}
	return parts
}

// redistribute moves slots from shards that own more than their target to those that own
// less, as few as possible and between as few pairs as comes naturally.
func redistribute(owned []slots.Set, targets []int) []slots.Set {
	goal := make([]slots.Set, len(targets))
	copy(goal, owned)
	from := 0
	for to := range goal {
		for goal[to].Len() < targets[to] {
			for goal[from].Len() <= targets[from] {
				from++
			}
			moved := last(goal[from], min(goal[from].Len()-targets[from], targets[to]-goal[to].Len()))
			goal[from] = goal[from].Subtract(moved)
			goal[to] = goal[to].Union(moved)
		}
	}
	return goal
}

// last is the highest n slots of a set.
func last(s slots.Set, n int) slots.Set { return s.Subtract(s.Take(s.Len() - n)) }

func size(owned []slots.Set, shard int) int {
	if shard >= len(owned) {
		return 0
	}
	return owned[shard].Len()
}
