// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

const (
	ofCluster   = `{namespace="$namespace",name="$name"}`
	clusterWide = "middleware_operator_rediscluster_"
	instance    = clusterWide + "instance_"
	shards      = "shard {{shard}}"
	pods        = "{{pod}}"
)

// each is a line an instance.
func each(title, metric, unit string) Panel {
	return lines(title, instance+metric+ofCluster, pods, unit)
}

// rate is a line an instance, of a counter.
func rate(title, metric, unit string) Panel {
	return lines(title, "rate("+instance+metric+ofCluster+"[5m])", pods, unit)
}

// sum is a recorded sum of the cluster.
func sum(title, record, unit string) Panel {
	return stat(title, "namespace_name:rediscluster_"+record+ofCluster, unit)
}

// byShard is a recorded sum of each shard, stacked.
func byShard(title, record, unit string) Panel {
	return Panel{Title: title, Form: Band, Unit: unit, Width: third,
		Queries: []Query{{"namespace_name_shard:rediscluster_" + record + ofCluster, shards}}}
}

func redisCluster() Dashboard {
	return Dashboard{
		UID: "middleware-rediscluster", Title: "Middleware / RedisCluster",
		About: "One RedisCluster, from what the operator reads of its instances.",
		Variables: []Variable{{Name: "namespace", Series: clusterWide + "slots_covered"},
			{Name: "name", Series: clusterWide + `slots_covered{namespace="$namespace"}`}},
		Annotations: []Annotation{
			{"Another master", `sum by (shard) (changes(` + instance + `master` + ofCluster + `[1m])) > 0`, shards},
			{"Slots move", clusterWide + `slots_to_move` + ofCluster + ` > 0`, "{{name}}"},
		},
		Rows: []Row{now(), data(), work(), copies(), operation()},
	}
}

func now() Row {
	return Row{"Now", []Panel{
		stat("Slots served, of 16384", clusterWide+"slots_covered"+ofCluster, "short"),
		stat("Instances ready", clusterWide+"instances_ready"+ofCluster, "short"),
		stat("Instances asked for", clusterWide+"instances"+ofCluster, "short"),
		sum("Keys", "keys:sum", "short"), sum("Memory of masters", "memory_used_bytes:sum", "bytes"),
		sum("Commands", "commands:rate5m", "ops"), sum("Clients", "clients:sum", "short"),
		sometimes(sum("Hits", "hit_ratio:rate5m", "percentunit")),
		{Title: "Phase", Form: States, Width: half, Queries: []Query{{clusterWide + "phase" + ofCluster, "{{phase}}"}}},
		{Title: "Masters", Form: States, Width: half, Queries: []Query{{instance + "master" + ofCluster, pods}}},
	}}
}

func data() Row {
	return Row{"Data", []Panel{
		{Title: "Slots", Form: Band, Unit: "short", Width: third, Queries: []Query{{
			"sum by (shard) (" + instance + "slots" + ofCluster + ")", shards}}},
		byShard("Keys", "keys:sum", "short"), byShard("Memory of masters", "memory_used_bytes:sum", "bytes"),
		{Title: "Memory used, of maxmemory", Form: Lines, Unit: "percentunit", Width: third, Sometimes: true, Queries: []Query{{
			instance + "memory_used_bytes" + ofCluster + " / (" + instance + "memory_max_bytes" + ofCluster + " > 0)", pods}}},
		each("Memory of the process", "memory_rss_bytes", "bytes"), each("Memory of clients' buffers", "memory_clients_bytes", "bytes"),
		rate("Keys expired", "expired_keys_total", "ops"), rate("Keys evicted", "evicted_keys_total", "ops"),
		sometimes(lines("Slots to move", clusterWide+"slots_to_move"+ofCluster, "left", "short")),
	}}
}

func work() Row {
	return Row{"Work", []Panel{
		byShard("Commands", "commands:rate5m", "ops"), rate("Errors, redirections among them", "errors_total", "ops"),
		each("Clients", "clients", "short"), each("Clients that wait in a command", "blocked_clients", "short"),
		rate("Connections", "connections_total", "ops"), rate("Connections refused", "rejected_connections_total", "ops"),
		rate("Received", "network_received_bytes_total", "Bps"), rate("Sent", "network_sent_bytes_total", "Bps"),
		lines("Processor", "rate("+instance+"cpu_user_seconds_total"+ofCluster+"[5m]) + rate("+instance+"cpu_system_seconds_total"+ofCluster+
			"[5m])", pods, "short"),
	}}
}

func copies() Row {
	return Row{"Copies and disks", []Panel{
		each("Replicas behind their master", "replication_behind_bytes", "bytes"), each("Replicas connected", "replicas", "short"),
		lines("Another master, in 15 minutes", "namespace_name_shard:rediscluster_master_changes:changes15m"+ofCluster, shards, "short"),
		each("Last fork", "last_fork_seconds", "s"),
		lines("Since the last snapshot", "time() - "+instance+"last_snapshot_timestamp_seconds"+ofCluster, pods, "s"),
		lines("Written to disk", "min by (pod) ("+instance+"append_only_file_written"+ofCluster+" * "+instance+"snapshot_saved"+ofCluster+")",
			pods, "short"),
	}}
}

func operation() Row {
	return Row{"Operation", []Panel{
		{Title: "What holds the next step back", Form: States, Width: third, Sometimes: true, Queries: []Query{{
			clusterWide + "blocked" + ofCluster, "{{predicate}}"}}},
		sometimes(lines("Archive behind", clusterWide+"archive_behind_seconds"+ofCluster, "behind", "s")),
		sometimes(lines("Certificate left", clusterWide+"certificate_expiry_timestamp_seconds"+ofCluster+" - time()", "left", "s")),
		sometimes(lines("Since the last backup of schedules here",
			`time() - middleware_operator_resource_last_success_timestamp_seconds{kind="RedisBackupSchedule",namespace="$namespace"}`, "{{name}}", "s")),
		{Title: "Conditions", Form: Table, Width: 2 * third, Queries: []Query{{
			Expr: condition + `{kind="RedisCluster",namespace="$namespace",name="$name"}`}}},
	}}
}
