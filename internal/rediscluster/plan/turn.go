// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"slices"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// TakeTurn writes down that it is the cluster's turn to take a change that only the operator made, or waits for it.
type TakeTurn struct {
	base
	// Wave is the number of the wave that it goes with; 0: it waits. Stopped reports whether nobody's turn comes before another cluster is
	// well.
	Wave    int
	Stopped bool
}

// Name implements Step.
func (TakeTurn) Name() string { return "TakeTurn" }

// Turn is whether it is the cluster's turn, as the fleet says.
type Turn struct {
	Wave    int
	Stopped bool
	// Why says how far the fleet is.
	Why string
}

// held reports whether a template that only the operator changed waits for the cluster's turn. What does not start, or cannot follow a
// master of another version, is not made better by waiting.
func (in input) held() bool {
	if !in.desired.Held || !in.snap.Formed || in.snap.Hibernated != nil || in.desired.Deleting {
		return false
	}
	return !slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool {
		return pod.Failing && pod.NodeName != "" && pod.Redis == nil && !pod.Terminating || in.outrun(&pod)
	})
}

// outrun reports whether a replica cannot follow its master, which has a newer template.
func (in input) outrun(pod *snapshot.Instance) bool {
	if pod.Redis == nil || !in.skewed(pod) {
		return false
	}
	master := in.snap.ByNodeID(pod.Redis.MasterID)
	return master != nil && !in.stale(master)
}

// planTurn has a cluster that lacks nothing else wait for its turn, and take it.
func planTurn(in input) Step {
	if !in.held() || len(in.pending.Held) == 0 && len(in.outdated()) == 0 && in.unobserved() == "" {
		return nil
	}
	if v := in.unfenced("the turn of the cluster, which it could not use,"); !v.Holds {
		return waitFor(v)
	}
	turn := in.pending.Turn
	switch {
	case turn == nil:
		return TakeTurn{base: base{"the operator has another pod template for the instances, which waits for the turn of the cluster"}}
	case turn.Wave == 0:
		return TakeTurn{base: base{"waits for its turn: " + turn.Why}, Stopped: turn.Stopped}
	}
	return TakeTurn{base: base{cmp.Or(turn.Why, "it is the turn of the cluster")}, Wave: turn.Wave}
}
