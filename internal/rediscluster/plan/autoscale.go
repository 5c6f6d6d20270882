// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "fmt"

// SetShards writes down another number of shards, which the load asks for: the next reconciliation has the cluster scaled to it.
type SetShards struct {
	base
	From, To int
	// Back reports whether shards are kept after all that were to be removed.
	Back bool
}

// Name implements Step.
func (SetShards) Name() string { return "SetShards" }

// planAutoscale changes the number of shards because of the load, when nothing else is to be done and no backup is taken or waits.
func planAutoscale(in input) Step {
	from, to := len(in.desired.Topology), in.desired.ScaleTo
	if is := len(in.owned()); is > from && is <= in.desired.ScaleMost && in.lacksRoom() {
		why := fmt.Sprintf("%d shards stay, since their data would not fit into %d", is, from)
		return SetShards{base: base{why}, From: from, To: is, Back: true}
	}
	if to == 0 || to == from || in.snap.Backup.UID != "" || in.snap.Hibernated != nil {
		return nil
	}
	return SetShards{base: base{in.desired.ScaleWhy}, From: from, To: to}
}

// lacksRoom reports whether a scaling does not begin because data would not fit.
func (in input) lacksRoom() bool {
	goal, err := in.goal()
	return err == nil && goal != nil && goal != in.snap.Goal && !capacity(in, goal).Holds
}

// heldByStall is the step of a stall in place of a change because of the load: what a person has to see to comes first. Shards that stay
// after all are what ends the stall for want of room.
func heldByStall(d Decision) (Step, *Stall) {
	set, sets := d.Step.(SetShards)
	switch {
	case !sets || d.Stalled == nil:
		return d.Step, d.Stalled
	case !set.Back:
		return *d.Stalled, d.Stalled
	case d.Stalled.Cause == "OverCapacity":
		return d.Step, nil
	}
	return d.Step, d.Stalled
}
