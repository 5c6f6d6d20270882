// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

// valkey forms a cluster whose migrations of slots take 3 s, with keys at the first master.
func valkey(t *testing.T) *fixture {
	t.Helper()
	f := formOf(t, redistest.NodeOptions{Valkey: true}, redistest.Options{InstantGossip: true, SlotMigrationTime: 3 * time.Second})
	f.say(0, "MSET {b}1 one {b}2 two")
	return f
}

// job is the state and message of the latest job that node i knows; empty when there is none.
func (f *fixture) job(i int) string {
	f.t.Helper()
	jobs, err := f.data(i).Do(f.t.Context(), "CLUSTER", "GETSLOTMIGRATIONS").Slice()
	f.must(err)
	if len(jobs) == 0 {
		return ""
	}
	fields := map[any]any{}
	words := jobs[0].([]any)
	for at := 0; at < len(words); at += 2 {
		fields[words[at]] = words[at+1]
	}
	if fields["slot_ranges"] != "3300-3301 3310-3310" {
		f.t.Errorf("node %d: slots %v", i, fields["slot_ranges"])
	}
	return fmt.Sprintf("%v %v: %v", fields["operation"], fields["state"], fields["message"])
}

func (f *fixture) wantJobs(want map[int]string) {
	f.t.Helper()
	got := map[int]string{}
	for i := range want {
		got[i] = f.job(i)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

const move = "CLUSTER MIGRATESLOTS SLOTSRANGE 3300 3301 3310 3310 NODE {1}"

func TestSlotsMoveAtomically(t *testing.T) {
	f := valkey(t)
	f.say(0, move)
	f.wantJobs(map[int]string{
		0: "EXPORT snapshotting: ", 1: "IMPORT receiving-snapshot: ", 3: "", 4: "IMPORT occurring-on-primary: ",
	})
	f.say(0, "SET {b}2 changed") // the source serves until the end
	f.want(0, move, "ERR I am already migrating slot 3300.")
	f.want(0, "CLUSTER SETSLOT 1 STABLE", "ERR Slot export in progress.")
	f.want(1, "CLUSTER SETSLOT 1 STABLE", "ERR Slot import in progress.")
	f.want(1, "CLUSTER CANCELSLOTMIGRATIONS", "ERR No migrations ongoing")
	f.world.Run(3 * time.Second)
	f.wantJobs(map[int]string{0: "EXPORT success: ", 1: "IMPORT success: ", 4: "IMPORT success: "})
	f.wantOwner(1, 0, 1, 2, 3, 4, 5)
	f.want(1, "MGET {b}1 {b}2", "[one changed]")
	f.want(0, "GET {b}1", "MOVED 3300 10.0.0.2:6379")
	f.wantHolders("{b}1", 1, 4)
	f.wantMarks(map[int]string{})

	f.world.Restart(f.nodes[0], "10.0.0.1", true)
	f.want(0, "CLUSTER GETSLOTMIGRATIONS", "[]")
}

func TestSlotsMoveAtOnce(t *testing.T) {
	f := formOf(t, redistest.NodeOptions{Valkey: true}, redistest.Options{InstantGossip: true})
	f.say(0, "SET {b}1 one")
	f.say(0, move)
	f.wantJobs(map[int]string{0: "EXPORT success: ", 1: "IMPORT success: "})
	f.want(1, "GET {b}1", "one")
}

// A migration that is interrupted leaves the keys and the slots where they were.
func TestAtomicMoveInterrupted(t *testing.T) {
	const lostTarget = "EXPORT failed: Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information."
	const lostSource = "IMPORT failed: Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information."
	const notMine = "EXPORT failed: Slots are no longer owned by myself"
	for _, tc := range []struct {
		name      string
		interrupt func(f *fixture)
		owner     int
		jobs      map[int]string
	}{
		{"cancelled", func(f *fixture) { f.say(0, "CLUSTER CANCELSLOTMIGRATIONS") }, 0,
			map[int]string{0: "EXPORT cancelled: ", 1: lostSource, 4: lostSource}},
		{"target killed", func(f *fixture) { f.world.Kill(f.nodes[1]) }, 0, map[int]string{0: lostTarget}},
		{"target restarted", func(f *fixture) { f.world.Restart(f.nodes[1], "10.0.0.2", true) }, 0, map[int]string{0: lostTarget, 1: ""}},
		{"source restarted", func(f *fixture) { f.world.Restart(f.nodes[0], "10.0.0.1", true) }, 0, map[int]string{0: "", 1: lostSource}},
		{"source fails over", func(f *fixture) { f.must(f.node(3).Failover(f.t.Context(), redis.FailoverDefault)) }, 3,
			map[int]string{0: notMine, 1: "IMPORT failed: Slots are no longer owned by source node"}},
		{"target fails over", func(f *fixture) { f.must(f.node(4).Failover(f.t.Context(), redis.FailoverDefault)) }, 0,
			map[int]string{0: lostTarget, 4: "IMPORT failed: A failover occurred during slot import"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := valkey(t)
			f.say(0, move)
			tc.interrupt(f)
			f.world.Run(5 * time.Second)
			f.wantJobs(tc.jobs)
			f.wantOwner(tc.owner, 2)
			f.want(tc.owner, "MGET {b}1 {b}2", "[one two]")
		})
	}
}

func TestFlushEndsAtomicMove(t *testing.T) {
	f := valkey(t)
	f.say(0, move)
	f.say(0, "FLUSHALL")
	f.world.Run(5 * time.Second)
	f.wantJobs(map[int]string{0: "EXPORT failed: Data was flushed"})
	f.wantOwner(0, 0, 1, 2)
}

func TestAtomicMoveTimesOut(t *testing.T) {
	f := valkey(t)
	f.say(0, move)
	f.world.Partition(f.nodes[1], f.nodes[4])
	f.world.Run(50 * time.Second)
	f.wantJobs(map[int]string{0: "EXPORT snapshotting: "})
	f.world.Run(20 * time.Second)
	f.wantJobs(map[int]string{0: "EXPORT failed: Timed out after too long with no interaction"})
	f.wantOwner(0, 0, 2)
}

func TestMigrateSlotsRefuses(t *testing.T) {
	const nobody = "0000000000000000000000000000000000000000"
	f := valkey(t)
	for _, tc := range []struct {
		node       int
		args, want string
	}{
		{0, "SLOTSRANGE 6000 6000 NODE {1}", "ERR Slots are not served by this node."},
		{0, "SLOTSRANGE 5460 5461 NODE {1}", "ERR Requested slots span multiple shards"},
		{0, "SLOTSRANGE 1 2 NODE {0}", "ERR Target node can not be this node."},
		{0, "SLOTSRANGE 1 2 NODE deadbeef", "ERR Invalid node name: deadbeef"},
		{0, "SLOTSRANGE 1 2 NODE " + nobody, "ERR Unknown node name: " + nobody},
		{0, "SLOTSRANGE 2 1 NODE {1}", "ERR Start slot number 2 is greater than end slot number 1."},
		{0, "SLOTSRANGE 1 5 3 7 NODE {1}", "ERR Slot range 3-7 overlaps with previous range 1-5."},
		{0, "SLOTSRANGE 1 99999 NODE {1}", "ERR Invalid or out of range slot"},
		{0, "SLOTSRANGE 1 NODE {1}", "ERR Invalid or out of range slot"},
		{0, "SLOTSRANGE NODE {1}", "ERR No slot ranges specified"},
		{0, "SLOTS 1 2 NODE {1}", "ERR syntax error"},
		{0, "SLOTSRANGE 1 2", "ERR syntax error"},
		{0, "SLOTSRANGE 1 5 NODE {1} SLOTSRANGE 5 6 NODE {2}", "ERR Slot ranges in migrations overlap"},
		{3, "SLOTSRANGE 1 2 NODE {1}", "ERR Slot migration can only be used on primary nodes."},
	} {
		f.want(tc.node, "CLUSTER MIGRATESLOTS "+tc.args, tc.want)
	}
	f.say(0, "CLUSTER MIGRATESLOTS SLOTSRANGE 3300 3301 3310 3310 NODE {4}")
	f.wantJobs(map[int]string{
		0: "EXPORT failed: Received error during handshake to target: -ERR Slot migration can only be used on primary nodes.\r\n"})
	f.open()
	f.want(0, move, "ERR Slots are being manually migrated")
	f.want(1, "CLUSTER MIGRATESLOTS SLOTSRANGE 6000 6000 NODE {0}", "ERR Slots are being manually imported")
	f.say(0, "CLUSTER SETSLOT 3300 STABLE")
	f.say(0, move)
	f.wantJobs(map[int]string{0: "EXPORT failed: Received error during handshake to target: -ERR Slots are being manually imported\r\n"})
	f.say(1, "CLUSTER SETSLOT 3300 STABLE")
	f.world.Kill(f.nodes[1])
	f.say(0, move)
	f.wantJobs(map[int]string{0: "EXPORT failed: Unable to connect to target node: Connection refused"})
}

func TestCommandInfoTellsWhoMovesSlots(t *testing.T) {
	world := redistest.New(redistest.Options{})
	t.Cleanup(world.Close)
	f := &fixture{t: t, world: world, nodes: []*redistest.Node{
		world.AddNode(redistest.NodeOptions{IP: "10.0.0.1"}),
		world.AddNode(redistest.NodeOptions{IP: "10.0.0.2", Valkey: true, Version: "8.1.1"}),
		world.AddNode(redistest.NodeOptions{IP: "10.0.0.3", Valkey: true}),
	}}
	const get = "[get 2 [] 0 0 0 [] [] [] []]"
	for i, want := range []string{"nil", "nil", "[cluster|migrateslots -4 [] 0 0 0 [] [] [] []]"} {
		f.want(i, "COMMAND INFO cluster|migrateslots cluster|migration get nosuch", "["+want+" nil "+get+" nil]")
	}
	f.want(1, "CLUSTER GETSLOTMIGRATIONS", "ERR unknown subcommand 'GETSLOTMIGRATIONS'. Try CLUSTER HELP.")
}
