// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// What is left at a source that has lost its slots goes to the owner, whose values stay; of slots that move at the same time, those of
// the source do. A source that does not hear of its loss is told.
func TestOwnersValuesStay(t *testing.T) {
	p, ctx := newPair(t), t.Context()
	lost, set := slots.Of(slots.KeySlot("b")), slots.Of(slots.KeySlot("b"), slots.KeySlot("c"))
	p.write(0, "{b}1", "{b}2", "{b}3", "SET {c}1 old")
	for range 4 {
		p.world.FailNext(p.nodes[0], "MIGRATE", redistest.Failure{Kind: redistest.TargetReplyLost})
	}
	moves := []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
	if _, err := reshard.Classic(ctx, moves, reshard.Options{Pipeline: 1}); err == nil {
		t.Fatal("the answer was not lost")
	}
	p.write(0, "SET {b}1 changed", "{c}1")
	p.world.Silence(true) // the source does not hear that the destination is the owner
	p.must(p.ends[1].Node.ChangeSlots(ctx, redis.SlotChange{Slots: lost, State: redis.SlotOwned, NodeID: p.ends[1].ID}))
	done, err := reshard.Classic(ctx, moves, reshard.Options{})
	if err != nil || done.Conflicts != 2 || !done.Slots.Equal(set) || done.Bytes == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	if owned, err := p.ends[0].Node.OwnSlots(ctx); err != nil || !owned.Intersect(set).IsEmpty() {
		t.Errorf("the source thinks that it owns %s, %v", owned.Intersect(set), err)
	}
	p.world.Silence(false)
	p.moved(set, []string{"{b}1", "{b}2", "{b}3", "{c}1"})
}

// The keys of a move that the owner knows nothing of any more go back to it, and are measured as others are.
func TestMoveIsTakenBack(t *testing.T) {
	p, set := newPair(t), slots.Of(slots.KeySlot("b"))
	p.write(0, "{b}1", "{b}2")
	p.world.FailNext(p.nodes[0], "MIGRATE", redistest.Failure{Kind: redistest.DropAfter})
	if _, err := reshard.Classic(t.Context(), p.move(set), reshard.Options{}); err == nil || len(p.nodes[1].Keys()) != 2 {
		t.Fatalf("%v, keys %v", err, p.nodes[1].Keys())
	}
	p.must(p.ends[0].Node.SetSlots(t.Context(), set, redis.SlotStable, ""))
	done, err := reshard.Classic(t.Context(), []reshard.Move{{From: p.ends[1], To: p.ends[0], Slots: set}}, reshard.Options{})
	if err != nil || done.Keys != 2 || done.Bytes == 0 || !done.Slots.Equal(set) {
		t.Errorf("%+v, %v", done, err)
	}
	if here, there := p.nodes[0].Keys(), p.nodes[1].Keys(); len(here) != 2 || len(there) != 0 {
		t.Errorf("the owner has %v, the other %v", here, there)
	}
}

// What is left at a source that has lost its slots and is more than a slice has time for, is gone on with; what fails is told.
func TestOwnersKeysTakeSeveralSlices(t *testing.T) {
	p, ctx := newPair(t), t.Context()
	set := slots.Of(slots.KeySlot("b"))
	keys := make([]string, 30)
	for i := range keys {
		keys[i] = fmt.Sprintf("{b}%d", i)
	}
	p.write(0, keys...)
	p.world.Silence(true) // the source does not hear that the destination is the owner
	p.must(p.ends[1].Node.ChangeSlots(ctx, redis.SlotChange{Slots: set, State: redis.SlotOwned, NodeID: p.ends[1].ID}))
	p.world.FailNext(p.nodes[0], "MIGRATE", redistest.Failure{Kind: redistest.DropBefore})
	moves := []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
	if done, err := reshard.Classic(ctx, moves, reshard.Options{}); err == nil || !done.Slots.IsEmpty() {
		t.Errorf("a lost command: %+v, %v", done, err)
	}
	now := time.Unix(0, 0)
	options := reshard.Options{Pipeline: 1, KeysPerSecond: 1000000, Slice: time.Second, Now: func() time.Time {
		now = now.Add(100 * time.Millisecond)
		return now
	}}
	calls := 0
	for moved := (slots.Set{}); !moved.Equal(set); calls++ {
		done, err := reshard.Classic(ctx, moves, options)
		p.must(err)
		moved = done.Slots
	}
	if calls < 2 {
		t.Errorf("%d calls", calls)
	}
	p.world.Silence(false)
	p.moved(set, keys)
}

// More keys than are listed at once are moved by one call.
func TestMoreKeysThanAreListedAtOnce(t *testing.T) {
	p := newPair(t)
	keys := make([]string, 2001)
	for i := range keys {
		keys[i] = fmt.Sprintf("{b}%d", i)
	}
	p.write(0, keys...)
	set := slots.Of(slots.KeySlot("b"), 5)
	moves := []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: set}}
	done, err := reshard.Classic(t.Context(), moves, reshard.Options{Slice: time.Minute})
	if err != nil || done.Keys != int64(len(keys)) || !done.Slots.Equal(set) || done.Bytes == 0 {
		t.Errorf("%+v, %v", done, err)
	}
	p.moved(set, keys)
}

// Slots that are open in another direction, or that neither end owns, are not touched, and those beside them move.
func TestSlotsOfOthersAreNotTouched(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(p *pair)
		says  string
	}{
		"the source gives it to another": {func(p *pair) {
			third := p.third()
			p.must(p.ends[0].Node.ChangeSlots(t.Context(), redis.SlotChange{Slots: slots.Of(7), State: redis.SlotMigrating, NodeID: third}))
		}, "slots 7: they are open to or from another node"},
		"the destination takes it from another": {func(p *pair) {
			third := p.third()
			p.must(p.ends[1].Node.ChangeSlots(t.Context(), redis.SlotChange{Slots: slots.Of(7), State: redis.SlotImporting, NodeID: third}))
		}, "slots 7: they are open to or from another node"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPair(t)
			tt.spoil(p)
			done, err := reshard.Classic(t.Context(), []reshard.Move{{From: p.ends[0], To: p.ends[1], Slots: slots.Of(7, 8)}}, reshard.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %s", err, tt.says)
			}
			if diff := cmp.Diff("8", done.Slots.String()); diff != "" {
				t.Errorf("slots that moved: %s", diff)
			}
		})
	}
}

// third adds a node that the first two know, and returns its ID.
func (p *pair) third() string {
	p.t.Helper()
	node := p.world.AddNode(redistest.NodeOptions{IP: "10.0.0.3", Password: "s3cret-s3cret"})
	p.must(p.ends[0].Node.Meet(p.t.Context(), "10.0.0.3", 6379, 16379))
	p.world.Run(10 * time.Second)
	return node.ID()
}
