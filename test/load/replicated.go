// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	replicatedWithin = time.Second
	reloadedWithin   = 20 * time.Millisecond
	followed         = 3 // redirections, as the cluster client follows them
)

// set sends a SET of a key and returns its answer. An error if not as many replicas as asked for have it in time: the write may
// have happened, and counts as one that was not acknowledged.
func (s *session) set(ctx context.Context, key string, args []any) (string, error) {
	if s.replicated == 0 {
		return s.client.Do(ctx, args...).Text()
	}
	var err error
	for range followed + 1 {
		var master *redis.Client
		if master, err = s.client.MasterForKey(ctx, key); err != nil {
			return "", err
		}
		// WAIT is about the writes of its own connection: both go down one, together.
		pipe := master.Pipeline()
		set, wait := pipe.Do(ctx, args...), pipe.Do(ctx, "wait", s.replicated, replicatedWithin.Milliseconds())
		_, _ = pipe.Exec(ctx) // each answer is looked at below
		if err = set.Err(); err != nil && strings.HasPrefix(err.Error(), "MOVED ") {
			s.client.ReloadState(ctx) // in the background
			time.Sleep(reloadedWithin)
			continue
		}
		if err == nil || errors.Is(err, redis.Nil) {
			n, failed := wait.Int()
			if failed != nil {
				return "", fmt.Errorf("ask how many replicas have it: %w", failed)
			}
			if n < s.replicated {
				return "", fmt.Errorf("%d of %d replicas have it", n, s.replicated)
			}
		}
		return set.Text()
	}
	return "", err
}
