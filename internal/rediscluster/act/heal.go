// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"

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
	}
	if err := node.Failover(ctx, mode); err != nil {
		return fmt.Errorf("promote %s: %w", step.Replica.Pod, err)
	}
	a.watch(ctx, node)
	return nil
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
