// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Move is slots that change their owner from one master to another.
type Move struct {
	From, To Target
	Slots    slots.Set
}

// RecordGoal writes down which shard is to own which slots, before the first of them moves:
// whoever goes on after a crash goes on with the same.
type RecordGoal struct {
	base
	Moves []Move
	// ByLoad is that, if the load asks for it; nil: the spec does.
	ByLoad *snapshot.Goal
}

// MoveSlots moves slots for a while.
type MoveSlots struct {
	base
	Moves []Move
	// Atomic reports whether the engines move whole slots by themselves.
	Atomic bool
}

// CancelJobs stops atomic migrations that are not wanted any more.
type CancelJobs struct {
	base
	On []Target
	// Takers are those who may be taking slots over from On, where On are the sources.
	Takers []Target
}

// CopyFunctions loads the function libraries of one master into new ones.
type CopyFunctions struct {
	base
	From Target
	To   []Target
}

// Name implements Step.
func (CopyFunctions) Name() string { return "CopyFunctions" }

// Name implements Step.
func (RecordGoal) Name() string { return "RecordGoal" }

// Name implements Step.
func (MoveSlots) Name() string { return "MoveSlots" }

// Name implements Step.
func (CancelJobs) Name() string { return "CancelJobs" }

// planFunctions gives new masters the functions of the others: masters do not share them,
// and clients call them wherever their keys are.
func planFunctions(in input) Step {
	var source *snapshot.Instance
	for _, master := range in.snap.Masters() {
		if source == nil || cmp.Or(cmp.Compare(master.Redis.Libraries, source.Redis.Libraries), cmp.Compare(source.Name, master.Name)) > 0 {
			source = master
		}
	}
	if source == nil || source.Redis.Libraries == 0 {
		return nil
	}
	step := CopyFunctions{base: base{fmt.Sprintf("new masters lack the %d function libraries of %s", source.Redis.Libraries, source.Name)},
		From: target(source)}
	masters := in.masters()
	for shard := range in.desired.Topology {
		if pod := masters[shard]; pod != nil && pod.Redis.Slots.IsEmpty() && pod.Redis.Libraries == 0 {
			step.To = append(step.To, target(pod))
		}
	}
	if len(step.To) == 0 {
		return nil
	}
	return step
}

// planGoal begins a scaling, as soon as it is certain who owns what. What cannot be is
// refused later, by planRefusal: the cluster is looked after all the same.
func planGoal(in input) Step {
	goal, err := in.goal()
	if err != nil || goal == nil || goal == in.snap.Goal || !certain(in) || !capacity(in, goal).Holds || !modulesLoaded(in).Holds ||
		!noBackup(in).Holds {
		return nil
	}
	moves := in.moves(goal)
	return RecordGoal{
		base:  base{fmt.Sprintf("%d slots are to move, so that %d shards own them: %s", count(moves), len(in.desired.Topology), summary(moves))},
		Moves: moves}
}

// certain reports whether every instance answers, every slot has one owner, and every shard that
// is to own slots has a master.
func certain(in input) bool {
	masters := in.masters()
	for shard := range in.desired.Topology {
		if masters[shard] == nil {
			return false
		}
	}
	// Two masters in one shard may be a failover that not everybody has heard of.
	return snapshotComplete(in).Holds && ownedOnce(in.snap) && (!in.twoMasters() || planConverge(in) == nil)
}

// ownedOnce reports whether every slot is owned by one instance that answers.
func ownedOnce(s *snapshot.Snapshot) bool {
	total := 0
	for _, pod := range s.Reachable() {
		total += pod.Redis.Slots.Len()
	}
	return total == slots.Count && slotsCovered(s)
}

// planRefusal says what of a scaling cannot be. Nothing has been begun then.
func planRefusal(in input) Step {
	goal, err := in.goal()
	switch {
	case errors.Is(err, errUncertain):
		return nil
	case err != nil:
		return Stall{base: base{err.Error()}, Cause: "InvalidAssignment"}
	case goal == nil:
		return nil
	case goal == in.snap.Goal:
		return waitFor(fails(ShardHealthy, "slots are to move to a shard that has no master"))
	}
	if !modulesLoaded(in).Holds {
		return nil // the instances restart first, or wait for the user to do it
	}
	if v := capacity(in, goal); !v.Holds {
		return Stall{base: base{v.Reason}, Cause: "OverCapacity", BlockedBy: v.Predicate}
	}
	if v := noBackup(in); !v.Holds {
		return waitFor(v)
	}
	return unready(in)
}

// noBackup keeps a scaling from beginning. One that has begun goes on, also towards another goal: the backup waits for its end.
func noBackup(in input) Verdict {
	if in.snap.Backup.UID == "" || in.snap.Goal != nil {
		return holds(NoBackup)
	}
	return fails(NoBackup, "slots are to move when RedisBackup %s has ended", in.snap.Backup.Name)
}

// unready says what a scaling waits for that can be, although everybody agrees who owns what (planConverge): a shard that is
// to own slots has no master.
func unready(in input) Step {
	masters := in.masters()
	for shard := range in.desired.Topology {
		if masters[shard] == nil {
			return waitFor(fails(ShardHealthy, "slots are to move to shard %d, and none of its instances can become its master yet", shard))
		}
	}
	return waitFor(fails(SnapshotComplete, "slots are to move, and it is not certain who owns what"))
}

// planMove closes what was left half migrated, and moves slots towards the recorded goal.
// Slots move between healthy shards; what concerns the others waits.
func planMove(in input) Step {
	open := openSlots(in)
	if step := open.step(); step != nil {
		return step
	}
	moves := open.finish // a slot can only be finished the way it was begun, so these come first
	if goal, err := in.goal(); len(moves) == 0 && err == nil && goal != nil && goal == in.snap.Goal {
		moves = in.moves(goal)
	}
	if step := cancelJobs(in, moves); step != nil {
		return step
	}
	if len(moves) == 0 {
		return nil
	}
	var ready []Move
	var held Verdict
	for _, move := range moves {
		move, v := movable(in, move)
		if v.Holds && len(open.finish) == 0 {
			v = ownershipSettled(in, in.snap.ByNodeID(move.From.NodeID))
		}
		if v.Holds {
			ready = append(ready, move)
		} else {
			held = v
		}
	}
	if len(ready) == 0 {
		return waitFor(held)
	}
	ready = oneWay(ready)
	step := MoveSlots{base: base{fmt.Sprintf("%d slots are left to move: %s", count(moves), summary(moves))}, Moves: ready,
		Atomic: in.desired.KeysPerSecond == 0}
	for _, move := range ready {
		from, to := in.snap.ByNodeID(move.From.NodeID).Redis, in.snap.ByNodeID(move.To.NodeID).Redis
		if from.Atomic == "" || from.Atomic != to.Atomic || len(open.finish) > 0 {
			step.Atomic = false
		}
	}
	return step
}

// cancelJobs stops atomic migrations that lead elsewhere than the moves do. One whose slots are being taken over ends by itself. A source
// that was told to stop would let its clients write on, and lose what they write when it hears that the slots have been taken over.
func cancelJobs(in input, moves []Move) Step {
	step := CancelJobs{}
	for _, pod := range in.snap.Reachable() {
		for _, job := range pod.Redis.Jobs {
			wanted := slices.ContainsFunc(moves, func(m Move) bool {
				return m.From.NodeID == job.SourceID && m.To.NodeID == job.TargetID && job.Slots.Subtract(m.Slots).IsEmpty()
			})
			if wanted || pod.Redis.NodeID != job.ExecutedOn(pod.Redis.Atomic) {
				continue
			}
			if pod.Redis.Atomic == slots.AtomicSource {
				taker := in.snap.ByNodeID(job.TargetID)
				if taker == nil || job.HandingOver || !taker.Redis.Slots.Intersect(job.Slots).IsEmpty() {
					return waitFor(fails(OwnershipSettled, "slots %s of %s are being taken over", job.Slots, pod.Name))
				}
				step.Takers = append(step.Takers, target(taker))
			}
			if step.Reason = fmt.Sprintf("slots %s are not to move any more", job.Slots); !slices.Contains(step.On, target(pod)) {
				step.On = append(step.On, target(pod))
			}
		}
	}
	if len(step.On) == 0 {
		return nil
	}
	return step
}

// oneWay leaves moves out so that no master gives slots while it receives others. The destination of a slot is its owner because its
// epoch is the highest. If the source received a slot of its own before it is told, its epoch would be higher, and by its next
// ping it would own what it gave; the destination would drop the keys (clusterUpdateSlotsConfigWith in cluster.c).
func oneWay(moves []Move) []Move {
	gives, receives := map[string]bool{}, map[string]bool{}
	return slices.DeleteFunc(moves, func(m Move) bool {
		if receives[m.From.NodeID] || gives[m.To.NodeID] {
			return true
		}
		gives[m.From.NodeID], receives[m.To.NodeID] = true, true
		return false
	})
}

func count(moves []Move) int {
	n := 0
	for _, move := range moves {
		n += move.Slots.Len()
	}
	return n
}

func summary(moves []Move) string {
	lines := make([]string, len(moves))
	for i, move := range moves {
		lines[i] = fmt.Sprintf("%d from %s to %s", move.Slots.Len(), move.From.Pod, move.To.Pod)
	}
	return list(lines)
}
