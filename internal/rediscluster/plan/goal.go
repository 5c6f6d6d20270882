// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// errUncertain says that it cannot be said now which slots are to move.
var errUncertain = errors.New("not every slot has one owner that answers")

// goal is which shard is to own which slots, by the desire of now: the recorded one, a new
// one when something is to be moved, or nil. The error says what the spec asks for that
// cannot be.
func (in input) goal() (*snapshot.Goal, error) {
	recorded := in.snap.Goal
	fingerprint := in.fingerprint()
	if recorded != nil && recorded.For == fingerprint {
		if in.reached(recorded) {
			return nil, nil
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
	strays := in.strays()
	if recorded == nil && first >= want && len(owned) <= want && !strays {
		return nil, nil
	}
	goal := &snapshot.Goal{For: fingerprint, From: first}
	switch {
	case recorded == nil && first >= want && len(owned) <= want:
		goal.Shards = owned // each shard's slots come together at its master
	case !in.desired.AssignReceive:
		goal.Shards = balance(owned, want)
	case want > first:
		shares, err := in.shares(first)
		if err != nil {
			return nil, err
		}
		if goal.Shards, err = assign(owned, first, shares); err != nil {
			return nil, err
		}
	default:
		goal.Shards = drain(owned, want)
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
		for _, gift := range in.desired.Gifts {
			fmt.Fprintf(&b, ", %d from %s", gift.Slots, strings.Join(gift.From, "+"))
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

// strays says that some shard has two masters that own slots.
func (in input) strays() bool {
	masters := in.snap.Masters()
	return slices.ContainsFunc(in.snap.Reachable(), func(pod *snapshot.Instance) bool {
		return !pod.Redis.Slots.IsEmpty() && masters[pod.Shard] != pod
	})
}

// shares resolves what the new masters from first on are to receive.
func (in input) shares(first int) ([]share, error) {
	const at = "spec.updateStrategy.assignStrategies"
	joining := len(in.desired.Topology) - first
	if joining != len(in.desired.Gifts) {
		return nil, fmt.Errorf("%s: %d entries for %d new masters; entry i says what new master i receives, so write %d entries, or set type to AutoReceive", at, len(in.desired.Gifts), joining, joining)
	}
	shares := make([]share, len(in.desired.Gifts))
	for i, gift := range in.desired.Gifts {
		shares[i].slots = gift.Slots
		for _, id := range gift.From {
			pod := in.snap.ByNodeID(id)
			if pod == nil || pod.Shard >= first {
				return nil, fmt.Errorf("%s[%d].fromReplicas: %s is no instance of a shard that can give slots; the masters are %s", at, i, id, list(in.masterIDs(first)))
			}
			if !slices.Contains(shares[i].from, pod.Shard) {
				shares[i].from = append(shares[i].from, pod.Shard)
			}
		}
	}
	return shares, nil
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

// reached says that every slot is where the goal wants it.
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
