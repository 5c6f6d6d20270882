// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// slot is that of "{b}1" and of everything else with that tag; the first master owns it.
const slot = 3300

var engines = map[string]redistest.NodeOptions{"redis": {}, "valkey": {Valkey: true}}

// on runs a test for nodes of each engine.
func on(t *testing.T, test func(t *testing.T, f *fixture)) {
	for name, options := range engines {
		t.Run(name, func(t *testing.T) { test(t, formOf(t, options, redistest.Options{InstantGossip: true})) })
	}
}

// tell sends words to node i; {0} stands for the ID of node 0. It returns the answer as text, nil as "nil", a list as the
// words in brackets, an error as its text.
func (f *fixture) tell(i int, command string) string {
	f.t.Helper()
	var args []any
	for word := range strings.FieldsSeq(command) {
		for j, n := range f.nodes {
			if word == fmt.Sprintf("{%d}", j) {
				word = n.ID()
			}
		}
		if word == `""` {
			word = ""
		}
		args = append(args, word)
	}
	answer, err := f.data(i).Do(f.t.Context(), args...).Result()
	if err != nil && err.Error() == "redis: nil" {
		return "nil"
	}
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(fmt.Sprint(answer), "<nil>", "nil")
}

// say sends a command that must answer OK.
func (f *fixture) say(i int, command string) {
	f.t.Helper()
	if got := f.tell(i, command); got != "OK" {
		f.t.Fatalf("node %d: %s: %s", i, command, got)
	}
}

// want compares an answer.
func (f *fixture) want(i int, command, want string) {
	f.t.Helper()
	if got := f.tell(i, command); got != want {
		f.t.Errorf("node %d: %s: %q, want %q", i, command, got, want)
	}
}

// open opens the slot between the first master and the second.
func (f *fixture) open() {
	f.t.Helper()
	f.say(1, "CLUSTER SETSLOT 3300 IMPORTING {0}")
	f.say(0, "CLUSTER SETSLOT 3300 MIGRATING {1}")
}

// marks is what node i shows of the slot: who it goes to or comes from, as an index of nodes.
func (f *fixture) marks(i int) string {
	f.t.Helper()
	view := f.view(i)
	for j, n := range f.nodes {
		if view.Migrating[slot] == n.ID() {
			return fmt.Sprintf("to %d", j)
		}
		if view.Importing[slot] == n.ID() {
			return fmt.Sprintf("from %d", j)
		}
	}
	if len(view.Migrating)+len(view.Importing) > 0 {
		return fmt.Sprintf("%v %v", view.Migrating, view.Importing)
	}
	return ""
}

func (f *fixture) wantMarks(want map[int]string) {
	f.t.Helper()
	got := map[int]string{}
	for i, n := range f.nodes {
		if _, err := f.world.Dial(f.t.Context(), n.Addr()); err == nil && f.marks(i) != "" {
			got[i] = f.marks(i)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		f.t.Errorf("marks (-want +got):\n%s", diff)
	}
}

// wantOwner asserts who owns the slot as the nodes see it.
func (f *fixture) wantOwner(owner int, seenBy ...int) {
	f.t.Helper()
	for _, i := range seenBy {
		if peer := f.seenBy(i, owner); !peer.Slots.Contains(slot) {
			f.t.Errorf("node %d sees %q at node %d", i, peer.Slots, owner)
		}
	}
}

func TestSetSlotRefuses(t *testing.T) {
	const nobody = "0000000000000000000000000000000000000000"
	invalid := "ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP"
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "SET {b}1 v")
		self, tooMany := "OK", invalid
		if f.valkey {
			self, tooMany = "ERR Target node is myself", "OK"
		}
		for _, tc := range []struct {
			node         int
			action, want string
		}{
			{0, "3300 IMPORTING {1}", "ERR I'm already the owner of hash slot 3300"},
			{0, "3300 MIGRATING " + nobody, "ERR I don't know about node " + nobody},
			{0, "3300 MIGRATING {3}", "ERR Target node is not a master"},
			{0, "3300 MIGRATING {0}", self},
			{1, "3300 MIGRATING {0}", "ERR I'm not the owner of hash slot 3300"},
			{1, "3300 IMPORTING " + nobody, "ERR I don't know about node " + nobody},
			{1, "3300 IMPORTING {3}", "ERR Target node is not a master"},
			{1, "3300 IMPORTING {1}", self},
			{0, "3300 NODE " + nobody, "ERR Unknown node " + nobody},
			{0, "3300 NODE {3}", "ERR Target node is not a master"},
			{0, "3300 NODE {1}", "ERR Can't assign hashslot 3300 to a different node while I still hold keys for this hash slot."},
			{3, "99999 STABLE", "ERR Please use SETSLOT only with masters."},
			{0, "99999 STABLE", "ERR Invalid or out of range slot"},
			{0, "3300", "ERR wrong number of arguments for 'cluster|setslot' command"},
			{0, "3300 MOVE", invalid},
			{0, "3300 MIGRATING", invalid},
			{0, "3300 STABLE x", tooMany},
		} {
			f.want(tc.node, "CLUSTER SETSLOT "+tc.action, tc.want)
		}
	})
}

func TestSlotMovesByHand(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "SET {b}1 one")
		f.say(0, "SET {b}2 two")
		f.open()
		open := map[int]string{0: "to 1", 1: "from 0"}
		if f.valkey {
			open[3], open[4] = "to 1", "from 0"
		}
		f.wantMarks(open)
		f.want(0, "CLUSTER COUNTKEYSINSLOT 3300", "2")
		f.want(0, "CLUSTER GETKEYSINSLOT 3300 9", "[{b}1 {b}2]")
		f.want(0, "CLUSTER GETKEYSINSLOT 3300 1", "[{b}1]")
		f.say(0, `MIGRATE 10.0.0.2 6379 "" 0 1000 KEYS {b}1 {b}2 {b}gone`)
		epoch := f.view(0).CurrentEpoch + 1
		f.want(0, "CLUSTER COUNTKEYSINSLOT 3300", "0")
		f.say(1, "CLUSTER SETSLOT 3300 NODE {1}")
		f.wantOwner(1, 0, 1, 2, 3, 4, 5)
		if got := f.view(1).ConfigEpoch; got != epoch {
			t.Errorf("the new owner has epoch %d, want %d", got, epoch)
		}
		if !f.valkey {
			f.wantMarks(map[int]string{0: "to 1"}) // gossip does not take it away
		} else {
			f.wantMarks(map[int]string{})
		}
		for i := range 3 {
			f.say(i, "CLUSTER SETSLOT 3300 NODE {1}")
		}
		f.wantMarks(map[int]string{})
		f.want(1, "MGET {b}1 {b}2", "[one two]")
		f.want(0, "GET {b}1", "MOVED 3300 10.0.0.2:6379")
		if got := f.view(1).ConfigEpoch; got != epoch {
			t.Errorf("saying it twice made epoch %d", got)
		}
	})
}

// What becomes of a half moved slot when its source, or its target, fails over.
func TestMarksInAFailover(t *testing.T) {
	for _, tc := range []struct {
		name, engine string
		killed       int
		marks        map[int]string
		importerOK   bool
	}{
		// The importer keeps the slot bound to the dead master and stops serving.
		{"source", "redis", 0, map[int]string{1: "from 0"}, false},
		{"source", "valkey", 0, map[int]string{1: "from 3", 3: "to 1", 4: "from 3"}, true},
		{"target", "redis", 1, map[int]string{0: "to 1"}, true},
		{"target", "valkey", 1, map[int]string{0: "to 4", 3: "to 4", 4: "from 0"}, true},
	} {
		t.Run(tc.engine+" "+tc.name, func(t *testing.T) {
			f := formOf(t, engines[tc.engine], redistest.Options{InstantGossip: true})
			f.open()
			f.world.Kill(f.nodes[tc.killed])
			f.world.Run(12 * time.Second)
			if f.view(3+tc.killed).Role != redis.RoleMaster {
				t.Fatal("no failover")
			}
			f.wantMarks(tc.marks)
			importer := f.view(1 + 3*tc.killed)
			if got := importer.ClusterState == redis.ClusterOK; got != tc.importerOK {
				t.Errorf("the importer is %s", importer.ClusterState)
			}
			f.world.Restart(f.nodes[tc.killed], f.view(tc.killed + 3).Peers[0].IP, true)
			if tc.killed == 0 && tc.engine == "redis" {
				f.say(1, "CLUSTER SETSLOT 3300 STABLE")
				f.world.Run(6 * time.Second)
				f.wantOwner(3, 1)
				if state := f.view(1).ClusterState; state != redis.ClusterOK {
					t.Errorf("closed, the importer is %s", state)
				}
			}
		})
	}
}

func TestMarksOutliveARestart(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "SET {b}1 one")
		f.open()
		for i := range 2 {
			f.world.Restart(f.nodes[i], fmt.Sprintf("10.0.0.%d", i+1), true)
		}
		f.world.Run(3 * time.Second)
		if f.marks(0) != "to 1" || f.marks(1) != "from 0" {
			t.Errorf("%q and %q", f.marks(0), f.marks(1))
		}
		f.want(0, "GET {b}1", "one")
	})
}

// A master that finds keys of a slot of somebody else when it starts keeps them under a mark, or deletes them (Valkey).
func TestKeysInSlotsOfOthersAtStart(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "SET {b}1 one")
		f.open()
		f.say(0, "MIGRATE 10.0.0.2 6379 {b}1 0 1000 COPY")
		f.say(1, "CLUSTER SETSLOT 3300 STABLE")
		f.world.Restart(f.nodes[1], "10.0.0.2", true)
		f.world.Run(3 * time.Second)
		want, keys := "from 0", "1"
		if f.valkey {
			want, keys = "", "0"
		}
		if got := f.marks(1); got != want {
			t.Errorf("marks %q, want %q", got, want)
		}
		f.want(1, "CLUSTER COUNTKEYSINSLOT 3300", keys)
	})
}

// Who loses a slot to a higher epoch while it holds keys of it deletes them.
func TestKeysOfASlotThatWasTakenAreDeleted(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "SET {b}1 one")
		f.say(1, "CLUSTER SETSLOT 3300 IMPORTING {0}")
		f.say(1, "CLUSTER SETSLOT 3300 NODE {1}")
		f.wantOwner(1, 0, 1, 2)
		if holders := f.world.Holders("{b}1"); len(holders) != 0 {
			t.Errorf("%d nodes still have the key", len(holders))
		}
	})
}

func TestMasterWithoutSlotsStaysOne(t *testing.T) {
	on(t, func(t *testing.T, f *fixture) {
		f.say(0, "CLUSTER DELSLOTSRANGE 1 19 21 5460")
		f.say(0, "CLUSTER DELSLOTS 20")
		f.want(0, "CLUSTER DELSLOTS 20", "ERR Slot 20 is already unassigned")
		f.want(0, "CLUSTER ADDSLOTS 0", "ERR Slot 0 is already busy")
		f.say(1, "CLUSTER SETSLOT 0 IMPORTING {0}")
		f.say(1, "CLUSTER SETSLOT 0 NODE {1}")
		f.say(0, "CLUSTER SETSLOT 0 NODE {1}")
		f.world.Run(time.Second)
		if view := f.view(0); view.Role != redis.RoleMaster || !view.Slots.IsEmpty() {
			t.Errorf("%s of %q", view.Role, view.Slots)
		}
		if view := f.view(3); view.Role != redis.RoleReplica || view.MasterID != f.nodes[0].ID() {
			t.Errorf("its replica is %s of %q", view.Role, view.MasterID)
		}
	})
}

func TestBumpEpoch(t *testing.T) {
	f := form(t)
	epoch := f.view(0).CurrentEpoch + 1
	f.want(0, "CLUSTER BUMPEPOCH", fmt.Sprintf("BUMPED %d", epoch))
	f.want(0, "CLUSTER BUMPEPOCH", fmt.Sprintf("STILL %d", epoch))
	if view := f.view(0); !view.Slots.Equal(slots.All().Split(3)[0]) {
		t.Errorf("slots %q", view.Slots)
	}
}
