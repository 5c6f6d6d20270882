// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stats names the figures of a server's INFO that are told as metrics.
package stats

import (
	"math"
	"strconv"
)

// Stat is one figure.
type Stat struct {
	// Name is what the metric's name ends with, Help says what it is.
	Name, Help string
	// Counter reports whether it only grows while the process lives.
	Counter bool

	field string
	// scale is what the field's number is multiplied by; 0: 1.
	scale float64
	// yes is the word that stands for 1, no the one that stands for 0, which is any other if it is empty. Both are empty where the field is a
	// number.
	yes, no string
}

// All are the figures that are told.
var All = [...]Stat{
	{field: "uptime_in_seconds", Name: "uptime_seconds", Help: "For how long the process has run."},
	{field: "connected_clients", Name: "clients", Help: "Connections of clients."},
	{field: "blocked_clients", Name: "blocked_clients", Help: "Clients that wait in a blocking command."},
	{field: "used_memory", Name: "memory_used_bytes", Help: "What the engine has allocated."},
	{field: "used_memory_rss", Name: "memory_rss_bytes", Help: "What the operating system has given to it."},
	{field: "maxmemory", Name: "memory_max_bytes", Help: "The limit maxmemory; 0 is none."},
	{field: "maxmemory_policy", Name: "memory_full_refuses",
		Help: "1 if writes are refused at that limit (noeviction), 0 if keys are evicted.", yes: "noeviction"},
	{field: "mem_clients_normal", Name: "memory_clients_bytes", Help: "What buffers of ordinary clients take."},
	{field: "total_connections_received", Name: "connections_total", Help: "Connections that were accepted.", Counter: true},
	{field: "rejected_connections", Name: "rejected_connections_total", Help: "Connections that were refused because of maxclients.",
		Counter: true},
	{field: "total_commands_processed", Name: "commands_total", Help: "Commands that were carried out.", Counter: true},
	{field: "total_error_replies", Name: "errors_total", Help: "Commands that were answered with an error, redirections among them.",
		Counter: true},
	{field: "total_net_input_bytes", Name: "network_received_bytes_total", Help: "What came in.", Counter: true},
	{field: "total_net_output_bytes", Name: "network_sent_bytes_total", Help: "What went out.", Counter: true},
	{field: "total_net_repl_input_bytes", Name: "network_replication_received_bytes_total", Help: "What came in of that from a master.",
		Counter: true},
	{field: "total_net_repl_output_bytes", Name: "network_replication_sent_bytes_total",
		Help: "What went out of that to replicas, and to backups and archives.", Counter: true},
	{field: "keyspace_hits", Name: "hits_total", Help: "Keys that were looked up and there.", Counter: true},
	{field: "keyspace_misses", Name: "misses_total", Help: "Keys that were looked up and not there.", Counter: true},
	{field: "expired_keys", Name: "expired_keys_total", Help: "Keys that were deleted because their time was over.", Counter: true},
	{field: "evicted_keys", Name: "evicted_keys_total", Help: "Keys that were deleted because of maxmemory.", Counter: true},
	{field: "latest_fork_usec", Name: "last_fork_seconds", Help: "How long the last fork took, in which nothing was answered.", scale: 1e-6},
	{field: "rdb_last_bgsave_status", Name: "snapshot_saved", Help: "1 unless the last snapshot could not be saved.", yes: "ok", no: "err"},
	{field: "rdb_last_save_time", Name: "last_snapshot_timestamp_seconds", Help: "When the last snapshot was saved, or the process began."},
	{field: "aof_last_write_status", Name: "append_only_file_written", Help: "1 unless the append-only file could not be written to.",
		yes: "ok", no: "err"},
	{field: "aof_last_bgrewrite_status", Name: "append_only_file_rewritten",
		Help: "1 unless the append-only file could not be written anew.", yes: "ok", no: "err"},
	{field: "connected_slaves", Name: "replicas", Help: "Replicas that are connected."},
	{field: "used_cpu_user", Name: "cpu_user_seconds_total", Help: "Processor time of the process itself.", Counter: true},
	{field: "used_cpu_sys", Name: "cpu_system_seconds_total", Help: "Processor time of the kernel for it.", Counter: true},
}

// Values are those of All, in that order; Unknown for one that the server does not tell.
type Values [len(All)]float64

// Index is where the figure of a name is in All and Values; it panics when there is none.
func Index(name string) int {
	for i, stat := range All {
		if stat.Name == name {
			return i
		}
	}
	panic("there is no figure " + name)
}

// Unknown is the value of a figure that is not known. None is negative.
const Unknown = -1

// Fields are the fields of INFO that are read.
func Fields() []string {
	names := make([]string, len(All))
	for i, stat := range All {
		names[i] = stat.field
	}
	return names
}

// Read reads the values of fields. What is not a number from 0 on is Unknown.
func Read(fields map[string]string) (values Values) {
	for i, stat := range All {
		values[i] = stat.read(fields)
	}
	return values
}

func (s Stat) read(fields map[string]string) float64 {
	text, found := fields[s.field]
	switch {
	case !found:
		return Unknown
	case s.yes != "" && text == s.yes:
		return 1
	case s.yes != "" && (s.no == "" || text == s.no):
		return 0
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return Unknown
	}
	if s.scale != 0 {
		n *= s.scale
	}
	return n
}
