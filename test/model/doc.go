// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package model checks the protocol by which slots move: it visits every state that a small cluster can get into while the
// operator scales it, whatever is lost, dies, is promoted or changes its mind at any command, and finds that no state breaks
// a safety rule and that each of them leads to the cluster that was asked for.
//
// Deciding is the real thing: each reconciliation of the operator builds a snapshot from what the nodes believe and asks
// plan.Decide. What a step sends, in which order, mirrors packages act and reshard (see operator_test.go). The nodes follow
// the cluster code of Redis 7 or Valkey 8 (see engine_test.go).
//
// The world has three shards of two instances and a fourth that joins or leaves. Few slots move; all others are there, stay,
// and are not told apart. What is left out, on purpose:
//   - Time. Elections, failure detection and the ban after FORGET are events that happen or do not; a restarted node hears
//     the news before it serves (the rejoin delay).
//   - Asynchronous replication: a replica that is in sync has every write. Losing the last writes of a master that dies is
//     inherent to the engines, whoever moves slots.
//   - What is inherent to the engines, each where it is left out: a replica promoted by hand while its master is being
//     drained (checker.moves), deleting a key that a lost MIGRATE left at both ends (isWhole), news of a new owner that takes
//     longer than a reconciliation (engine.slowBus), and slots that Redis 7.0 goes on taking for unclaimed (setOwner).
//   - A command of a process that was stopped which comes while its successor moves the same slot, and what clients write at an instance
//     until that hears that it was told wrong: SETSLOT cannot be made to depend on anything. It comes between two reconciliations here,
//     and all hear of it at once.
//   - The ban of 60 s after FORGET does not end.
//   - Two moves of one step run one after the other, in either order; in reality their commands interleave.
//   - Atomic migration (one command, carried out by the engine), and changing the number of instances of a shard.
package model
