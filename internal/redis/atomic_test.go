// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// answering is a node that gives the same answer to every command but the greeting, and keeps what it was asked.
func answering(t *testing.T, answer string) (*redis.Node, *bytes.Buffer) {
	t.Helper()
	asked := &bytes.Buffer{} // read it between commands only
	pool := redis.NewPool(redis.Options{IOTimeout: time.Minute, Dialer: func(context.Context, string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			defer theirs.Close() // the test is over
			for buffer := make([]byte, 4096); ; {
				n, err := theirs.Read(buffer)
				if err != nil {
					return
				}
				reply := answer
				if bytes.Contains(buffer[:n], []byte("hello")) {
					reply = "-ERR unknown command 'hello'\r\n"
				} else {
					asked.Write(buffer[:n])
				}
				if _, err := theirs.Write([]byte(reply)); err != nil {
					return
				}
			}
		}()
		return ours, nil
	}})
	t.Cleanup(pool.Close)
	return pool.Node(addr, redis.Credentials{}), asked
}

func recorded(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestSlotMigrationsOfValkey(t *testing.T) {
	const (
		source = "2a1ebe3876c79905ccd7cb8b886b987861965847"
		target = "15b54bf4a5efd399579feed688e64ae730063e92"
		lost   = "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information."
	)
	job := func(id, set, state string, outcome redis.SlotMigrationOutcome, message string, started int64) redis.SlotMigration {
		parsed, err := slots.Parse(set)
		if err != nil {
			t.Fatal(err)
		}
		return redis.SlotMigration{
			ID: id, Slots: parsed, SourceID: source, TargetID: target, State: state, Outcome: outcome, Message: message,
			Started: time.Unix(started, 0),
		}
	}
	const a, b = "c5548bcfb1543ad731d25da5f2b222c1113fc5a4", "9de2836bc944618bcdfc80c393072ad730ee3397"
	const c, d = "4493139e84ba6fb383bfe3ec4cde5c30bc2f4f38", "025cbfc4f69941895f4a6b4a7025969d58d87d86"
	done := []redis.SlotMigration{
		job(c, "101-5000 6000", "success", redis.SlotMigrationSucceeded, "", 1795244320),
		job(d, "0-9 100", "success", redis.SlotMigrationSucceeded, "", 1795244298),
	}
	for file, want := range map[string][]redis.SlotMigration{
		"source": append([]redis.SlotMigration{
			job(a, "6003-7000 7002", "waiting-to-snapshot", redis.SlotMigrationUnderWay, "", 1795246056),
			job(b, "6001-6002", "cancelled", redis.SlotMigrationCancelled, "", 1795244321),
		}, done...),
		"target": append([]redis.SlotMigration{
			job(a, "6003-7000 7002", "receiving-snapshot", redis.SlotMigrationUnderWay, "", 1795246056),
			job(b, "6001-6002", "failed", redis.SlotMigrationFailed, lost, 1795244321),
		}, done...),
	} {
		node, _ := answering(t, recorded(t, "valkey-9.1.2/"+file+".migrations"))
		got, err := node.SlotMigrations(t.Context(), slots.AtomicSource)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v (-want +got):\n%s", file, err, diff)
		}
	}
}

// status is an answer to CLUSTER MIGRATION STATUS, with the fields and in the order that the command documents.
func status(tasks ...[]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(tasks))
	for _, task := range tasks {
		fmt.Fprintf(&b, "*%d\r\n", 2*len(statusFields))
		for i, name := range statusFields {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(name), name)
			if i < statusNumbers {
				fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(task[i]), task[i])
			} else {
				fmt.Fprintf(&b, ":%s\r\n", task[i])
			}
		}
	}
	return b.String()
}

// statusNumbers is the first field that is a number.
const statusNumbers = 7

var statusFields = []string{
	"id", "slots", "source", "dest", "operation", "state", "last_error",
	"retries", "create_time", "start_time", "end_time", "write_pause_ms",
}

func TestSlotMigrationsOfRedis(t *testing.T) {
	task := func(id, operation, state, lastError string) []string {
		return []string{id, "0-1000 2000-3000", "s", "d", operation, state, lastError, "0", "1761683096000", "-1", "-1", "0"}
	}
	node, asked := answering(t, status(
		task("a", "import", "streaming-buffer", ""),
		task("b", "import", "failed", "Main channel - Connection is closed"),
		task("c", "migrate", "failed", "x"),
		task("d", "import", "completed", ""),
		task("e", "import", "canceled", "Cancelled due to user request"),
	))
	got, err := node.SlotMigrations(t.Context(), slots.AtomicDestination)
	if err != nil {
		t.Fatal(err)
	}
	outcomes := map[string]redis.SlotMigrationOutcome{}
	for _, job := range got {
		outcomes[job.ID] = job.Outcome
	}
	if diff := cmp.Diff(map[string]redis.SlotMigrationOutcome{
		"a": redis.SlotMigrationUnderWay, "b": redis.SlotMigrationUnderWay, // the destination tries again
		"c": redis.SlotMigrationFailed, "d": redis.SlotMigrationSucceeded, "e": redis.SlotMigrationCancelled,
	}, outcomes); diff != "" {
		t.Errorf("outcomes (-want +got):\n%s", diff)
	}
	if b := got[1]; b.Slots.String() != "0-1000,2000-3000" || b.SourceID != "s" || b.TargetID != "d" ||
		b.Message != "Main channel - Connection is closed" || !b.Started.Equal(time.UnixMilli(1761683096000)) {
		t.Errorf("task %+v", b)
	}
	if want := "*4\r\n$7\r\nCLUSTER\r\n$9\r\nMIGRATION\r\n$6\r\nSTATUS\r\n$3\r\nALL\r\n"; asked.String() != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestImportSlots(t *testing.T) {
	node, asked := answering(t, "$5\r\ntask1\r\n")
	id, err := node.ImportSlots(t.Context(), slots.Range(0, 9).Union(slots.Of(20)))
	if err != nil || id != "task1" {
		t.Errorf("%q, %v", id, err)
	}
	const want = "*7\r\n$7\r\nCLUSTER\r\n$9\r\nMIGRATION\r\n$6\r\nIMPORT\r\n$1\r\n0\r\n$1\r\n9\r\n$2\r\n20\r\n$2\r\n20\r\n"
	if asked.String() != want {
		t.Errorf("asked %q, want %q", asked, want)
	}
}

func TestSlotMigrationsThatAreNotUnderstood(t *testing.T) {
	for answer, want := range map[string]string{
		"+OK\r\n":                      "string instead of an array",
		"*1\r\n:5\r\n":                 "5 instead of pairs",
		"*1\r\n*1\r\n$4\r\nname\r\n":   "instead of pairs",
		"*1\r\n*2\r\n+name\r\n:5\r\n":  "field name: 5 is not text",
		"*1\r\n*2\r\n+name\r\n+a\r\n":  "field slot_ranges: <nil> is not text",
		"*1\r\n*2\r\n+state\r\n+a\r\n": "field name: <nil> is not text",
	} {
		node, _ := answering(t, answer)
		_, err := node.SlotMigrations(t.Context(), slots.AtomicSource)
		if !errors.Is(err, redis.ErrProtocol) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", answer, err, want)
		}
	}
}

func TestAtomicMethodIsProbed(t *testing.T) {
	for name, tc := range map[string]struct {
		valkey  bool
		version string
		refusal string
		want    slots.AtomicMethod
	}{
		"an engine that cannot":        {false, "7.0.15", "", slots.AtomicNone},
		"a version before":             {true, "8.1.1", "", slots.AtomicNone},
		"an engine that can":           {true, "9.1.2", "", slots.AtomicSource},
		"COMMAND is not permitted":     {true, "9.1.2", "NOPERM this user has no permissions", slots.AtomicNone},
		"COMMAND was given a new name": {true, "9.1.2", "ERR unknown command 'COMMAND'", slots.AtomicNone},
	} {
		t.Run(name, func(t *testing.T) {
			world := redistest.New(redistest.Options{})
			t.Cleanup(world.Close)
			simulated := world.AddNode(redistest.NodeOptions{IP: "10.0.0.7", Valkey: tc.valkey, Version: tc.version})
			pool := redis.NewPool(redis.Options{Dialer: world.Dial, DialTimeout: time.Minute, IOTimeout: time.Minute})
			t.Cleanup(pool.Close)
			if tc.refusal != "" {
				world.FailNext(simulated, "COMMAND INFO", redistest.Failure{Kind: redistest.ReplyError, Reply: tc.refusal})
			}
			view, err := pool.Node(addr, redis.Credentials{}).Describe(t.Context())
			if err != nil || view.Atomic != tc.want || view.SlotMigrations != nil {
				t.Errorf("%q, jobs %v, %v", view.Atomic, view.SlotMigrations, err)
			}
		})
	}
}
