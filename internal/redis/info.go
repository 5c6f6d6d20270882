// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/replication"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
)

// fields are name:value lines of INFO and CLUSTER INFO, those of wanted and no others. The first field that is missing or
// malformed is kept as err, so that a reader can ask for many fields and check once.
type fields struct {
	values map[string]string
	// replicas are those in sync: INFO replication has a line for each.
	replicas int
	err      error
}

// wanted are the fields that are read.
var wanted = map[string]bool{}

func init() {
	for _, name := range []string{
		"redis_version", "valkey_version", "run_id", "uptime_in_seconds", "used_memory", "maxmemory", "number_of_libraries",
		"unexpected_error_replies",
		"loading", "async_loading", errorsMoved, "role", "master_repl_offset", "slave_repl_offset", "master_link_status", "master_host",
		"master_link_down_since_seconds", "master_sync_in_progress", "master_replid", "master_replid2", "second_repl_offset",
		"min_slaves_good_slaves",
		"repl_backlog_active", "repl_backlog_first_byte_offset", "cluster_enabled",
		savedSnapshot, wroteAOF, "aof_enabled", "aof_rewrite_in_progress", "aof_rewrite_scheduled", "aof_last_bgrewrite_status",
		appendOnlySize, "aof_base_size",
		savedKeys, keysToSave,
		"cluster_state", "cluster_slots_assigned", "cluster_current_epoch", "cluster_my_epoch",
		"cluster_slot_migration_active_tasks", "cluster_slot_migration_active_trim_running", FieldHeld,
	} {
		wanted[name] = true
	}
	for _, name := range stats.Fields() {
		wanted[name] = true
	}
}

const (
	errorsMoved = "errorstat_MOVED"
	// With any of these "err", a master refuses writes (MISCONF; writeCommandsDeniedByDiskError in server.c).
	savedSnapshot, wroteAOF = "rdb_last_bgsave_status", "aof_last_write_status"
	appendOnlySize          = "aof_current_size"
	// How far a process is that saves or sends all keys.
	savedKeys, keysToSave = "current_save_keys_processed", "current_save_keys_total"
)

// unsaved reports whether the append-only file is being written anew, or could not be. A replica that has copied its master's data has it
// in no file until that has come to its end: until then a restart begins with what was there before (restartAOFAfterSYNC in replication.c).
func unsaved(info *fields) bool {
	return info.values["aof_enabled"] == "1" && (rewriting(info) || info.values["aof_last_bgrewrite_status"] == "err")
}

func rewriting(info *fields) bool {
	return info.values["aof_rewrite_in_progress"] == "1" || info.values["aof_rewrite_scheduled"] == "1"
}

// rewritten reports whether the append-only file was written anew and nothing was appended since.
func rewritten(info *fields) bool {
	size, base := info.values[appendOnlySize], info.values["aof_base_size"]
	return size != "" && size != "0" && size == base && !unsaved(info)
}

func parseFields(text string) *fields {
	f := &fields{values: make(map[string]string, len(wanted))}
	for line := range strings.Lines(text) {
		if name, value, _ := strings.Cut(line, ":"); wanted[name] {
			f.values[name] = strings.TrimRight(value, "\r\n")
		} else if inSync(name, value) {
			f.replicas++
		}
	}
	return f
}

// inSync reports whether a line of INFO replication tells of a replica that is in sync.
func inSync(name, value string) bool {
	return strings.HasPrefix(name, "slave") && strings.Contains(value, ",state=online,")
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) word(name string) string {
	value, found := f.values[name]
	if !found {
		f.fail("field %s is missing", name)
	}
	return value
}

// mostCounted is the most of anything that a server can have: 256 Ti. Sums of such numbers, and products with a number of
// slots, do not overflow.
const mostCounted = 1 << 48

// integer reads a number whose absolute value is no more than the limit.
func (f *fields) integer(name string, limit int64) int64 {
	value := f.word(name)
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		f.fail("field %s: %.80q is not a whole number", name, value)
	} else if n > limit || n < -limit {
		f.fail("field %s: %d is more than a server can have", name, n)
	}
	return n
}

// count reads a number that cannot be negative.
func (f *fields) count(name string) int64 {
	n := f.integer(name, mostCounted)
	if n < 0 {
		f.fail("field %s: %d is negative", name, n)
	}
	return n
}

func (f *fields) epoch(name string) uint64 {
	value := f.word(name)
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		f.fail("field %s: %.80q is not a configuration epoch", name, value)
	}
	return n
}

// longest is how long anything may take that is read as a duration; longer times count as this one.
const longest = 100 * 365 * 24 * time.Hour

// duration is a number of units as a duration.
func duration(n int64, unit time.Duration) time.Duration {
	most := int64(longest / unit)
	return time.Duration(max(-most, min(n, most))) * unit
}

func (f *fields) seconds(name string) time.Duration {
	return duration(f.integer(name, math.MaxInt64), time.Second)
}

// readInfo reads the sections of INFO that are asked for into the view.
func readInfo(view *View, text string) error {
	info := parseFields(text)
	readVersion(view, info)
	view.RunID = strings.Clone(info.word("run_id"))
	if info.err == nil {
		info.err = checkNodeID(view.RunID)
	}
	view.Uptime = max(0, info.seconds("uptime_in_seconds")) // negative when the clock was set back
	view.UsedMemory = info.count("used_memory")
	view.MaxMemory = info.count("maxmemory")
	if info.values[appendOnlySize] != "" {
		view.AppendOnlySize = info.count(appendOnlySize)
	}
	view.Libraries = info.count("number_of_libraries")
	view.Loading = info.word("loading") != "0" || info.values["async_loading"] == "1"
	view.Redirections = redirections(info)
	view.LoadErrors = info.count("unexpected_error_replies")
	for _, name := range []string{savedSnapshot, wroteAOF} {
		if info.values[name] == "err" && (name != wroteAOF || info.values["aof_enabled"] != "0") { // else it refuses nothing
			view.PersistenceError = name
		}
	}
	view.Unsaved, view.Rewriting, view.Rewritten = unsaved(info), rewriting(info), rewritten(info)
	view.Stats = stats.Read(info.values)
	readReplication(view, info)
	if info.err == nil {
		info.err = countKeys(view, text)
	}
	return info.err
}

func readVersion(view *View, info *fields) {
	view.Engine, view.Version = EngineRedis, info.version("redis_version")
	// Valkey reports the version of Redis it is compatible with, and its own one beside it.
	if _, found := info.values["valkey_version"]; found {
		view.Engine, view.Version = EngineValkey, info.version("valkey_version")
	}
}

// version reads the version of an engine, such as 7.0.15 or 9.0.0-rc1. It is shown in the status.
func (f *fields) version(name string) string {
	const most = 32
	value := f.word(name)
	strange := func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && !strings.ContainsRune(".-+_", r)
	}
	if len(value) > most || strings.ContainsFunc(value, strange) {
		f.fail("field %s: %.80q is no version", name, value)
	}
	return strings.Clone(value)
}

// redirections reads errorstat_MOVED:count=5; there is no such line before the first.
func redirections(info *fields) int64 {
	text, found := info.values[errorsMoved]
	if !found {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimPrefix(text, "count="), 10, 64)
	if err != nil || n < 0 {
		info.fail("field %s: %.80q does not begin with count=NUMBER", errorsMoved, text)
	}
	return n
}

func readReplication(view *View, info *fields) {
	switch role := info.word("role"); role {
	case "master":
		view.Role, view.Replicas = RoleMaster, info.replicas // those of a replica say nothing of its shard
		view.ReplicationOffset = info.offset("master_repl_offset")
	case "slave", "replica":
		view.Role = RoleReplica
		view.ReplicationOffset = info.offset("slave_repl_offset")
		view.MasterLinkUp = info.word("master_link_status") == "up"
		if !view.MasterLinkUp {
			// -1 says that there never was a link in this process.
			view.MasterLinkDownFor = info.seconds("master_link_down_since_seconds")
			view.MasterLinkLost = view.MasterLinkDownFor >= 0
			view.Syncing = info.values["master_sync_in_progress"] == "1"
			if !view.MasterLinkLost {
				view.MasterLinkDownFor = view.Uptime
			}
			if ip, err := netip.ParseAddr(info.values["master_host"]); err == nil {
				view.MasterIP = ip.String()
			}
		}
	default:
		info.fail("field role: %.80q is neither master nor slave", role)
	}
	if former := info.values["master_replid2"]; checkNodeID(former) == nil && info.values["second_repl_offset"] != "-1" {
		view.FormerHistory = replication.Position{ID: strings.Clone(former), Offset: info.offset("second_repl_offset") - 1}
	}
}

// offset reads a replication offset, which may be -1 where there never was a master.
func (f *fields) offset(name string) int64 { return max(0, f.integer(name, math.MaxInt64)) }

// countKeys sums up the lines of the section keyspace, such as db0:keys=4,expires=1,avg_ttl=0,subexpiry=0. An engine that knows no time to
// live of a field does not count such hashes.
func countKeys(view *View, info string) error {
	for line := range strings.Lines(info) {
		number, isDB := strings.CutPrefix(line, "db")
		if !isDB {
			continue
		}
		number, value, _ := strings.Cut(strings.TrimRight(number, "\r\n"), ":")
		if _, err := strconv.ParseUint(number, 10, 31); err != nil {
			continue
		}
		name := "db" + number
		if !strings.HasPrefix(value, "keys=") {
			return fmt.Errorf("field %s: %.80q does not begin with keys=NUMBER", name, value)
		}
		var keys int64
		for pair := range strings.SplitSeq(value, ",") {
			what, count, _ := strings.Cut(pair, "=")
			total := map[string]*int64{"keys": &view.Keys, "expires": &view.KeysWithTTL,
				"subexpiry": &view.KeysWithFieldTTL, "keys_with_volatile_items": &view.KeysWithFieldTTL}[what]
			if total == nil {
				continue
			}
			n, err := strconv.ParseInt(count, 10, 64)
			switch {
			case err != nil || n < 0:
				return fmt.Errorf("field %s: %.80q has no number of %s", name, value, what)
			case what == "keys":
				keys = n
			case n > keys:
				return fmt.Errorf("field %s: %.80q has more %s than keys", name, value, what)
			}
			if *total += min(n, mostCounted+1); *total > mostCounted {
				return fmt.Errorf("field %s: %d is more than a server can have", name, n)
			}
		}
	}
	return nil
}

// readClusterInfo reads CLUSTER INFO into the view.
func readClusterInfo(view *View, text string) error {
	info := parseFields(text)
	switch state := ClusterState(info.word("cluster_state")); state {
	case ClusterOK:
		view.ClusterState = ClusterOK
	case ClusterFail:
		view.ClusterState = ClusterFail
	default:
		return fmt.Errorf("field cluster_state: %.80q is neither ok nor fail", state)
	}
	view.SlotsAssigned = int(info.count("cluster_slots_assigned"))
	if view.SlotsAssigned > slots.Count {
		info.fail("field cluster_slots_assigned: %d, and there are %d slots", view.SlotsAssigned, slots.Count)
	}
	view.CurrentEpoch = info.epoch("cluster_current_epoch")
	view.ConfigEpoch = info.epoch("cluster_my_epoch")
	return info.err
}
