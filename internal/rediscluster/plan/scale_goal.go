// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// errUncertain means that it cannot be said now which slots are to move.
var errUncertain = errors.New("not every slot has one owner that answers")

// goal is which shard is to own which slots, by the desire of now: the recorded one, a new
// one when something is to be moved, or nil. The error says what the spec asks for that
// cannot be.
func (in input) goal() (*snapshot.Goal, error) {
	if in.snap.Hibernated != nil {
		return nil, nil // no slot moves before it is awake
	}
	recorded := in.snap.Goal
	fingerprint := in.fingerprint()
	if recorded != nil && recorded.For == fingerprint {
		if in.reached(recorded) {
			return nil, nil
		}
		return recorded, nil
	}
	if recorded != nil && recorded.For == byLoad(fingerprint) {
		if in.reached(recorded) || !in.desired.FollowsLoad {
			return nil, nil // nobody asks for it any more, and slots stay where they are
		}
		return recorded, nil
	}
	if !ownedOnce(in.snap) {
		return nil, errUncertain
	}
	owned := in.owned()
	want := len(in.desired.Topology)
	first := 0 // the first shard that owns nothing: those from it on are new
	for first < len(owned) && !owned[first].IsEmpty() {
		first++
	}
	if recorded != nil {
		first = min(first, recorded.From)
	}
	goal := &snapshot.Goal{For: fingerprint, From: first, Shards: owned}
	steady := recorded == nil && first >= want && len(owned) <= want // the number of shards asks for nothing
	switch {
	case in.desired.AssignReceive:
		shares, err := in.shares(first, owned)
		if err != nil {
			return nil, err
		}
		if want <= first {
			goal.Shards = drain(owned, want)
		}
		if goal.Shards, err = assign(goal.Shards, shares); err != nil {
			return nil, err
		}
	case !steady || in.snap.SlotsAssigned:
		goal.Shards = balance(owned, want)
	}
	if in.reached(goal) {
		return nil, nil
	}
	return goal, nil
}

// fingerprint is what a goal is computed for.
func (in input) fingerprint() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d shards", len(in.desired.Topology))
	if in.desired.AssignReceive {
		for _, assignment := range in.desired.SlotAssignments {
			fmt.Fprintf(&b, ", %d from %s", assignment.Slots, strings.Join(assignment.From, "+"))
			if assignment.To != nil {
				fmt.Fprintf(&b, " to shard %d", *assignment.To)
			}
		}
	}
	return b.String()
}

// owned is what each shard owns, by shard number, up to the last that owns anything.
func (in input) owned() []slots.Set {
	var owned []slots.Set
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Slots.IsEmpty() {
			continue
		}
		for len(owned) <= pod.Shard {
			owned = append(owned, slots.Set{})
		}
		owned[pod.Shard] = owned[pod.Shard].Union(pod.Redis.Slots)
	}
	return owned
}

// twoMasters reports whether some shard has two masters that own slots.
func (in input) twoMasters() bool {
	masters := in.snap.Masters()
	return slices.ContainsFunc(in.snap.Reachable(), func(pod *snapshot.Instance) bool {
		return !pod.Redis.Slots.IsEmpty() && masters[pod.Shard] != pod
	})
}

// shares resolves what shards are to receive: new masters, which are those from first on, and
// shards that lack slots of what an entry says.
func (in input) shares(first int, owned []slots.Set) ([]share, error) {
	const at = "spec.updateStrategy.assignStrategies"
	joining := max(len(in.desired.Topology)-first, 0)
	news, destinations := 0, map[int]int{} // entries by the shard that receives
	for i, assignment := range in.desired.SlotAssignments {
		if assignment.To == nil {
			news++
		} else {
			destinations[*assignment.To] = i
		}
	}
	if joining > 0 && joining != news {
		return nil, fmt.Errorf(
			"%s: %d entries for %d new masters; each entry without toShard says what one new master receives, so write %d of them, or set type to AutoReceive", at, news, joining, joining)
	}
	var shares []share
	to := first
	for i, assignment := range in.desired.SlotAssignments {
		s := share{entry: i, slots: assignment.Slots, to: to}
		switch {
		case assignment.To != nil && *assignment.To >= first:
			return nil, fmt.Errorf(
				"%s[%d].toShard: shard %d owns no slots yet; leave toShard out for a shard that joins, or name one of the %d shards that own slots", at,
				i, *assignment.To, first)
		case assignment.To != nil:
			s.to = *assignment.To
		case joining == 0:
			continue // its master has joined, or none does
		default:
			to++
		}
		if assignment.To != nil && size(owned, s.to) >= s.slots {
			continue
		}
		for _, id := range assignment.From {
			pod := in.snap.ByNodeID(id)
			if pod == nil || pod.Shard >= first {
				return nil, fmt.Errorf("%s[%d].fromReplicas: %s is no instance of a shard that can give slots; the masters are %s", at, i, id,
					list(in.masterIDs(first)))
			}
			if other, receives := destinations[pod.Shard]; receives {
				return nil, fmt.Errorf("%s[%d].fromReplicas: %s is of shard %d, which receives slots by entry %d; a shard does one of both", at, i, id,
					pod.Shard, other)
			}
			if !slices.Contains(s.from, pod.Shard) {
				s.from = append(s.from, pod.Shard)
			}
		}
		shares = append(shares, s)
	}
	return shares, nil
}

// slotsAssigned reports whether the slots are distributed by AssignReceive after this reconciliation: that lasts
// until they are balanced.
func (in input) slotsAssigned() bool {
	if len(in.problems) > 0 || in.desired.Paused || in.snap.Hibernated != nil {
		return in.snap.SlotsAssigned // what is asked for is not known, or not yet in force
	}
	if in.desired.AssignReceive || !in.snap.SlotsAssigned {
		return in.desired.AssignReceive
	}
	goal, err := in.goal()
	return goal != nil || err != nil
}

func (in input) masterIDs(first int) []string {
	var ids []string
	for shard, master := range in.snap.Masters() {
		if shard < first {
			ids = append(ids, master.Redis.NodeID)
		}
	}
	slices.Sort(ids)
	return ids
}

// reached reports whether every slot is where the goal wants it.
func (in input) reached(goal *snapshot.Goal) bool {
	masters := in.snap.Masters()
	for shard, set := range goal.Shards {
		if set.IsEmpty() {
			continue
		}
		if master := masters[shard]; master == nil || !set.Subtract(master.Redis.Slots).IsEmpty() {
			return false
		}
	}
	return true
}

// moves are the slots that are not where the goal wants them, by owner and future owner.
// Slots of a master that is not known are left out.
func (in input) moves(goal *snapshot.Goal) []Move {
	masters := in.masters()
	var moves []Move
	for _, owner := range in.snap.Reachable() {
		for shard, set := range goal.Shards {
			to := masters[shard]
			moving := owner.Redis.Slots.Intersect(set)
			if to == nil || to == owner || moving.IsEmpty() {
				continue
			}
			moves = append(moves, Move{From: target(owner), To: target(to), Slots: moving})
		}
	}
	return sorted(moves)
}

func sorted(moves []Move) []Move {
	slices.SortFunc(moves, func(a, b Move) int {
		return cmp.Or(cmp.Compare(a.From.Pod, b.From.Pod), cmp.Compare(a.To.Pod, b.To.Pod))
	})
	return moves
}
