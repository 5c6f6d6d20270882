// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

type mover func(context.Context, []reshard.Move, reshard.Options) (reshard.Progress, error)

// complete calls until all slots are moved.
func complete(t testing.TB, move mover, o reshard.Options, moves ...reshard.Move) reshard.Progress {
	t.Helper()
	var total reshard.Progress
	for {
		var rest []reshard.Move
		for _, m := range moves {
			if m.Slots = m.Slots.Subtract(total.Slots); !m.Slots.IsEmpty() {
				rest = append(rest, m)
			}
		}
		if len(rest) == 0 {
			return total
		}
		done, err := move(t.Context(), rest, o)
		must(t, err)
		total.Slots = total.Slots.Union(done.Slots)
		total.Keys, total.Bytes = total.Keys+done.Keys, total.Bytes+done.Bytes
		total.Conflicts += done.Conflicts
		total.LongestBlock = max(total.LongestBlock, done.LongestBlock)
	}
}

// Slots of two masters go to a third one and back, while clients write and read.
func TestSlotsMoveUnderLoad(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 2, 3)
		first, second := slots.Range(100, 699), slots.Range(9000, 9599)
		client := c.client()
		var keys []string
		for _, tag := range append(tags(first, 3), tags(second, 3)...) {
			keys = append(keys, everyType(t, client, tag)...)
		}
		before := contents(t, client, keys)
		all := slots.All().Split(2)
		ways := []mover{reshard.Classic}
		if c.view(0).Atomic != slots.AtomicNone {
			ways = append(ways, reshard.Atomic)
		}
		for _, way := range ways {
			load := startLoad(c)
			done := complete(t, way, reshard.Options{}, c.move(0, 2, first), c.move(1, 2, second))
			if done.Keys < int64(len(keys)) || done.Conflicts != 0 || !done.Slots.Equal(first.Union(second)) {
				t.Errorf("progress %+v", done)
			}
			eventually(t, func() error {
				return c.settled(map[int]slots.Set{0: all[0].Subtract(first), 1: all[1].Subtract(second), 2: first.Union(second)})
			})
			if diff := cmp.Diff(before, contents(t, client, keys)); diff != "" {
				t.Errorf("content (-before +after):\n%s", diff)
			}
			complete(t, way, reshard.Options{Pipeline: 7}, c.move(2, 0, first), c.move(2, 1, second))
			load.end()
			eventually(t, func() error { return c.settled(map[int]slots.Set{0: all[0], 1: all[1], 2: {}}) })
		}
		for i := range c.masters {
			c.replicaFollows(i)
		}
	})
}

// replicaFollows waits until the master's replica has all of its data, and compares it.
func (c *cluster) replicaFollows(i int) {
	c.t.Helper()
	ctx, master := c.t.Context(), c.direct(i)
	replica := goredis.NewClient(&goredis.Options{
		Addr: c.servers[c.masters+i].addr(), Password: password, Protocol: 2,
		OnConnect: func(ctx context.Context, conn *goredis.Conn) error { return conn.ReadOnly(ctx).Err() },
	})
	c.t.Cleanup(func() { _ = replica.Close() }) // the test is over either way
	eventually(c.t, func() error {
		a, b := c.view(i), c.view(c.masters+i)
		return want(b.MasterLinkUp && a.ReplicationOffset == b.ReplicationOffset, "%d replicated of %d",
			b.ReplicationOffset, a.ReplicationOffset)
	})
	keys, err := master.Keys(ctx, "*").Result()
	must(c.t, err)
	if diff := cmp.Diff(contents(c.t, master, keys), contents(c.t, replica, keys)); diff != "" {
		c.t.Errorf("master %d (-) and its replica (+):\n%s", i, diff)
	}
}

// The operator may be killed at any moment: whatever is left is finished by calling again.
func TestClassicGoesOnAfterItWasCutOff(t *testing.T) {
	const rounds = 20
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		client, set := c.client(), slots.Range(0, 399)
		var keys []string
		for _, tag := range tags(set, 200) {
			for _, name := range []string{"a", "b", "c"} {
				keys = append(keys, name+"{"+tag+"}")
				must(t, client.Set(t.Context(), keys[len(keys)-1], name+tag, 0).Err())
			}
		}
		before := contents(t, client, keys)
		owned := map[int]slots.Set{0: slots.All(), 1: {}}
		for round := range rounds {
			from, to := round%2, 1-round%2
			ctx, cancel := context.WithCancel(t.Context())
			timer := time.AfterFunc(time.Duration(rand.Int64N(int64(60*time.Millisecond))), cancel)
			_, err := reshard.Classic(ctx, []reshard.Move{c.move(from, to, set)}, reshard.Options{Pipeline: 2})
			timer.Stop()
			cancel()
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("round %d: %v", round, err)
			}
			complete(t, reshard.Classic, reshard.Options{}, c.move(from, to, set))
			owned[from], owned[to] = owned[from].Subtract(set), owned[to].Union(set)
			eventually(t, func() error { return c.settled(owned) })
		}
		if diff := cmp.Diff(before, contents(t, client, keys)); diff != "" {
			t.Errorf("content (-before +after):\n%s", diff)
		}
		if n := c.view(0).Keys + c.view(1).Keys; n != int64(len(keys)) {
			t.Errorf("%d keys instead of %d", n, len(keys))
		}
	})
}

func TestClassicRefusesWhatIsNotItsOwn(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 2, 0)
		ctx := t.Context()
		must(t, c.node(2).SetSlots(ctx, slots.Of(5), redis.SlotImporting, c.ids[0]))
		must(t, c.node(0).SetSlots(ctx, slots.Of(5), redis.SlotMigrating, c.ids[2]))
		done, err := reshard.Classic(ctx, []reshard.Move{c.move(0, 1, slots.Of(4, 5, 6, 9000, 9001))}, reshard.Options{})
		if err == nil || !strings.Contains(err.Error(), "slots 5: they are open to or from another node") ||
			!strings.Contains(err.Error(), c.node(0).Addr()) {
			t.Errorf("error %v", err)
		}
		// 9000 and 9001 are the destination's already.
		if got := done.Slots.String(); got != "4,6,9000-9001" {
			t.Errorf("moved %s", got)
		}
		_, err = reshard.Classic(ctx, []reshard.Move{c.move(0, 2, slots.Of(9000))}, reshard.Options{})
		if err == nil || !strings.Contains(err.Error(), "slots 9000: neither end owns them") {
			t.Errorf("error %v", err)
		}
	})
}

// The answer to a MIGRATE was lost: its keys are at both ends. Clients were served by the source.
func TestClassicMeetsKeysAtBothEnds(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		ctx, client := t.Context(), c.client()
		keys := everyType(t, client, "both")
		set := slots.Of(slots.KeySlot("both"))
		must(t, c.node(1).SetSlots(ctx, set, redis.SlotImporting, c.ids[0]))
		must(t, c.node(0).SetSlots(ctx, set, redis.SlotMigrating, c.ids[1]))
		for _, key := range keys[1:] {
			copyKey(t, c, 0, 1, key)
		}
		must(t, client.Set(ctx, "string:{both}", "written later", 0).Err())
		must(t, client.HSet(ctx, "hash:{both}", "written", "later").Err())
		before := contents(t, client, keys)
		done := complete(t, reshard.Classic, reshard.Options{}, c.move(0, 1, set))
		if done.Conflicts != 2 {
			t.Errorf("%d conflicts", done.Conflicts)
		}
		if diff := cmp.Diff(before, contents(t, client, keys)); diff != "" {
			t.Errorf("content (-before +after):\n%s", diff)
		}
		eventually(t, func() error { return c.settled(map[int]slots.Set{0: slots.All().Subtract(set), 1: set}) })
	})
}

// One slot with more and larger keys than a group may have.
func TestBigKeysAndCrowdedSlots(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		ctx, client := t.Context(), c.client()
		c.bearSilence() // of a node that moves a large key
		must(t, client.Set(ctx, "string{big}", strings.Repeat("0123456789", 5<<20), 0).Err())
		must(t, client.Eval(ctx, `for i=1,100000 do redis.call('HSET',KEYS[1],i,i) end
			for i=1,5000 do redis.call('SET',i..KEYS[1],i) end return 1`, []string{"hash{big}"}).Err())
		set := slots.Of(slots.KeySlot("big"))
		done := complete(t, reshard.Classic, reshard.Options{Slice: 50 * time.Millisecond}, c.move(0, 1, set))
		if done.Keys != 5002 || done.Bytes < 50<<20 || c.view(0).Keys != 0 || c.view(1).Keys != 5002 {
			t.Errorf("%d keys, %d bytes; %d and %d keys are there", done.Keys, done.Bytes, c.view(0).Keys, c.view(1).Keys)
		}
		if n, err := client.HLen(ctx, "hash{big}").Result(); err != nil || n != 100000 {
			t.Errorf("the hash has %d fields, %v", n, err)
		}
		t.Logf("longest MIGRATE %v", done.LongestBlock)
	})
}

// Keys that expire while they are moved are gone at both ends.
func TestKeysThatExpireOnTheWay(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		client, set := c.client(), slots.Range(0, 199)
		for i, tag := range tags(set, 150) {
			must(t, client.Set(t.Context(), tag, "x", time.Duration(1+i)*time.Millisecond).Err())
		}
		complete(t, reshard.Classic, reshard.Options{}, c.move(0, 1, set))
		eventually(t, func() error {
			a, b := c.view(0).Keys, c.view(1).Keys
			return want(a+b == 0, "%d and %d keys", a, b)
		})
		eventually(t, func() error { return c.settled(map[int]slots.Set{0: slots.All().Subtract(set), 1: set}) })
	})
}
