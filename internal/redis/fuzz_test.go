// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// calls are the methods of a node by what they read; exchanges is how many answers they read at the most, without the greeting
// and those of largeLimits.
var calls = []struct {
	name      string
	exchanges int
	large     bool
	call      func(context.Context, *Node) error
}{
	{"Describe", 2, false, func(ctx context.Context, n *Node) error { _, err := n.Describe(ctx, "maxmemory", "save"); return err }},
	{"Access", 1, false, func(ctx context.Context, n *Node) error { _, err := n.Access(ctx); return err }},
	{"ConfigGet", 1, false, func(ctx context.Context, n *Node) error { _, err := n.ConfigGet(ctx, "hz"); return err }},
	{"Identify", 1, false, func(ctx context.Context, n *Node) error { _, err := n.Identify(ctx); return err }},
	{"Ping", 1, false, func(ctx context.Context, n *Node) error { return n.Ping(ctx) }},
	{"OwnSlots", 1, false, func(ctx context.Context, n *Node) error { _, err := n.OwnSlots(ctx); return err }},
	{"BumpEpoch", 1, false, func(ctx context.Context, n *Node) error { return n.BumpEpoch(ctx) }},
	{"RewriteAOF", 1, false, func(ctx context.Context, n *Node) error { return n.RewriteAOF(ctx) }},
	{"ReopenAOF", 1, false, func(ctx context.Context, n *Node) error { return n.ReopenAOF(ctx) }},
	{"Forget", 1, false, func(ctx context.Context, n *Node) error { return n.Forget(ctx, "a", "b") }},
	{"ConfigSet", 1, false, func(ctx context.Context, n *Node) error { return n.ConfigSet(ctx, "masterauth", "s3cret-s3cret") }},
	{"SetSlots", 1, false, func(ctx context.Context, n *Node) error { return n.SetSlots(ctx, slots.Range(0, 9), SlotStable, "") }},
	{"SlotMigrations of Valkey", 1, false,
		func(ctx context.Context, n *Node) error {
			_, err := n.SlotMigrations(ctx, slots.AtomicSource)
			return err
		}},
	{"SlotMigrations of Redis", 1, false, func(ctx context.Context, n *Node) error {
		_, err := n.SlotMigrations(ctx, slots.AtomicDestination)
		return err
	}},
	{"CancelSlotMigrations", 2, false, func(ctx context.Context, n *Node) error { return n.CancelSlotMigrations(ctx) }},
	{"ImportSlots", 1, false, func(ctx context.Context, n *Node) error { _, err := n.ImportSlots(ctx, slots.Of(1)); return err }},
	{"CountKeysInSlots", 1, false, func(ctx context.Context, n *Node) error {
		_, err := n.CountKeysInSlots(ctx, slots.Range(0, 9))
		return err
	}},
	{"MemoryUsage", 1, false, func(ctx context.Context, n *Node) error {
		_, err := n.MemoryUsage(ctx, []string{"a", "b"}, true)
		return err
	}},
	{"Migrate", 1, false, func(ctx context.Context, n *Node) error {
		_, err := n.Migrate(ctx, MigrateTarget{Node: n, IP: "10.0.0.8", Port: 6379}, []MigrateBatch{{Slot: 1, Keys: []string{"a"}}})
		return err
	}},
	{"KeysInSlots", 1, true, func(ctx context.Context, n *Node) error {
		_, err := n.KeysInSlots(ctx, slots.Range(0, 2), 10)
		return err
	}},
	{"Fingerprint", 2, true, func(ctx context.Context, n *Node) error { _, err := n.Fingerprint(ctx, "key"); return err }},
	{"Functions", 1, true, func(ctx context.Context, n *Node) error { _, err := n.Functions(ctx); return err }},
	{"ForceDelete", 1, false, func(ctx context.Context, n *Node) error { return n.Discard(ctx, []string{"a", "b"}) }},
}

// FuzzAnswer: whatever bytes arrive, each method ends with a value or an error of bounded length, and allocates no more than
// 1 MiB for an answer beside a multiple of what arrived.
func FuzzAnswer(f *testing.F) {
	read := func(file string) string {
		text, err := os.ReadFile(filepath.Join("testdata", file))
		if err != nil {
			f.Fatal(err)
		}
		return string(text)
	}
	bulk := func(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }
	const settings = "*2\r\n$20\r\ncluster-node-timeout\r\n$4\r\n5000\r\n"
	for _, engine := range engines {
		f.Add(uint8(0), false, []byte(bulk(readCapture(f, engine, "replica.info"))+bulk(readCapture(f, engine, "replica.clusterinfo"))+
			bulk(readCapture(f, engine, "replica.nodes"))+settings+"*2\r\n*1\r\n+a\r\n*-1\r\n*0\r\n"))
	}
	f.Add(uint8(1), false, []byte("*2\r\n"+bulk("user default on nopass ~* &* +@all")+bulk("user a off #"+strings.Repeat("0", 64))+"*0\r\n"))
	f.Add(uint8(2), false, []byte("*2\r\n$2\r\nhz\r\n$2\r\n10\r\n"))
	f.Add(uint8(8), false, []byte(read("valkey-9.1.2/source.migrations")))
	f.Add(uint8(14), false, []byte("-IOERR no\r\n"))
	f.Add(uint8(15), false, []byte("*1\r\n+a\r\n*0\r\n*-1\r\n"))
	f.Add(uint8(16), false, []byte("+OK\r\n+hash\r\n+OK\r\n*2\r\n+a\r\n+b\r\n"))
	f.Add(uint8(17), false, []byte(bulk("functions")))
	for _, answer := range []string{"$9223372036854775805\r\n", "*60000000\r\n", "*2147483647\r\n", "+" + strings.Repeat("a", 100), "$-2\r\n",
		strings.Repeat("*1\r\n", 20), "%5\r\n", ">5\r\n", "|1\r\n", "(1\r\n", "_\r\n", "#t\r\n", ",1\r\n", "!5\r\nhello\r\n", "-redis: nil\r\n",
		":a\r\n"} {
		f.Add(uint8(0), true, []byte(answer))
		f.Add(uint8(4), false, []byte(answer))
		f.Add(uint8(17), false, []byte(answer))
	}
	f.Fuzz(func(t *testing.T, method uint8, greets bool, text []byte) {
		c := calls[int(method)%len(calls)]
		greeting := noGreeting
		if greets {
			greeting, text = string(text), nil
		}
		const forAnswer, perByte = 1 << 20, 20
		most := c.exchanges*forAnswer + perByte*(len(text)+len(greeting))
		if c.large {
			most += 2 * largeLimits.bytes
		}
		var err error
		if n := fewest(most, func() { err = c.call(t.Context(), answers(t, greeting, text)) }); n > most {
			t.Errorf("%s: %d bytes are allocated for %d that arrive", c.name, n, len(text)+len(greeting))
		}
		var failure *Error
		if err != nil && (len(err.Error()) > 1000 || strings.ContainsFunc(err.Error(), func(r rune) bool { return !unicode.IsPrint(r) })) {
			t.Errorf("%s: the error is %q", c.name, err)
		}
		if err != nil && !errors.As(err, &failure) && c.name != "Fingerprint" {
			t.Errorf("%s: the error is %T: %v", c.name, err, err)
		}
	})
}

// FuzzInfo: what is read of INFO is in range, however large the numbers.
func FuzzInfo(f *testing.F) {
	for _, engine := range engines {
		f.Add(readCapture(f, engine, "replica.info"), readCapture(f, engine, "replica.clusterinfo"))
	}
	f.Add(infoText("db0:keys=9223372036854775807", "db1:keys=9223372036854775807"),
		"cluster_state:ok\r\ncluster_slots_assigned:9223372036854775807")
	f.Fuzz(func(t *testing.T, info, clusterInfo string) {
		var view View
		if readInfo(&view, info) == nil {
			for name, n := range map[string]int64{"keys": view.Keys, "memory": view.UsedMemory, "limit": view.MaxMemory,
				"libraries": view.Libraries} {
				if n < 0 || n > mostCounted {
					t.Errorf("%s: %d", name, n)
				}
			}
			if view.Uptime < 0 || view.Uptime > longest || view.MasterLinkDownFor < 0 || view.MasterLinkDownFor > longest ||
				view.ReplicationOffset < 0 {
				t.Errorf("times %s, %s, offset %d", view.Uptime, view.MasterLinkDownFor, view.ReplicationOffset)
			}
			if len(view.Version) > 32 || checkNodeID(view.RunID) != nil {
				t.Errorf("version %q, run ID %q", view.Version, view.RunID)
			}
		}
		if readClusterInfo(&view, clusterInfo) == nil && (view.SlotsAssigned < 0 || view.SlotsAssigned > slots.Count) {
			t.Errorf("%d slots assigned", view.SlotsAssigned)
		}
	})
}

// FuzzACL: what is read of ACL LIST are digests and users in numbers that can be worked off.
func FuzzACL(f *testing.F) {
	f.Add("user default on nopass ~* &* +@all\nuser exporter on #" + strings.Repeat("a", 64) + " ~users:x +ping")
	f.Add("user default on #abc")
	f.Fuzz(func(t *testing.T, text string) {
		access, err := readUsers(strings.Split(text, "\n"))
		if err != nil {
			return
		}
		for _, digest := range access.Passwords {
			if len(digest) != 64 {
				t.Errorf("a digest of %d characters", len(digest))
			}
		}
		for name := range access.Users {
			if len(name) > longestName {
				t.Errorf("a name of %d characters", len(name))
			}
		}
	})
}
