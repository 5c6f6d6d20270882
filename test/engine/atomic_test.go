// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// forEachAtomic runs the test for the engines that move slots on their own, and checks the refusals of the others.
func forEachAtomic(t *testing.T, test func(t *testing.T, c *cluster)) {
	t.Helper()
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		if c.view(0).Atomic != slots.AtomicNone {
			test(t, c)
			return
		}
		if _, err := reshard.Atomic(t.Context(), []reshard.Move{c.move(0, 1, slots.Of(5))}, reshard.Options{}); !errors.Is(err,
			reshard.ErrNotAtomic) {
			t.Errorf("Atomic: %v", err)
		}
		must(t, c.node(0).CancelSlotMigrations(t.Context()))
	})
}

// freeze stops the server's process, so that a job with it cannot end; the function it returns lets it go on.
func (c *cluster) freeze(i int) func() {
	c.t.Helper()
	must(c.t, c.servers[i].process.Process.Signal(syscall.SIGSTOP))
	return func() { must(c.t, c.servers[i].process.Process.Signal(syscall.SIGCONT)) }
}

const sliceOfNothing = 50 * time.Millisecond // the job cannot end in it

func TestAtomicJobOutlivesTheSlice(t *testing.T) {
	forEachAtomic(t, func(t *testing.T, c *cluster) {
		client, set := c.client(), slots.Range(0, 99).Union(slots.Of(300))
		keys := everyType(t, client, tags(set, 1)[0])
		before := contents(t, client, keys)
		thaw := c.freeze(1)
		for range 2 { // the second call finds the job of the first one
			done, err := reshard.Atomic(t.Context(), []reshard.Move{c.move(0, 1, set)}, reshard.Options{Slice: sliceOfNothing})
			if err != nil || !done.Slots.IsEmpty() {
				t.Errorf("%+v, %v", done, err)
			}
			jobs := c.view(0).SlotMigrations
			if len(jobs) != 1 || !jobs[0].Slots.Equal(set) || jobs[0].SourceID != c.ids[0] || jobs[0].TargetID != c.ids[1] {
				t.Errorf("jobs under way: %+v", jobs)
			}
		}
		thaw()
		done := complete(t, reshard.Atomic, reshard.Options{}, c.move(0, 1, set))
		if done.Keys != int64(len(keys)) {
			t.Errorf("progress %+v", done)
		}
		eventually(t, func() error { return c.settled(map[int]slots.Set{0: slots.All().Subtract(set), 1: set}) })
		after := contents(t, client, keys)
		for key, content := range before {
			if after[key] != content {
				t.Errorf("%q was %s and is %s", key, content, after[key])
			}
		}
		if jobs := c.view(0).SlotMigrations; len(jobs) != 0 {
			t.Errorf("still under way: %+v", jobs)
		}
	})
}

func TestAtomicJobIsCancelled(t *testing.T) {
	forEachAtomic(t, func(t *testing.T, c *cluster) {
		ctx, moves := t.Context(), []reshard.Move{c.move(0, 1, slots.Range(0, 99))}
		must(t, c.node(0).CancelSlotMigrations(ctx)) // there is none
		thaw := c.freeze(1)
		_, err := reshard.Atomic(ctx, moves, reshard.Options{Slice: sliceOfNothing})
		must(t, err)
		must(t, c.node(0).CancelSlotMigrations(ctx))
		jobs, err := c.node(0).SlotMigrations(ctx, c.view(0).Atomic)
		if err != nil || len(jobs) != 1 || jobs[0].Outcome != redis.SlotMigrationCancelled {
			t.Errorf("jobs %+v, %v", jobs, err)
		}
		thaw()
		complete(t, reshard.Atomic, reshard.Options{}, moves...)
	})
}

func TestAtomicJobFails(t *testing.T) {
	forEachAtomic(t, func(t *testing.T, c *cluster) {
		ctx, moves := t.Context(), []reshard.Move{c.move(0, 1, slots.Range(0, 99))}
		c.freeze(1)
		_, err := reshard.Atomic(ctx, moves, reshard.Options{Slice: sliceOfNothing})
		must(t, err)
		time.AfterFunc(sliceOfNothing, c.servers[1].kill)
		_, err = reshard.Atomic(ctx, moves, reshard.Options{Slice: time.Minute})
		if err == nil || !strings.Contains(err.Error(), "slots 0-99: job ") || !strings.Contains(err.Error(), "is failed") {
			t.Errorf("error %v", err)
		}
		<-c.servers[1].ended
		c.servers[1].run()
		eventually(t, c.formed)
		complete(t, reshard.Atomic, reshard.Options{}, moves...)
	})
}
