// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// servesAfter is the cluster-node-timeout of the follower while it takes over: it serves so much later (CLUSTER_MIN_REJOIN_DELAY in
	// cluster.c is the least). planTimeout puts it back.
	servesAfter = "500"
	// lookEvery is how often it is looked whether the follower has got everything.
	lookEvery = 5 * time.Millisecond
	// mostCatchUp is how long that may take, and no more than half of the pause.
	mostCatchUp = 10 * time.Second
	// endPauseWithin is how long ending a pause may take.
	endPauseWithin = 2 * time.Second
)

// cutOver makes the follower of a server outside a master with all that the server has. The server's writes are paused before, and the
// pause outlasts the takeover: it is not ended then, and not at all if it is not known whether there was one. If the operator stops in
// between, the pause ends by itself, and the next reconciliation sees who is what.
func (a *Actor) cutOver(ctx context.Context, s Subject, step plan.CutOver) error {
	follower, err := a.identified(ctx, s, step.Follower)
	if err != nil {
		return err
	}
	if err := follower.ConfigSet(ctx, "cluster-node-timeout", servesAfter); err != nil {
		return fmt.Errorf("set cluster-node-timeout of %s: %w", step.Follower.Pod, err)
	}
	source := a.Redis.Node(snapshot.Address(step.Relay), s.Credentials)
	began := time.Now()
	ctx, cancel := context.WithDeadline(ctx, began.Add(step.Pause))
	defer cancel()
	err = a.takeOver(ctx, source, follower, step, began)
	var after *tookOverError
	if err == nil || errors.As(err, &after) {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPauseWithin)
	defer cancel()
	if failed := source.ResumeWrites(ending); failed != nil {
		err = errors.Join(err, fmt.Errorf("the pause of writes at the server ends by itself after %s: %w", step.Pause, failed))
	}
	return err
}

// tookOverError is an error from when the takeover was asked for.
type tookOverError struct{ error }

func (e *tookOverError) Unwrap() error { return e.error }

func (a *Actor) takeOver(ctx context.Context, source, follower *redis.Node, step plan.CutOver, began time.Time) error {
	if err := source.PauseWrites(ctx, step.Pause); err != nil {
		return fmt.Errorf("pause writes at the server outside: %w", err)
	}
	if err := catchUp(ctx, source, follower, step, began); err != nil {
		return err
	}
	// Long after this the pause still holds: it began no earlier than it was asked for.
	if took := time.Since(began); took > step.Pause/2 {
		return fmt.Errorf("it took %s until %s had all writes, and they are paused for %s: it is tried again", took, step.Follower.Pod,
			step.Pause)
	}
	if err := follower.Failover(ctx, redis.FailoverTakeover); err != nil {
		if errors.Is(err, redis.ErrRefused) {
			return fmt.Errorf("let %s take over: %w", step.Follower.Pod, err)
		}
		return &tookOverError{fmt.Errorf("let %s take over: %w", step.Follower.Pod, err)}
	}
	if err := follower.Forget(ctx, step.MasterID); err != nil && !errors.Is(err, redis.ErrUnknownNode) {
		return &tookOverError{fmt.Errorf("make %s forget the server: %w", step.Follower.Pod, err)} // planForget does it, then
	}
	return nil
}

// catchUp waits until the follower has all that the server had once its writes were paused, and compares how many keys they have.
func catchUp(ctx context.Context, source, follower *redis.Node, step plan.CutOver, began time.Time) error {
	paused, err := source.Outside(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("ask the server outside: %w", err)
	case paused.Role != redis.RoleMaster || paused.Others:
		return errors.New("the server is no master any more, or has keys in other databases than 0")
	}
	for {
		is, err := follower.Outside(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("ask %s: %w", step.Follower.Pod, err)
		case is.Role != redis.RoleReplica || is.At.ID != paused.At.ID:
			return fmt.Errorf("%s does not follow the history of the server any more", step.Follower.Pod)
		case is.At.Offset >= paused.At.Offset && !is.Unsaved:
			if is.Keys != paused.Keys || is.Others || is.LoadErrors > 0 {
				return fmt.Errorf("%s has %d keys and could not carry out %d commands, and the server has %d keys: it does not take over",
					step.Follower.Pod,
					is.Keys, is.LoadErrors, paused.Keys)
			}
			return nil
		case time.Since(began) > min(step.Pause/2, mostCatchUp):
			return fmt.Errorf("%s lacks %d bytes of the server's writes after %s, or has them in no file: it is tried again", step.Follower.Pod,
				max(0, paused.At.Offset-is.At.Offset), time.Since(began).Round(time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
