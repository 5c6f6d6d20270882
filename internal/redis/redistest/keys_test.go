// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/redistest"
)

// holders are the nodes that have the key, by index.
func (f *fixture) holders(key string) []int {
	found := []int{}
	for i, n := range f.nodes {
		for _, holder := range f.world.Holders(key) {
			if holder == n {
				found = append(found, i)
			}
		}
	}
	return found
}

func (f *fixture) wantHolders(key string, want ...int) {
	f.t.Helper()
	if diff := cmp.Diff(want, f.holders(key)); diff != "" {
		f.t.Errorf("holders of %s (-want +got):\n%s", key, diff)
	}
}

// session sends commands one after the other on one connection and returns the answers, one word each.
func (f *fixture) session(i int, commands ...string) []string {
	f.t.Helper()
	conn, err := f.world.Dial(f.t.Context(), f.nodes[i].Addr())
	f.must(err)
	defer func() { _ = conn.Close() }() // the test is over
	var answers []string
	for _, command := range commands {
		words := strings.Fields(command)
		_, err := conn.Write([]byte(encode(words)))
		f.must(err)
		answer := make([]byte, 512)
		n, err := conn.Read(answer)
		f.must(err)
		answers = append(answers, strings.ReplaceAll(strings.TrimSpace(string(answer[:n])), "\r\n", " "))
	}
	return answers
}

func TestKeysOfAnOpenSlot(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "SET {b}1 one")
		f.say(0, "MSET {b}2 two {b}3 three")
		f.open()
		f.say(0, "MIGRATE 10.0.0.2 6379 {b}1 0 1000")
		const ask, moved = "ASK 3300 10.0.0.2:6379", "MOVED 3300 10.0.0.1:6379"
		const tryAgain = "TRYAGAIN Multiple keys request during rehashing of slot"
		f.want(0, "GET {b}2", "two")
		f.want(0, "GET {b}1", ask)
		f.want(0, "SET {b}new x", ask)
		f.want(0, "MGET {b}1 {b}new", ask)
		f.want(0, "MGET {b}1 {b}2", tryAgain)
		f.want(0, "MGET {b}2 {b}3", "[two three]")
		f.want(0, "DEL {b}2 {b}1", tryAgain)
		f.want(0, "MGET {b}2 a", "CROSSSLOT Keys in request don't hash to the same slot")
		f.want(1, "GET {b}1", moved)
		f.want(1, "EXISTS {b}1 {b}1", moved)
		got := f.session(1, "ASKING", "GET {b}1", "GET {b}1", "ASKING", "MGET {b}1 {b}2", "ASKING", "SET {b}9 nine",
			"ASKING", "MGET {b}9 {b}1", "ASKING", "EXISTS {b}9 {b}9", "ASKING", "PING", "UNLINK {b}9", "ASKING", "UNLINK {b}9")
		want := []string{
			"+OK", "$3 one", "-" + moved, "+OK", "-" + tryAgain, "+OK", "+OK",
			"+OK", "*2 $4 nine $3 one", "+OK", ":2", "+OK", "+PONG", "-" + moved, "+OK", ":1",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at the importer (-want +got):\n%s", diff)
		}
		// A replica of Valkey knows that the slot is open and tells those who read there.
		got = f.session(3, "GET {b}2", "READONLY", "GET {b}2", "GET {b}1", "SET {b}2 x", "READWRITE", "GET {b}2")
		want = []string{"-" + moved, "+OK", "$3 two", "$-1", "-" + moved, "+OK", "-" + moved}
		if f.valkey {
			want[3] = "-" + ask
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("at a replica (-want +got):\n%s", diff)
		}
	})
}

func TestMigrateAnswers(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "MSET {b}1 one {b}2 two")
		f.open()
		database := "ERR SELECT is not allowed in cluster mode"
		if f.valkey {
			database = "ERR DB index is out of range"
		}
		const to, said = "MIGRATE 10.0.0.2 6379 ", "ERR Target instance replied with error: "
		for _, tc := range []struct {
			node          int
			command, want string
		}{
			{0, to + "{b}0 0 1000", "NOKEY"},
			{0, to + `"" 0 1000 KEYS {b}0 {b}00`, "NOKEY"},
			{0, to + "{b}1 0 1000 KEYS {b}1", "ERR When using MIGRATE KEYS option, the key argument must be set to the empty string"},
			{0, to + "{b}1 0 1000 FAST", "ERR syntax error"},
			{0, to + "{b}1 0 1000 AUTH", "ERR syntax error"},
			{0, to + "{b}1 0 1000 AUTH2 default", "ERR syntax error"},
			{0, to + "{b}1 0 soon", "ERR value is not an integer or out of range"},
			{0, to + "{b}1 0", "ERR wrong number of arguments for 'migrate' command"},
			{0, "MIGRATE 10.9.9.9 6379 {b}1 0 1000", "IOERR error or timeout writing to target instance"},
			{0, "MIGRATE 10.0.0.3 6379 {b}1 0 1000", said + "MOVED 3300 10.0.0.1:6379"},
			{0, "MIGRATE 10.0.0.4 6379 {b}1 0 1000", said + "MOVED 3300 10.0.0.1:6379"},
			{0, to + "{b}1 1 1000", said + database},
			{0, to + "{b}1 0 1000", said + "BUSYKEY Target key name already exists."}, // the target has executed the last one
			{0, to + `"" 0 1000 KEYS {b}2 {b}1`, said + "BUSYKEY Target key name already exists."},
			{0, to + "{b}1 0 1000 COPY REPLACE", "OK"},
			{0, to + "{b}1 0 1000 REPLACE", "OK"},
			{3, to + "{b}1 0 1000", "MOVED 3300 10.0.0.1:6379"},
			{2, to + "{b}1 0 1000", "MOVED 3300 10.0.0.1:6379"},
			{1, "RESTORE {b}1 0 x", "MOVED 3300 10.0.0.1:6379"},
			{1, "RESTORE-ASKING {b}0 0 x", "ERR DUMP payload version or checksum are wrong"},
			{0, "FLUSHALL", "OK"},
			{3, "FLUSHALL", "READONLY You can't write against a read only replica."},
		} {
			f.want(tc.node, tc.command, tc.want)
		}
		f.wantHolders("{b}1", 1, 4)
		f.wantHolders("{b}2", 1, 4)
	})
}

func TestMigrateWithPassword(t *testing.T) {
	f := formOf(t, redistest.NodeOptions{}, redistest.Options{InstantGossip: true})
	f.say(0, "MSET {b}1 one {b}2 two")
	f.want(0, "MIGRATE 10.0.0.2 6379 {b}1 0 1000 AUTH secret", "ERR Target instance replied with error: ERR AUTH <password> "+
		"called without any password configured for the default user. Are you sure your configuration is correct?")
	f.wantHolders("{b}1", 0, 3)

	locked := f.world.AddNode(redistest.NodeOptions{IP: "10.0.0.7", Password: "secret"})
	f.nodes = append(f.nodes, locked)
	f.must(f.node(0).Meet(t.Context(), "10.0.0.7", 6379, 16379))
	f.world.Run(3 * time.Second)
	for _, tc := range []struct{ auth, want string }{
		{"", "ERR Target instance replied with error: NOAUTH Authentication required."},
		{" AUTH guessed", "ERR Target instance replied with error: WRONGPASS invalid username-password pair or user is disabled."},
		{" AUTH secret", "ERR Target instance replied with error: MOVED 3300 10.0.0.1:6379"},
		{" AUTH2 default secret", "ERR Target instance replied with error: MOVED 3300 10.0.0.1:6379"},
	} {
		f.want(0, "MIGRATE 10.0.0.7 6379 {b}1 0 1000"+tc.auth, tc.want)
	}
	f.say(0, "CLUSTER SETSLOT 3300 MIGRATING "+locked.ID())
	got := f.session(6, "AUTH secret", "CLUSTER SETSLOT 3300 IMPORTING "+f.nodes[0].ID())
	if diff := cmp.Diff([]string{"+OK", "+OK"}, got); diff != "" {
		t.Fatalf("(-want +got):\n%s", diff)
	}
	f.say(0, "MIGRATE 10.0.0.7 6379 {b}1 0 1000 AUTH secret")
	f.wantHolders("{b}1", 6)
}

// Whatever interrupts MIGRATE, each key is at one end or at both, never at none.
func TestMigrateInterrupted(t *testing.T) {
	const command = `MIGRATE 10.0.0.2 6379 "" 0 1000 KEYS {b}1 {b}2`
	for _, tc := range []struct {
		name      string
		interrupt func(f *fixture)
		want      string
		holders   []int
	}{
		{"refused", func(f *fixture) {
			f.world.FailNext(f.nodes[0], "migrate", redistest.Failure{Kind: redistest.ReplyError, Reply: "ERR no"})
		}, "ERR no", []int{0, 3}},
		{"the target's reply is lost", func(f *fixture) {
			f.world.FailNext(f.nodes[0], "MIGRATE", redistest.Failure{Kind: redistest.TargetReplyLost})
		}, "IOERR error or timeout reading to target instance", []int{0, 1, 3, 4}},
		{"the reply is lost", func(f *fixture) {
			f.world.FailNext(f.nodes[0], "MIGRATE", redistest.Failure{Kind: redistest.DropAfter})
		}, "EOF", []int{1, 4}},
		{"the target is cut off", func(f *fixture) { f.world.Partition(f.nodes[1]) },
			"IOERR error or timeout connecting to the client", []int{0, 3}},
		{"the target is killed", func(f *fixture) {
			f.world.OnCommand(func(n *redistest.Node, args []string) {
				if args[0] == "MIGRATE" && n == f.nodes[0] {
					f.world.Kill(f.nodes[1])
				}
			})
		}, "IOERR error or timeout writing to target instance", []int{0, 3}},
		{"the source is killed", func(f *fixture) {
			f.world.OnCommand(func(_ *redistest.Node, args []string) {
				if args[0] == "MIGRATE" {
					f.world.OnCommand(nil)
					f.world.Kill(f.nodes[0])
				}
			})
		}, "EOF", []int{0, 3}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := form(t)
			f.say(0, "MSET {b}1 one {b}2 two")
			f.open()
			tc.interrupt(f)
			f.want(0, command, tc.want)
			f.wantHolders("{b}1", tc.holders...)
			f.wantHolders("{b}2", tc.holders...)
		})
	}
}

func TestDumpAndMemory(t *testing.T) {
	f := form(t)
	f.say(0, "MSET {b}1 same {b}2 same {b}3 other")
	if one, two := f.tell(0, "DUMP {b}1"), f.tell(0, "DUMP {b}2"); one != two || one == f.tell(0, "DUMP {b}3") {
		t.Errorf("%q and %q", one, two)
	}
	f.want(0, "DUMP {b}0", "nil")
	f.want(0, "MEMORY USAGE {b}1 SAMPLES 0", "72")
	f.want(0, "MEMORY USAGE {b}0", "nil")
	f.want(1, "MEMORY USAGE {b}1", "MOVED 3300 10.0.0.1:6379")
	payload, err := f.data(0).Dump(t.Context(), "{b}1").Result()
	f.must(err)
	f.must(f.data(0).Restore(t.Context(), "{b}4", 0, payload).Err())
	f.want(0, "GET {b}4", "same")
}

func encode(words []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, word := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
	}
	return b.String()
}
