// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// servesAfter is the cluster-node-timeout of followers while they take over: they serve so much later (CLUSTER_MIN_REJOIN_DELAY in
	// cluster.c is the least). planTimeout puts it back.
	servesAfter = "500"
	// lookEvery is how often it is looked whether a follower has got everything.
	lookEvery = 5 * time.Millisecond
	// mostCatchUp is how long that may take, and no more than half of the pause.
	mostCatchUp = 10 * time.Second
	// pingSize is what a server sends to its replicas also while writes are paused; no write is as short.
	pingSize = 14
	// endPauseWithin is how long ending a pause may take.
	endPauseWithin = 2 * time.Second
)

// taking is a cut-over: each follower with the server that it follows, in their order.
type taking struct {
	step      plan.CutOver
	followers []*redis.Node
	sources   []*redis.Node
	// others are where writes are paused besides.
	others []*redis.Node
	began  time.Time
	// over reports whether one took over, or may have.
	over atomic.Bool
}

// cutOver makes the followers of a server outside masters with all that the server has. The server's writes are paused before, and the
// pause outlasts the takeover: it is not ended then, unless the server goes on, and not at all if it is not known whether there was one. If
// the operator stops in between, the pause ends by itself, and the next reconciliation sees who is what.
func (a *Actor) cutOver(ctx context.Context, s Subject, step plan.CutOver) error {
	t := &taking{step: step, followers: make([]*redis.Node, len(step.Followers))}
	err := t.each(ctx, func(ctx context.Context, i int) (err error) {
		if t.followers[i], err = a.identified(ctx, s, step.Followers[i].On); err != nil {
			return err
		}
		if err := t.followers[i].ConfigSet(ctx, "cluster-node-timeout", servesAfter); err != nil {
			return fmt.Errorf("set cluster-node-timeout of %s: %w", step.Followers[i].On.Pod, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, f := range step.Followers {
		t.sources = append(t.sources, a.Redis.Node(snapshot.Address(f.Relay), s.Credentials))
	}
	if step.Alone {
		if err := t.each(ctx, t.isAlone); err != nil {
			return err
		}
		return t.each(ctx, t.promote)
	}
	for _, ip := range step.Relays {
		t.others = append(t.others, a.Redis.Node(snapshot.Address(ip), s.Credentials))
	}
	t.began = time.Now()
	paused, cancel := context.WithDeadline(ctx, t.began.Add(step.Pause))
	defer cancel()
	err = t.takeOver(paused)
	if t.over.Load() && (err != nil || !step.Resume) {
		return err
	}
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), endPauseWithin)
	defer cancel()
	failed := each(ending, slices.Concat(t.sources, t.others),
		func(ctx context.Context, source *redis.Node) error { return source.ResumeWrites(ctx) })
	if failed != nil {
		err = errors.Join(err, fmt.Errorf("the pause of writes at the server ends by itself after %s: %w", step.Pause, failed))
	}
	return err
}

// each does something for every follower, at once.
func (t *taking) each(ctx context.Context, do func(ctx context.Context, i int) error) error {
	numbers := make([]int, len(t.step.Followers))
	for i := range numbers {
		numbers[i] = i
	}
	return each(ctx, numbers, do)
}

func (t *taking) takeOver(ctx context.Context) error {
	err := each(ctx, t.sources, func(ctx context.Context, source *redis.Node) error {
		if err := source.PauseWrites(ctx, t.step.Pause); err != nil {
			return fmt.Errorf("pause writes at the server outside: %w", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_ = each(ctx, t.others, func(ctx context.Context, source *redis.Node) error { // what is missed there is counted
		return source.PauseWrites(ctx, t.step.Pause)
	})
	paused := make([]redis.Outside, len(t.sources))
	if err := t.each(ctx, func(ctx context.Context, i int) (err error) { paused[i], err = t.ask(ctx, i); return err }); err != nil {
		return err
	}
	if err := t.each(ctx, func(ctx context.Context, i int) error { return t.catchUp(ctx, i, paused[i]) }); err != nil {
		return err
	}
	// A failover, or slots that an engine moved by itself, would show now, and so would a pause that somebody else ended: all servers were
	// where they were, at one moment between the two answers. So would a follower that copies everything anew since.
	err = t.each(ctx, func(ctx context.Context, i int) error {
		is, err := t.ask(ctx, i)
		if since := is.At.Offset - paused[i].At.Offset; err != nil || is.At.ID != paused[i].At.ID || is.ID != paused[i].ID ||
			since != 0 && since != pingSize {
			return errors.Join(err, fmt.Errorf("the server that %s follows went on while writes were paused", t.step.Followers[i].On.Pod))
		}
		return t.catchUp(ctx, i, is)
	})
	if err != nil {
		return err
	}
	// Long after this the pause still holds: it began no earlier than it was asked for.
	if took := time.Since(t.began); took > t.step.Pause/2 {
		return fmt.Errorf("it took %s until the instances had all writes, and they are paused for %s: it is tried again", took, t.step.Pause)
	}
	return t.each(ctx, t.promote)
}

// isAlone asks a follower and its server once more: one that is not gone after all is not taken over without a pause.
func (t *taking) isAlone(ctx context.Context, i int) error {
	pod := t.step.Followers[i].On.Pod
	is, err := t.followers[i].Outside(ctx)
	switch {
	case err != nil:
		return fmt.Errorf("ask %s: %w", pod, err)
	case is.Role != redis.RoleReplica || is.Linked || is.Loading || is.Unsaved:
		return fmt.Errorf("%s follows the server, or copies or loads data, or has it in no file: it does not take over alone", pod)
	case t.step.Followers[i].Relay == "":
		return nil
	}
	if _, err := t.sources[i].Outside(ctx); err == nil {
		return fmt.Errorf("the server that %s follows answers: %s does not take over alone", pod, pod)
	}
	return nil
}

// promote makes a follower a master. One that was told, and of which nobody knows whether it has taken over, counts as one that has.
func (t *taking) promote(ctx context.Context, i int) error {
	follower, step := t.followers[i], t.step.Followers[i]
	if err := follower.Failover(ctx, redis.FailoverTakeover); err != nil {
		if !errors.Is(err, redis.ErrRefused) && !errors.Is(err, redis.ErrUnsent) {
			t.over.Store(true)
		}
		return fmt.Errorf("let %s take over: %w", step.On.Pod, err)
	}
	t.over.Store(true)
	if err := follower.Forget(ctx, step.MasterID); err != nil && !errors.Is(err, redis.ErrUnknownNode) {
		return fmt.Errorf("make %s forget the server: %w", step.On.Pod, err) // planForget does it, then
	}
	return nil
}

// ask asks the server that an instance follows, which has to be a master of the same slots, that rest.
func (t *taking) ask(ctx context.Context, i int) (redis.Outside, error) {
	is, err := t.sources[i].Outside(ctx)
	switch step := t.step.Followers[i]; {
	case err != nil:
		return is, fmt.Errorf("ask the server outside: %w", err)
	case is.Role != redis.RoleMaster || is.Others:
		return is, errors.New("the server is no master any more, or has keys in other databases than 0")
	case is.Open > 0 || !step.Slots.IsEmpty() && !is.Slots.Equal(step.Slots):
		return is, fmt.Errorf("slots move at the server that %s follows", step.On.Pod)
	}
	return is, nil
}

// catchUp waits until a follower has all that its server had once its writes were paused, and compares how many keys they have.
func (t *taking) catchUp(ctx context.Context, i int, paused redis.Outside) error {
	pod := t.step.Followers[i].On.Pod
	for {
		is, err := t.followers[i].Outside(ctx)
		switch {
		case err != nil:
			return fmt.Errorf("ask %s: %w", pod, err)
		case is.Role != redis.RoleReplica || is.At.ID != paused.At.ID:
			return fmt.Errorf("%s does not follow the history of the server any more", pod)
		case is.At.Offset >= paused.At.Offset && !is.Unsaved:
			if is.Keys != paused.Keys || is.Others || is.LoadErrors > 0 {
				return fmt.Errorf("%s has %d keys and could not carry out %d commands, and the server has %d keys: it does not take over", pod,
					is.Keys, is.LoadErrors, paused.Keys)
			}
			return nil
		case time.Since(t.began) > min(t.step.Pause/2, mostCatchUp):
			return fmt.Errorf("%s lacks %d bytes of the server's writes after %s, or has them in no file: it is tried again", pod,
				max(0, paused.At.Offset-is.At.Offset), time.Since(t.began).Round(time.Millisecond))
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(lookEvery):
		}
	}
}
