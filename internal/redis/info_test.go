// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestReadInfoOfEveryEngine(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine, func(t *testing.T) {
			var view View
			for _, part := range []struct {
				file string
				read func(*View, string) error
			}{{"replica.info", readInfo}, {"replica.clusterinfo", readClusterInfo}, {"replica.nodes", readNodes}} {
				if err := part.read(&view, readCapture(t, engine, part.file)); err != nil {
					t.Fatalf("%s: %v", part.file, err)
				}
			}
			wantSameHealth(t, view, readCapture(t, engine, "replica.info"))
			if got := string(view.Engine) + "-" + view.Version; got != engine {
				t.Errorf("engine and version %s, want %s", got, engine)
			}
			if view.Role != RoleReplica || view.MasterLinkUp || view.Loading || view.MaxMemory != 0 {
				t.Errorf("view %+v", view)
			}
			if checkNodeID(view.RunID) != nil || checkNodeID(view.NodeID) != nil || checkNodeID(view.MasterID) != nil {
				t.Errorf("IDs %q, %q, %q", view.RunID, view.NodeID, view.MasterID)
			}
			if view.UsedMemory == 0 || view.Uptime == 0 {
				t.Errorf("memory %d, uptime %s", view.UsedMemory, view.Uptime)
			}
			// The link had never been up when this was captured: it counts from the start of the process.
			if view.MasterLinkDownFor != view.Uptime {
				t.Errorf("link down for %s, want the uptime %s", view.MasterLinkDownFor, view.Uptime)
			}
			if view.ClusterState != ClusterOK || view.SlotsAssigned != 16384 || view.CurrentEpoch != 2 {
				t.Errorf("cluster %s, %d slots, epoch %d", view.ClusterState, view.SlotsAssigned, view.CurrentEpoch)
			}
		})
	}
}

// wantSameHealth asserts that the brief look at a text tells what the whole does.
func wantSameHealth(t *testing.T, view View, info string) {
	t.Helper()
	got, err := readHealth(info)
	got.Replicas = 0 // no View has it
	want := Health{Role: view.Role, MasterLinkUp: view.MasterLinkUp, Loading: view.Loading, PersistenceError: view.PersistenceError}
	if err != nil || got != want {
		t.Errorf("health %+v, %v; want %+v", got, err, want)
	}
}

const runID = "07c37dfeb235213a872192d90877d0cd55635b91"

func infoText(changes ...string) string {
	lines := map[string]string{
		"redis_version": "7.0.15", "run_id": runID, "uptime_in_seconds": "90", "used_memory": "1", "maxmemory": "2", "number_of_libraries": "3",
		"unexpected_error_replies": "5",
		"loading":                  "0", "role": "master", "master_repl_offset": "5",
	}
	for _, change := range changes {
		name, value, _ := strings.Cut(change, ":")
		if lines[name] = value; value == "" {
			delete(lines, name)
		}
	}
	var text strings.Builder
	for name, value := range lines {
		text.WriteString(name + ":" + value + "\r\n")
	}
	return "# Server\r\n" + text.String()
}

func TestReadInfo(t *testing.T) {
	base := View{
		Engine: EngineRedis, Version: "7.0.15", RunID: runID, Uptime: 90 * time.Second, UsedMemory: 1, MaxMemory: 2, Libraries: 3,
		LoadErrors: 5,
		Role:       RoleMaster, ReplicationOffset: 5,
	}
	with := func(change func(*View)) View {
		view := base
		change(&view)
		return view
	}
	asReplica := []string{"role:slave", "slave_repl_offset:4"}
	for _, tc := range []struct {
		name    string
		changes []string
		want    View
	}{
		{"master", nil, base},
		{"valkey", []string{"redis_version:7.2.4", "valkey_version:9.1.2"}, with(func(v *View) {
			v.Engine, v.Version = EngineValkey, "9.1.2"
		})},
		{"keys of all databases", []string{"db0:keys=4,expires=1,avg_ttl=0", "db10:keys=3,expires=2", "dbx:y"}, with(func(v *View) {
			v.Keys, v.KeysWithTTL = 7, 3
		})},
		{"hashes whose fields expire (Redis)", []string{"db0:keys=4,expires=1,avg_ttl=0,subexpiry=2"}, with(func(v *View) {
			v.Keys, v.KeysWithTTL, v.KeysWithFieldTTL = 4, 1, 2
		})},
		{"hashes whose fields expire (Valkey)", []string{"db0:keys=4,expires=1,avg_ttl=0,keys_with_volatile_items=2"}, with(func(v *View) {
			v.Keys, v.KeysWithTTL, v.KeysWithFieldTTL = 4, 1, 2
		})},
		{"replica in sync", append(asReplica, "master_link_status:up"), with(func(v *View) {
			v.Role, v.ReplicationOffset, v.MasterLinkUp = RoleReplica, 4, true
		})},
		{"replica cut off", append(asReplica, "master_link_status:down", "master_link_down_since_seconds:7"), with(func(v *View) {
			v.Role, v.ReplicationOffset, v.MasterLinkDownFor, v.MasterLinkLost = RoleReplica, 4, 7*time.Second, true
		})},
		{"replica that is sent all data", append(asReplica, "master_link_status:down", "master_link_down_since_seconds:7",
			"master_sync_in_progress:1"), with(func(v *View) {
			v.Role, v.ReplicationOffset, v.MasterLinkDownFor, v.MasterLinkLost, v.Syncing = RoleReplica, 4, 7*time.Second, true, true
		})},
		{"replica that never had a master", append(asReplica, "master_link_status:down", "master_link_down_since_seconds:-1"),
			with(func(v *View) {
				v.Role, v.ReplicationOffset, v.MasterLinkDownFor = RoleReplica, 4, 90*time.Second
			})},
		{"times beyond all measure",
			append(asReplica, "uptime_in_seconds:9223372036854775807", "master_link_status:down",
				"master_link_down_since_seconds:9223372036854775807"), with(func(v *View) {
				v.Role, v.ReplicationOffset, v.MasterLinkLost, v.Uptime, v.MasterLinkDownFor = RoleReplica, 4, true, longest, longest
			})},
		{"clock that was set back", []string{"uptime_in_seconds:-5"}, with(func(v *View) { v.Uptime = 0 })},
		{"disk that was written to", []string{"rdb_last_bgsave_status:ok", "aof_last_write_status:ok"}, with(func(*View) {})},
		{"the file is written anew", []string{"aof_enabled:1", "aof_rewrite_in_progress:1", "aof_last_bgrewrite_status:ok",
			"aof_current_size:9", "aof_base_size:9"}, with(func(v *View) { v.Unsaved, v.Rewriting, v.AppendOnlySize = true, true, 9 })},
		{"the file is to be written anew", []string{"aof_enabled:1", "aof_rewrite_scheduled:1"},
			with(func(v *View) { v.Unsaved, v.Rewriting = true, true })},
		{"the file was written anew", []string{"aof_enabled:1", "aof_rewrite_in_progress:0", "aof_last_bgrewrite_status:ok",
			"aof_current_size:9", "aof_base_size:9"}, with(func(v *View) { v.Rewritten, v.AppendOnlySize = true, 9 })},
		{"something was appended since", []string{"aof_enabled:1", "aof_last_bgrewrite_status:ok", "aof_current_size:10", "aof_base_size:9"},
			with(func(v *View) { v.AppendOnlySize = 10 })},
		{"nothing was ever appended", []string{"aof_enabled:1", "aof_last_bgrewrite_status:ok", "aof_current_size:0", "aof_base_size:0"},
			with(func(*View) {})},
		{"the file could not be written anew", []string{"aof_enabled:1", "aof_rewrite_in_progress:0", "aof_last_bgrewrite_status:err"},
			with(func(v *View) { v.Unsaved = true })},
		{"there is no file", []string{"aof_enabled:0", "aof_last_bgrewrite_status:err"}, with(func(*View) {})},
		{"no snapshot could be saved", []string{"rdb_last_bgsave_status:err", "aof_last_write_status:ok"},
			with(func(v *View) { v.PersistenceError = "rdb_last_bgsave_status" })},
		{"no write could be kept", []string{"rdb_last_bgsave_status:ok", "aof_last_write_status:err"},
			with(func(v *View) { v.PersistenceError = "aof_last_write_status" })},
		{"a write failed before the file was switched off", []string{"aof_enabled:0", "aof_last_write_status:err"}, with(func(*View) {})},
		{"loading", []string{"loading:1"}, with(func(v *View) { v.Loading = true })},
		{"loading after a full synchronization", []string{"async_loading:1"}, with(func(v *View) { v.Loading = true })},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var got View
			if err := readInfo(&got, infoText(tc.changes...)); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(View{}, "Stats")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			wantSameHealth(t, got, infoText(tc.changes...))
		})
	}
}

// A master knows which replicas are in sync with it; engines say more of each from version to version, and less of none.
func TestReadHealthCountsReplicasInSync(t *testing.T) {
	const (
		online = "slave0:ip=10.0.0.1,port=6379,state=online,offset=70,lag=1\r\n"
		newer  = "slave10:ip=10.0.0.2,port=6379,state=online,offset=70,lag=1,type=replica\r\n"
		sent   = "slave1:ip=10.0.0.3,port=6379,state=send_bulk,offset=0,lag=0\r\n"
	)
	for text, want := range map[string]int{"": 0, online: 1, online + sent: 1, online + sent + newer: 2} {
		if h, err := readHealth("role:master\r\n" + text + "loading:0\r\n"); err != nil || h.Replicas != want {
			t.Errorf("%q: %+v, %v; want %d", text, h, err, want)
		}
		if h, err := readHealth("role:slave\r\n" + text + "loading:0\r\n"); err != nil || h.Replicas != 0 {
			t.Errorf("of a replica, %q: %+v, %v; want none", text, h, err)
		}
	}
}

// What does not tell whether a node is well is an error, and the node is asked for everything.
func TestReadHealthNeedsItsFields(t *testing.T) {
	for _, text := range []string{"", "role:master\r\n", "loading:0\r\n"} {
		if h, err := readHealth(text); err == nil {
			t.Errorf("%q: %+v", text, h)
		}
	}
}

func TestReadInfoNamesTheBadField(t *testing.T) {
	for change, want := range map[string]string{
		"run_id:":               "field run_id is missing",
		"used_memory:lots":      `field used_memory: "lots"`,
		"used_memory:-1":        "field used_memory: -1 is negative",
		"role:sentinel":         `field role: "sentinel"`,
		"role:":                 "field role is missing",
		"role:slave":            "field slave_repl_offset is missing",
		"db0:many":              `field db0: "many"`,
		"uptime_in_seconds:1.5": `field uptime_in_seconds: "1.5"`,
		"run_id:x":              `node ID "x" is not 40 hex digits`,
		"redis_version:7.0.15 and the rest of the page": `"7.0.15 and the rest of the page" is no version`,
		"redis_version:" + strings.Repeat("7", 33):      "is no version",
		"used_memory:9223372036854775807":               "field used_memory: 9223372036854775807 is more than a server can have",
		"db0:keys=9223372036854775807":                  "field db0: 9223372036854775807 is more than a server can have",
		"db1:keys=-1":                                   `field db1: "keys=-1"`,
		"db1:keys=1,expires=-1":                         `"keys=1,expires=-1" has no number of expires`,
		"db1:keys=1,expires=2":                          `"keys=1,expires=2" has more expires than keys`,
		"db1:keys=1,expires=0,subexpiry=2":              "has more subexpiry than keys",
		"errorstat_MOVED:count=-1":                      `field errorstat_MOVED: "count=-1"`,
	} {
		if err := readInfo(new(View), infoText(change)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with %q: %v, want %q", change, err, want)
		}
	}
	const many = "cluster_state:ok\r\ncluster_slots_assigned:16385\r\ncluster_current_epoch:1\r\ncluster_my_epoch:1\r\n"
	if err := readClusterInfo(new(View), many); err == nil || !strings.Contains(err.Error(), "16385, and there are 16384 slots") {
		t.Errorf("more slots than there are: %v", err)
	}
	if err := readClusterInfo(new(View), "cluster_state:maybe\r\n"); err == nil || !strings.Contains(err.Error(), `"maybe"`) {
		t.Errorf("cluster state maybe: %v", err)
	}
}

// What Redis from 8.4 on documents of CLUSTER INFO. What is missing is not none.
func TestMovesAreCounted(t *testing.T) {
	const tasks, clearing = "cluster_slot_migration_active_tasks:", "cluster_slot_migration_active_trim_running:"
	for text, want := range map[string]string{
		tasks + "0\r\n" + clearing + "0\r\n":  "",
		tasks + "1\r\n" + clearing + "0\r\n":  "1 tasks, and 0 that clear up",
		tasks + "0\r\n" + clearing + "2\r\n":  "0 tasks, and 2 that clear up",
		"cluster_state:ok\r\n":                "is missing",
		tasks + "0\r\n":                       "is missing",
		tasks + "-1\r\n" + clearing + "1\r\n": "is negative",
		tasks + "x\r\n" + clearing + "1\r\n":  "x",
	} {
		got, err := readMoves(text)
		if err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// What a node sends is told by its memory, and by keys while it counts them.
func TestReadSending(t *testing.T) {
	for text, want := range map[string]Sending{
		"used_memory:7\r\n": {UsedMemory: 7},
		"used_memory:7\r\ncurrent_save_keys_processed:2\r\ncurrent_save_keys_total:5\r\n": {7, 2, 5},
		"used_memory:7\r\ncurrent_save_keys_processed:0\r\ncurrent_save_keys_total:0\r\n": {UsedMemory: 7},
	} {
		if got, err := readSending(text); err != nil || got != want {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "used_memory:-1\r\n", "used_memory:99999999999999999\r\n",
		"used_memory:7\r\ncurrent_save_keys_processed:2\r\n",
		"used_memory:7\r\ncurrent_save_keys_processed:2\r\ncurrent_save_keys_total:-1\r\n"} {
		if got, err := readSending(text); err == nil {
			t.Errorf("%q is taken for %+v", text, got)
		}
	}
}
