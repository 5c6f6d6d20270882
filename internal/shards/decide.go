// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

// Stage is how far this replica is with a shard.
type Stage int8

const (
	// Idle: it has nothing to do with the shard.
	Idle Stage = iota
	// Trying: it tries to get the Lease.
	Trying
	// Held: it has the Lease, and works on the shard's objects.
	Held
	// Draining: it has the Lease, begins nothing any more, and waits until what it began has ended.
	Draining
)

// View is what a replica decides on.
type View struct {
	// Member is the replica's own slot; negative: it has none.
	Member int
	// Live says by slot which members live, as far as this replica can tell; there are as many slots as shards. One of which that is not
	// known yet lives.
	Live []bool
	// Stages are by shard.
	Stages []Stage
	// Stand reports whether the replica may work on nothing: it ends, or others work who divide objects in another way.
	Stand bool
}

// Do is what to do with a shard.
type Do int

const (
	// Try to get the Lease.
	Try Do = iota
	// Leave: try no more.
	Leave
	// Drain: begin nothing any more, and release the Lease when what was begun has ended.
	Drain
)

// Step is what to do with one shard.
type Step struct {
	Shard int
	Do    Do
}

// Decide says what to do next, in the order of the shards. A replica lets go of a shard only for another one that lives: who is not sure
// keeps what it has. What is being drained goes on being drained, whoever is to have it.
func (v View) Decide() []Step {
	assigned := Assign(v.Live)
	var steps []Step
	for shard, stage := range v.Stages {
		mine := !v.Stand && v.Member >= 0 && assigned[shard] == v.Member
		anothers := v.Stand || assigned[shard] >= 0 && assigned[shard] != v.Member
		switch {
		case stage == Idle && mine:
			steps = append(steps, Step{shard, Try})
		case stage == Trying && !mine:
			steps = append(steps, Step{shard, Leave})
		case stage == Held && anothers:
			steps = append(steps, Step{shard, Drain})
		}
	}
	return steps
}

// FreeSlot is the slot that a replica without one tries to get: the first, from one on, of which no member lives; negative: there is none.
func FreeSlot(live []bool, from int) int {
	for i := range live {
		if slot := (from + i) % len(live); !live[slot] {
			return slot
		}
	}
	return -1
}
