// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Normalized is a value that an engine took and shows in other words.
type Normalized struct{ Name, Value, Shown string }

// setConfig changes settings of running instances and looks whether they are in force. What
// an engine refuses is no error: it is told in the result, and the rest is done.
func (a *Actor) setConfig(ctx context.Context, s Subject, step plan.SetConfig) (Result, error) {
	result := Result{Acted: true}
	var mu sync.Mutex
	err := each(ctx, step.Changes, func(ctx context.Context, change plan.InstanceConfig) error {
		node, err := a.identified(ctx, s, change.On)
		if err != nil {
			return err
		}
		refusals, err := a.configure(ctx, node, change)
		if err != nil {
			return fmt.Errorf("set %s: %w", change.On.Pod, err)
		}
		shown, err := node.ConfigGet(ctx, slices.Sorted(maps.Keys(change.Settings))...)
		if err != nil {
			return fmt.Errorf("look at the settings of %s: %w", change.On.Pod, err)
		}
		mu.Lock()
		defer mu.Unlock()
		result.Refusals = append(result.Refusals, refusals...)
		for name, value := range change.Settings {
			refused := slices.ContainsFunc(refusals, func(r snapshot.Refusal) bool { return r.Name == name })
			if !refused && !redisconf.Equal(name, value, shown[name]) {
				result.Normalized = append(result.Normalized, Normalized{Name: name, Value: value, Shown: shown[name]})
			}
		}
		return nil
	})
	return result, err
}

// configure sets all at once; when something of it is refused, one by one, to find out what,
// and to do the rest.
func (a *Actor) configure(ctx context.Context, node *redis.Node, change plan.InstanceConfig) ([]snapshot.Refusal, error) {
	err := node.ConfigSetAll(ctx, change.Settings)
	if !objects(err) { // or there is none
		return nil, err
	}
	var refusals []snapshot.Refusal
	for _, name := range slices.Sorted(maps.Keys(change.Settings)) {
		value := change.Settings[name]
		switch err := node.ConfigSet(ctx, name, value); {
		case err == nil:
		case objects(err):
			refusals = append(refusals, snapshot.Refusal{Name: name, Value: value, Engine: change.Engine, Message: reply(err),
				Immutable: errors.Is(err, redis.ErrImmutable), At: a.Now()})
		default:
			return nil, err
		}
	}
	return refusals, nil
}

// objects reports whether the node has something against a value, and is not merely unable to
// listen now.
func objects(err error) bool {
	return errors.Is(err, redis.ErrRefused) && !errors.Is(err, redis.ErrAuth) && !errors.Is(err, redis.ErrLoading)
}

// reply is what the node said, without the address of who said it.
func reply(err error) string {
	var failure *redis.Error
	if errors.As(err, &failure) {
		return failure.Err.Error()
	}
	return err.Error()
}
