// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

func TestSlotMarks(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		ctx, a, b := t.Context(), c.node(0), c.node(1)
		set := slots.Range(5, 7).Union(slots.Of(9000))
		must(t, b.SetSlots(ctx, set, redis.SlotImporting, c.ids[0]))
		must(t, a.InParallel().SetSlots(ctx, set, redis.SlotMigrating, c.ids[1]))
		want := map[uint16]string{5: c.ids[1], 6: c.ids[1], 7: c.ids[1], 9000: c.ids[1]}
		if diff := cmp.Diff(want, c.view(0).Migrating); diff != "" {
			t.Errorf("migrating (-want +got):\n%s", diff)
		}
		if got := c.view(1).Importing; len(got) != 4 || got[9000] != c.ids[0] {
			t.Errorf("importing %v", got)
		}
		must(t, b.SetSlots(ctx, slots.Of(5), redis.SlotOwned, c.ids[1]))
		must(t, a.ChangeSlots(ctx,
			redis.SlotChange{Slots: slots.Of(5), State: redis.SlotOwned, NodeID: c.ids[1]},
			redis.SlotChange{Slots: slots.Of(6, 7), State: redis.SlotStable}))
		must(t, b.SetSlots(ctx, slots.Of(6, 7, 9000), redis.SlotStable, "ignored"))
		must(t, a.SetSlots(ctx, slots.Of(9000), redis.SlotStable, ""))
		eventually(t, func() error {
			return c.settled(map[int]slots.Set{0: slots.All().Subtract(slots.Of(5)), 1: slots.Of(5)})
		})
	})
}

func TestSlotErrors(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		ctx, a, b, client := t.Context(), c.node(0), c.node(1), c.client()
		const key = "a \x00\xff\r\n key"
		slot := slots.Of(slots.KeySlot(key))
		must(t, client.Set(ctx, key, "1", 0).Err())
		batch := redis.MigrateBatch{Slot: slots.KeySlot(key), Keys: []string{key}}
		migrate := func(target redis.MigrateTarget) error {
			results, err := a.Migrate(ctx, target, []redis.MigrateBatch{batch})
			return errors.Join(append(results, err)...)
		}
		there := c.end(1)
		target := redis.MigrateTarget{Node: there.Node, IP: there.IP, Port: there.Port}
		nowhere := redis.MigrateTarget{Node: there.Node, IP: "127.0.0.1", Port: freePort(t)}
		stranger := redis.MigrateTarget{
			Node: c.pool.Node(c.servers[1].addr(), redis.Credentials{Password: "guessed-guessed"}), IP: there.IP, Port: there.Port,
		}
		for _, tc := range []struct {
			name string
			do   func() error
			want error
		}{
			{"import what it owns", func() error { return a.SetSlots(ctx, slot, redis.SlotImporting, c.ids[1]) }, redis.ErrAlreadyOwner},
			{"give what it does not own", func() error { return b.SetSlots(ctx, slot, redis.SlotMigrating, c.ids[0]) }, redis.ErrNotOwner},
			{"give to a nobody", func() error { return a.SetSlots(ctx, slot, redis.SlotMigrating, nobody) }, redis.ErrUnknownNode},
			{"give away with keys", func() error { return a.SetSlots(ctx, slot, redis.SlotOwned, c.ids[1]) }, redis.ErrSlotHasKeys},
			{"target does not import", func() error { return migrate(target) }, redis.ErrRefused},
			{"no target", func() error { return migrate(nowhere) }, redis.ErrTargetIO},
			{"wrong password", func() error { return migrate(stranger) }, redis.ErrRefused},
			{"busy key", func() error {
				must(t, b.SetSlots(ctx, slot, redis.SlotImporting, c.ids[0]))
				must(t, a.SetSlots(ctx, slot, redis.SlotMigrating, c.ids[1]))
				copyKey(t, c, 0, 1, key)
				return migrate(target)
			}, redis.ErrBusyKey},
		} {
			err := tc.do()
			if !errors.Is(err, tc.want) {
				t.Errorf("%s: %v, want one that is %q", tc.name, err, tc.want)
			}
			if text := fmt.Sprint(err); strings.Contains(text, password) || strings.Contains(text, "guessed") {
				t.Errorf("%s: the error shows a password: %s", tc.name, text)
			}
		}
		keys, err := a.KeysInSlots(ctx, slots.Range(0, 100).Union(slot), 10)
		if diff := cmp.Diff(map[uint16][]string{slots.KeySlot(key): {key}}, keys); err != nil || diff != "" {
			t.Errorf("KeysInSlots: %v (-want +got):\n%s", err, diff)
		}
		counts, err := a.CountKeysInSlots(ctx, slots.All())
		if diff := cmp.Diff(map[uint16]int64{slots.KeySlot(key): 1}, counts); err != nil || diff != "" {
			t.Errorf("CountKeysInSlots: %v (-want +got):\n%s", err, diff)
		}
		sizes, err := a.MemoryUsage(ctx, []string{key, key + "none"}, false)
		if err != nil || sizes[0] <= 0 || sizes[1] != 0 {
			t.Errorf("MemoryUsage: %v, %v", sizes, err)
		}
		batch.Replace = true
		must(t, migrate(target))
		must(t, migrate(target)) // none of the keys is there any more: no error
		if got, err := client.Get(ctx, key).Result(); err != nil || got != "1" {
			t.Errorf("the client reads %q, %v", got, err)
		}
	})
}

// copyKey gives another master, which must import the slot, the same key, as a MIGRATE does whose answer is lost.
func copyKey(t testing.TB, c *cluster, from, to int, key string) {
	t.Helper()
	client := c.direct(from)
	must(t, client.Do(t.Context(), "MIGRATE", "127.0.0.1", c.servers[to].port, "", 0, 1000, "COPY", "REPLACE", "AUTH",
		password, "KEYS", key).Err())
}

// Engines that count what slots bear are understood, and say so in words of their own when they do not.
func TestSlotStats(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 2, 1, 0)
		ctx, node, slot := t.Context(), c.node(0), slots.KeySlot("counted")
		must(t, c.client().Set(ctx, "counted", "1", 0).Err())
		stats, err := node.SlotStats(ctx)
		if errors.Is(err, redis.ErrUnsupported) {
			return // an old one
		}
		must(t, err)
		if got := stats[slot]; len(stats) != slots.Count || got.Keys != 1 {
			t.Errorf("%d slots, %+v", len(stats), got)
		}
		must(t, node.ConfigSet(ctx, "cluster-slot-stats-enabled", "yes"))
		for range 100 {
			must(t, c.client().Get(ctx, "counted").Err())
		}
		stats, err = node.SlotStats(ctx)
		must(t, err)
		if got := stats[slot]; got.Processor <= 0 || stats[slot^1].Processor != 0 {
			t.Errorf("with processor time: %+v, another slot: %+v", got, stats[slot^1])
		}
	})
}
