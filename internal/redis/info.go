// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// fields are the name:value lines of INFO and CLUSTER INFO. The first field that is missing or malformed is kept as
// err, so that a reader can ask for many fields and check once.
type fields struct {
	values map[string]string
	err    error
}

func parseFields(text string) *fields {
	f := &fields{values: map[string]string{}}
	for line := range strings.Lines(text) {
		name, value, found := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		if found && !strings.HasPrefix(name, "#") {
			f.values[name] = value
		}
	}
	return f
}

func (f *fields) text(name string) string {
	value, found := f.values[name]
	if !found && f.err == nil {
		f.err = fmt.Errorf("field %s is missing", name)
	}
	return value
}

func (f *fields) integer(name string) int64 {
	value := f.text(name)
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("field %s: %q is not a whole number", name, value)
	}
	return n
}

// count reads a number that cannot be negative.
func (f *fields) count(name string) int64 {
	n := f.integer(name)
	if n < 0 && f.err == nil {
		f.err = fmt.Errorf("field %s: %d is negative", name, n)
	}
	return n
}

func (f *fields) epoch(name string) uint64 {
	value := f.text(name)
	n, err := strconv.ParseUint(value, 10, 64)
	if err != nil && f.err == nil {
		f.err = fmt.Errorf("field %s: %q is not a configuration epoch", name, value)
	}
	return n
}

func (f *fields) seconds(name string) time.Duration {
	return time.Duration(f.integer(name)) * time.Second
}

// readInfo reads the sections server, memory, persistence, replication, keyspace and errorstats of INFO into the view.
func readInfo(view *View, text string) error {
	info := parseFields(text)
	view.Engine, view.Version = EngineRedis, info.text("redis_version")
	// Valkey reports the version of Redis it is compatible with, and its own one beside it.
	if version, found := info.values["valkey_version"]; found {
		view.Engine, view.Version = EngineValkey, version
	}
	view.RunID = info.text("run_id")
	view.Uptime = info.seconds("uptime_in_seconds")
	view.UsedMemory = info.count("used_memory")
	view.MaxMemory = info.count("maxmemory")
	view.Libraries = info.count("number_of_libraries")
	view.Loading = info.text("loading") != "0" || info.values["async_loading"] == "1"
	view.Redirections = redirections(info)
	readReplication(view, info)
	if info.err == nil {
		view.Keys, info.err = countKeys(info.values)
	}
	return info.err
}

// redirections reads errorstat_MOVED:count=5; there is no such line before the first.
func redirections(info *fields) int64 {
	text, found := strings.CutPrefix(info.values["errorstat_MOVED"], "count=")
	n, err := strconv.ParseInt(text, 10, 64)
	if found && err != nil && info.err == nil {
		info.err = fmt.Errorf("field errorstat_MOVED: %q does not begin with count=NUMBER", text)
	}
	return n
}

func readReplication(view *View, info *fields) {
	switch role := info.text("role"); role {
	case "master":
		view.Role = RoleMaster
		view.ReplicationOffset = info.integer("master_repl_offset")
	case "slave", "replica":
		view.Role = RoleReplica
		view.ReplicationOffset = info.integer("slave_repl_offset")
		view.MasterLinkUp = info.text("master_link_status") == "up"
		if !view.MasterLinkUp {
			// -1 says that there never was a link in this process.
			view.MasterLinkDownFor = info.seconds("master_link_down_since_seconds")
			view.MasterLinkLost = view.MasterLinkDownFor >= 0
			if !view.MasterLinkLost {
				view.MasterLinkDownFor = view.Uptime
			}
		}
	default:
		if info.err == nil {
			info.err = fmt.Errorf("field role: %q is neither master nor slave", role)
		}
	}
}

// countKeys sums up the lines of the section keyspace, such as db0:keys=4,expires=1,avg_ttl=0.
func countKeys(values map[string]string) (int64, error) {
	var total int64
	for name, value := range values {
		number, isDB := strings.CutPrefix(name, "db")
		if _, err := strconv.Atoi(number); !isDB || err != nil {
			continue
		}
		count, _, _ := strings.Cut(value, ",")
		keys, err := strconv.ParseInt(strings.TrimPrefix(count, "keys="), 10, 64)
		if err != nil || keys < 0 {
			return 0, fmt.Errorf("field %s: %q does not begin with keys=NUMBER", name, value)
		}
		total += keys
	}
	return total, nil
}

// readClusterInfo reads CLUSTER INFO into the view.
func readClusterInfo(view *View, text string) error {
	info := parseFields(text)
	switch state := ClusterState(info.text("cluster_state")); state {
	case ClusterOK, ClusterFail:
		view.ClusterState = state
	default:
		return fmt.Errorf("field cluster_state: %q is neither ok nor fail", state)
	}
	view.SlotsAssigned = int(info.count("cluster_slots_assigned"))
	view.CurrentEpoch = info.epoch("cluster_current_epoch")
	view.ConfigEpoch = info.epoch("cluster_my_epoch")
	return info.err
}
