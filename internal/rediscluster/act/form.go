// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"fmt"
	"strconv"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// assignSlots gives slots that nobody owns to masters, all at once.
func (a *Actor) assignSlots(ctx context.Context, s Subject, step plan.AssignSlots) error {
	return each(ctx, step.Assignments, func(ctx context.Context, assignment plan.Assignment) error {
		node, err := a.identified(ctx, s, assignment.To)
		if err != nil {
			return err
		}
		if assignment.Epoch > 0 {
			// Distinct epochs spare the masters a round of collisions. A node that has
			// met another since it was observed refuses, and does without.
			if err := node.SetConfigEpoch(ctx, assignment.Epoch); err != nil {
				return fmt.Errorf("set the epoch of %s: %w", assignment.To.Pod, err)
			}
		}
		if err := node.AddSlots(ctx, assignment.Slots); err != nil {
			return fmt.Errorf("give slots %s to %s: %w", assignment.Slots, assignment.To.Pod, err)
		}
		return nil
	})
}

// setNodeTimeout changes cluster-node-timeout of running instances.
func (a *Actor) setNodeTimeout(ctx context.Context, s Subject, step plan.SetNodeTimeout) error {
	return each(ctx, step.On, func(ctx context.Context, on plan.Target) error {
		node, err := a.identified(ctx, s, on)
		if err != nil {
			return err
		}
		if err := node.ConfigSet(ctx, "cluster-node-timeout", strconv.FormatInt(step.Timeout.Milliseconds(), 10)); err != nil {
			return fmt.Errorf("set cluster-node-timeout of %s: %w", on.Pod, err)
		}
		return nil
	})
}

// meet introduces instances to each other. Both ends are identified first.
func (a *Actor) meet(ctx context.Context, s Subject, step plan.Meet) error {
	var ends []plan.Target
	known := map[plan.Target]bool{}
	for _, meeting := range step.Meetings {
		for _, end := range []plan.Target{meeting.From, meeting.To} {
			if !known[end] {
				known[end] = true
				ends = append(ends, end)
			}
		}
	}
	err := each(ctx, ends, func(ctx context.Context, end plan.Target) error {
		_, err := a.identified(ctx, s, end)
		return err
	})
	if err != nil {
		return err
	}
	return each(ctx, step.Meetings, func(ctx context.Context, meeting plan.Meeting) error {
		if err := a.node(s, meeting.From).Meet(ctx, meeting.To.IP, int(v1alpha1.PortRedis), int(v1alpha1.PortBus)); err != nil {
			return fmt.Errorf("introduce %s to %s: %w", meeting.To.Pod, meeting.From.Pod, err)
		}
		return nil
	})
}

// replicate makes instances follow their shard's master.
func (a *Actor) replicate(ctx context.Context, s Subject, step plan.Replicate) error {
	return each(ctx, step.Replications, func(ctx context.Context, replication plan.Replication) error {
		node, err := a.identified(ctx, s, replication.Replica)
		if err != nil {
			return err
		}
		if err := node.Replicate(ctx, replication.MasterID); err != nil {
			return fmt.Errorf("make %s follow node %s: %w", replication.Replica.Pod, replication.MasterID, err)
		}
		return nil
	})
}
