// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// promote makes a replica the master of its shard.
func (a *Actor) promote(ctx context.Context, s Subject, step plan.Promote) error {
	node, err := a.identified(ctx, s, step.Replica)
	if err != nil {
		return err
	}
	mode := redis.FailoverForce
	if step.Takeover {
		mode = redis.FailoverTakeover
		if done, err := a.stillLost(ctx, s, node, step); done || err != nil {
			return err
		}
	}
	if err := node.Failover(ctx, mode); err != nil {
		return fmt.Errorf("promote %s: %w", step.Replica.Pod, err)
	}
	a.watch(ctx, node)
	return nil
}

// takeoverWithin is how long after the last look a takeover may begin: half of the time for which an instance that starts takes no writes
// (CLUSTER_WRITABLE_DELAY in cluster.c).
const takeoverWithin = time.Second

// stillLost looks once more, right before a takeover, whether the master that is said not to run still does not, and has no successor:
// nobody votes about it, and this operator may have been stopped since it looked. What can change last is looked at last. done reports
// that the replica is the master already.
func (a *Actor) stillLost(ctx context.Context, s Subject, node *redis.Node, step plan.Promote) (done bool, _ error) {
	if step.Lost == "" {
		return false, nil
	}
	if err := a.noSuccessor(ctx, s, step); err != nil {
		return false, err
	}
	began := a.Now()
	view, err := node.Describe(ctx)
	switch {
	case err != nil:
		return false, fmt.Errorf("look at %s before it is promoted: %w", step.Replica.Pod, err)
	case view.Role == redis.RoleMaster:
		return true, nil
	case view.MasterID != step.Lost || !step.Inherited && (view.MasterLinkUp || view.Syncing):
		return false, fmt.Errorf("promote %s: it has a master again", step.Replica.Pod)
	}
	if refuse, _ := a.Redis.Refuses(ctx, step.Silent...); len(step.Silent) > 0 && !refuse {
		return false, fmt.Errorf("promote %s: connections to %s are not refused any more: the master may run again", step.Replica.Pod,
			strings.Join(step.Silent, ", "))
	}
	if took := a.Now().Sub(began); took > takeoverWithin {
		return false, fmt.Errorf("promote %s: looking at it took %s, in which its master may have started", step.Replica.Pod,
			took.Round(time.Millisecond))
	}
	return false, nil
}

// noSuccessor is an error if another instance of the shard owns slots, or does not say that it owns none.
func (a *Actor) noSuccessor(ctx context.Context, s Subject, step plan.Promote) error {
	return each(ctx, step.Others, func(ctx context.Context, t plan.Target) error {
		other, err := a.identified(ctx, s, t)
		if err != nil {
			return err
		}
		owned, err := other.OwnSlots(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("look at %s before %s is promoted: %w", t.Pod, step.Replica.Pod, err)
		case !owned.IsEmpty():
			return fmt.Errorf("promote %s: %s is a master of its shard", step.Replica.Pod, t.Pod)
		}
		return nil
	})
}

// bumpEpoch makes a master take a new configuration epoch.
func (a *Actor) bumpEpoch(ctx context.Context, s Subject, step plan.BumpEpoch) error {
	node, err := a.identified(ctx, s, step.On)
	if err != nil {
		return err
	}
	if err := node.BumpEpoch(ctx); err != nil {
		return fmt.Errorf("give %s a new epoch: %w", step.On.Pod, err)
	}
	return nil
}

// forget removes nodes from every instance's table in one go: each instance refuses to
// learn a forgotten node again for 60 s only (CLUSTER FORGET), and one that was left out
// would tell the others.
func (a *Actor) forget(ctx context.Context, s Subject, step plan.Forget) error {
	return each(ctx, step.On, func(ctx context.Context, on plan.Target) error {
		node, err := a.identified(ctx, s, on)
		if err != nil {
			return err
		}
		if err := node.Forget(ctx, step.NodeIDs...); err != nil && !errors.Is(err, redis.ErrUnknownNode) {
			return fmt.Errorf("make %s forget nodes: %w", on.Pod, err)
		}
		return nil
	})
}

// rewriteAOF has a master try its disk again: with its table first, which is small, then with all that it holds.
func (a *Actor) rewriteAOF(ctx context.Context, s Subject, step plan.RewriteAOF) error {
	node, err := a.identified(ctx, s, step.On)
	if err != nil {
		return err
	}
	if err := node.SaveConfig(ctx); err != nil {
		return fmt.Errorf("%s cannot write to its disk: make room on its volume, or a larger one (spec.storage.size): %w", step.On.Pod, err)
	}
	write := node.RewriteAOF
	if step.Reopen {
		write = node.ReopenAOF
	}
	if err := write(ctx); err != nil {
		return fmt.Errorf("%s: %w", step.On.Pod, err)
	}
	return nil
}
