// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard_test

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// newAtomicPair is a pair whose engine moves slots on its own, with three keys. Each time that somebody asks how far it is, a
// second passes there.
func newAtomicPair(t *testing.T, takes time.Duration) (p *pair, set slots.Set, keys []string) {
	t.Helper()
	p = newPairOf(t, redistest.Options{InstantGossip: true, SlotMigrationTime: takes}, redistest.NodeOptions{Valkey: true})
	keys = []string{"{b}1", "{b}2", "{c}1"}
	p.write(0, keys...)
	return p, slots.Of(slots.KeySlot("b"), slots.KeySlot("c"), 5), keys
}

// asked are the commands of a name that reach a node from now on; second lets a second pass before each that asks for the jobs.
func (p *pair) asked(name string, second bool) func() []string {
	var mu sync.Mutex
	var all []string
	p.world.OnCommand(func(n *redistest.Node, args []string) {
		command := strings.ToUpper(strings.Join(args[:min(2, len(args))], " "))
		if second && command == "CLUSTER GETSLOTMIGRATIONS" {
			p.world.Run(time.Second)
		}
		if command == name {
			mu.Lock()
			defer mu.Unlock()
			all = append(all, strings.Join(args[2:], " "))
		}
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

// looks is a clock on which a slice of a second ends at the fifth look.
func looks() func() time.Time {
	now := time.Unix(0, 0)
	return func() time.Time {
		now = now.Add(300 * time.Millisecond)
		return now
	}
}

func (p *pair) move(set slots.Set) []reshard.Move {
	return []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
}

// One job moves the slots with their keys, and is followed until it ends.
func TestAtomic(t *testing.T) {
	for name, takes := range map[string]time.Duration{"at once": 0, "in some seconds": 3 * time.Second} {
		t.Run(name, func(t *testing.T) {
			p, set, keys := newAtomicPair(t, takes)
			jobs := p.asked("CLUSTER MIGRATESLOTS", true)
			done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Slice: time.Minute})
			if err != nil || !done.Slots.Equal(set) || done.Keys != int64(len(keys)) {
				t.Errorf("%+v, %v", done, err)
			}
			if len(jobs()) != 1 {
				t.Errorf("jobs: %q", jobs())
			}
			p.moved(set, keys)
			if done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{}); err != nil || !done.Slots.IsEmpty() || len(jobs()) != 1 {
				t.Errorf("with nothing to do: %+v, %v, jobs %q", done, err, jobs())
			}
		})
	}
}

// A job outlives the slice: the next call follows it and makes one for the slots that it does not have.
func TestAtomicGoesOnWithAJob(t *testing.T) {
	p, set, keys := newAtomicPair(t, 3*time.Second)
	done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Now: looks()})
	if err != nil || !done.Slots.IsEmpty() || done.Keys != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	jobs := p.asked("CLUSTER MIGRATESLOTS", true)
	more := set.Union(slots.Of(7))
	done, err = reshard.Atomic(t.Context(), p.move(more), reshard.Options{Slice: time.Minute})
	if err != nil || !done.Slots.Equal(more) || done.Keys != int64(len(keys)) {
		t.Errorf("%+v, %v", done, err)
	}
	if diff := cmp.Diff([]string{"SLOTSRANGE 7 7 NODE " + p.ends[1].ID}, jobs()); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
	p.moved(more, keys)
}

// A slice that ends with the job that was under way begins no other.
func TestAtomicSliceEndsWithAJob(t *testing.T) {
	p, set, _ := newAtomicPair(t, 0)
	p.must(p.ends[0].Node.MigrateSlots(t.Context(), slots.Of(7), p.ends[1].ID)) // has ended
	jobs := p.asked("CLUSTER MIGRATESLOTS", false)
	done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Slice: time.Nanosecond})
	if err != nil || !done.Slots.IsEmpty() || len(jobs()) != 0 {
		t.Errorf("%+v, %v, jobs %q", done, err, jobs())
	}
}

// A job that is not this move's is not waited for, and one that is in its way is an error.
func TestAtomicBesideOtherJobs(t *testing.T) {
	for name, tt := range map[string]struct {
		other func(p *pair, set slots.Set)
		says  string
		jobs  int
	}{
		"of other slots": {func(p *pair, _ slots.Set) {
			p.must(p.ends[0].Node.MigrateSlots(p.t.Context(), slots.Of(7), p.ends[1].ID))
		}, "", 1},
		"to another node": {func(p *pair, set slots.Set) {
			p.must(p.ends[0].Node.MigrateSlots(p.t.Context(), set, p.third()))
		}, "I am already migrating slot", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, set, _ := newAtomicPair(t, time.Hour)
			tt.other(p, set)
			jobs := p.asked("CLUSTER MIGRATESLOTS", false)
			done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Now: looks()})
			if len(jobs()) != tt.jobs || !done.Slots.IsEmpty() {
				t.Errorf("%+v, jobs %q", done, jobs())
			}
			if (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %q", err, tt.says)
			}
		})
	}
}

// A job that ends without success is an error that says which slots, between whom, and why; the keys are where they were.
func TestAtomicJobFails(t *testing.T) {
	for name, tt := range map[string]struct {
		strike func(p *pair)
		says   []string
	}{
		"cancelled": {func(p *pair) { p.must(p.ends[0].Node.CancelSlotMigrations(p.t.Context())) },
			[]string{"is cancelled", "Target: Connection lost to source"}},
		"the target is killed": {func(p *pair) { p.world.Kill(p.nodes[1]) }, []string{"is failed: Connection lost to target"}},
	} {
		t.Run(name, func(t *testing.T) {
			p, set, keys := newAtomicPair(t, time.Hour)
			_, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Now: looks()})
			p.must(err)
			var asked atomic.Int64
			p.world.OnCommand(func(_ *redistest.Node, args []string) {
				if strings.EqualFold(strings.Join(args[:min(2, len(args))], " "), "CLUSTER GETSLOTMIGRATIONS") {
					if asked.Add(1) == 3 { // it is being followed
						tt.strike(p)
						p.world.Run(time.Second)
					}
				}
			})
			done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Slice: time.Minute})
			for _, says := range append(tt.says, "moving slots from 10.0.0.1:6379 to 10.0.0.2:6379", "slots "+set.String()) {
				if err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("error %v does not say %q", err, says)
				}
			}
			if !done.Slots.IsEmpty() || len(p.nodes[0].Keys()) != len(keys) {
				t.Errorf("%+v, keys %v", done, p.nodes[0].Keys())
			}
		})
	}
}

// Nothing is begun after one of several jobs could not be followed.
func TestAtomicStopsAtAJobThatCannotBeFollowed(t *testing.T) {
	p, set, _ := newAtomicPair(t, time.Hour)
	for slot := range set.Slots() {
		p.must(p.ends[0].Node.MigrateSlots(t.Context(), slots.Of(slot), p.ends[1].ID))
	}
	var looked, begun atomic.Int64
	p.world.OnCommand(func(n *redistest.Node, args []string) {
		switch command := strings.ToUpper(strings.Join(args[:min(2, len(args))], " ")); command {
		case "CLUSTER GETSLOTMIGRATIONS":
			if looked.Add(1) == 3 { // who asks first is Describe, then it is asked for those under way
				p.world.FailNext(n, "CLUSTER", redistest.Failure{Kind: redistest.DropBefore})
			}
		case "CLUSTER MIGRATESLOTS":
			begun.Add(1)
		}
	})
	_, err := reshard.Atomic(t.Context(), p.move(set.Union(slots.Of(9))), reshard.Options{Now: looks()})
	if !errors.Is(err, redis.ErrUnreachable) || looked.Load() != 3 || begun.Load() > 0 {
		t.Errorf("%v after %d looks, %d jobs", err, looked.Load(), begun.Load())
	}
}

// What does not get through is told, and calling again finishes the move.
func TestAtomicAfterAnyCommandWasLost(t *testing.T) {
	for name, kind := range map[string]redistest.FailureKind{"command": redistest.DropBefore, "answer": redistest.DropAfter} {
		t.Run(name, func(t *testing.T) {
			for nth, reached := 1, true; reached; nth++ {
				p, set, keys := newAtomicPair(t, 0)
				var mu sync.Mutex
				seen := 0
				p.world.OnCommand(func(n *redistest.Node, args []string) {
					mu.Lock()
					defer mu.Unlock()
					if seen++; seen == nth {
						p.world.FailNext(n, args[0], redistest.Failure{Kind: kind})
					}
				})
				_, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Slice: time.Minute})
				p.world.OnCommand(nil)
				mu.Lock()
				reached = seen >= nth
				mu.Unlock()
				if reached != (err != nil) {
					t.Errorf("command %d: error %v", nth, err)
				}
				_, err = reshard.Atomic(t.Context(), p.move(set), reshard.Options{Slice: time.Minute})
				p.must(err)
				p.moved(set, keys)
			}
		})
	}
}

// An engine that does not move slots by itself says so; one that refuses to because of a module has its keys moved one by one.
func TestAtomicWhereTheEngineDoesNot(t *testing.T) {
	classic := newPair(t)
	_, err := reshard.Atomic(t.Context(), classic.move(slots.Of(5)), reshard.Options{})
	if !errors.Is(err, reshard.ErrNotAtomic) {
		t.Errorf("error %v", err)
	}
	for reply, moves := range map[string]bool{
		"ERR Module x does not support atomic slot migration": true,
		"ERR something else": false,
	} {
		p, set, keys := newAtomicPair(t, 0)
		p.world.FailNext(p.nodes[0], "CLUSTER MIGRATESLOTS", redistest.Failure{Kind: redistest.ReplyError, Reply: reply})
		done, err := reshard.Atomic(t.Context(), p.move(set), reshard.Options{Slice: time.Minute})
		if moves != (err == nil) || done.Slots.Equal(set) != moves {
			t.Errorf("%s: %+v, %v", reply, done, err)
		}
		if moves {
			p.moved(set, keys)
		}
	}
}

// What one move cannot is done key by key without a word; what another one failed at is still said.
func TestAtomicWithModulesTellsOtherFailures(t *testing.T) {
	p, set, keys := newAtomicPair(t, 0)
	p.world.FailNext(p.nodes[0], "CLUSTER MIGRATESLOTS",
		redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR Module x does not support atomic slot migration"})
	p.world.FailNext(p.nodes[1], "CLUSTER NODES", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
	moves := append(p.move(set), reshard.Move{From: p.ends[1], To: p.ends[0], Slots: slots.Of(9)})
	done, err := reshard.Atomic(t.Context(), moves, reshard.Options{Slice: time.Minute})
	var refused *redis.Error
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), "moving slots from 10.0.0.2:6379") {
		t.Errorf("error %v", err)
	}
	if !done.Slots.Equal(set) || done.Keys != int64(len(keys)) {
		t.Errorf("%+v", done)
	}
	p.moved(set, keys)
}
