// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reshard moves slots with their keys from master to master while clients go on: key by key with the commands that
// every engine has (Classic), or by the engine itself where it can (Atomic).
//
// Everything here may be cut off at any command and is finished by calling it again with the same moves: what is left half
// done is read from the nodes, nothing is remembered. Nothing is decided here either: which slots move where is the
// caller's plan.
package reshard

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// End is one side of a move, a master.
type End struct {
	Node *redis.Node
	// ID is its node ID.
	ID string
	// IP and Port are where the other side reaches it.
	IP   string
	Port int
}

func (e End) target() redis.MigrateTarget {
	return redis.MigrateTarget{Node: e.Node, IP: e.IP, Port: e.Port}
}

// Move is slots that change their owner.
type Move struct {
	From, To End
	Slots    slots.Set
}

// Options says how fast. The zero value is usable.
type Options struct {
	// Pipeline is the most keys that one MIGRATE carries, 1 to 10000; 0: 100.
	Pipeline int
	// KeysPerSecond limits all moves of a call together; 0: no limit.
	KeysPerSecond int
	// Slice is the time after which nothing new is begun; 0: 1 s. A slot with so many keys that it is not done after twice
	// the time is left half moved, for the next call to go on with.
	Slice time.Duration
	// Now is the clock; nil: time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Pipeline <= 0 {
		o.Pipeline = 100
	}
	o.Pipeline = min(o.Pipeline, 10000)
	if o.KeysPerSecond > 0 { // a tenth of a second's keys at once, so that the rate is even
		o.Pipeline = max(1, min(o.Pipeline, o.KeysPerSecond/10))
	}
	if o.Slice <= 0 {
		o.Slice = time.Second
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Progress is what a call did.
type Progress struct {
	// Slots are those that changed their owner completely.
	Slots slots.Set
	// Keys were sent, those that expired on the way included; Bytes is the memory they took at the source.
	Keys, Bytes int64
	// Conflicts is the number of keys that both sides had with different values. One value was dropped.
	Conflicts int64
	// LongestBlock is the longest time that one round trip of MIGRATE took. The source serves nobody meanwhile.
	LongestBlock time.Duration
}

func (p *Progress) add(other Progress) {
	p.Slots = p.Slots.Union(other.Slots)
	p.Keys += other.Keys
	p.Bytes += other.Bytes
	p.Conflicts += other.Conflicts
	p.LongestBlock = max(p.LongestBlock, other.LongestBlock)
}

// sideBySide runs the moves at the same time and adds up what they did. A move that fails does not stop the others.
func sideBySide(ctx context.Context, moves []Move, run func(context.Context, Move) (Progress, error)) (Progress, error) {
	var (
		wait  sync.WaitGroup
		mu    sync.Mutex
		total Progress
		errs  = make([]error, len(moves))
	)
	for i, move := range moves {
		wait.Go(func() {
			errs[i] = contain.Call(ctx, fmt.Sprintf("move slots from %s to %s", move.From.Node, move.To.Node), func() error {
				done, err := run(ctx, move)
				mu.Lock()
				defer mu.Unlock()
				total.add(done)
				return err
			})
		})
	}
	wait.Wait()
	return total, errors.Join(errs...)
}
