// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ByLoad is which shard is to own which slots because of what they bear.
type ByLoad struct {
	Shards []slots.Set
	// Why says why, in a sentence.
	Why string
}

// byLoad is what a goal is computed for that the load asks for, of as many shards as the spec does.
func byLoad(fingerprint string) string { return fingerprint + forLoad }

const forLoad = ", by load"

// IsByLoad reports whether a goal, or none, is one that the load asks for.
func IsByLoad(goal *snapshot.Goal) bool { return goal != nil && strings.HasSuffix(goal.For, forLoad) }

// planBalance moves slots because of the load, when nothing else is to be done and no backup is taken or waits.
func planBalance(in input) Step {
	asked := in.desired.ByLoad
	if asked == nil || !in.desired.FollowsLoad || in.snap.Goal != nil || len(asked.Shards) != len(in.desired.Topology) ||
		in.snap.Hibernated != nil || in.desired.Hibernate || in.desired.AssignReceive || in.snap.Backup.UID != "" || !certain(in) ||
		!modulesLoaded(in).Holds {
		return nil
	}
	goal := &snapshot.Goal{For: byLoad(in.fingerprint()), From: len(asked.Shards), Shards: asked.Shards}
	moves := in.moves(goal)
	if len(moves) == 0 {
		return nil
	}
	return RecordGoal{base: base{fmt.Sprintf("%s: %d slots are to move: %s", asked.Why, count(moves), summary(moves))}, Moves: moves,
		ByLoad: goal}
}
