// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"fmt"
	"strings"
)

const id = "07c37dfeb235213a872192d90877d0cd55635b91"

// plausible is what an instance of a cluster answers, but for the command in which this kind lies.
func plausible(kind Kind, command string) string {
	switch {
	case strings.HasPrefix(command, "HELLO"):
		return "*14\r\n" + bulk("server") + bulk("redis") + bulk("version") + bulk("7.0.15") + bulk("proto") + ":2\r\n" + bulk("id") + ":5\r\n" +
			bulk("mode") + bulk("cluster") + bulk("role") + bulk("master") + bulk("modules") + "*0\r\n"
	case strings.HasPrefix(command, "INFO"):
		return bulk(info(kind))
	case command == "CLUSTER INFO":
		return bulk(
			"cluster_state:ok\r\ncluster_slots_assigned:16384\r\ncluster_current_epoch:18446744073709551615\r\ncluster_my_epoch:18446744073709551615\r\n")
	case command == "CLUSTER NODES" && kind == LateOverflow:
		return fixed[BulkOverflow]
	case command == "CLUSTER NODES":
		return bulk(nodes(kind))
	case command == "CLUSTER MYID":
		return bulk(id)
	case strings.HasPrefix(command, "CONFIG GET"):
		return settings(command)
	case strings.HasPrefix(command, "COMMAND INFO"):
		return "*2\r\n*-1\r\n*-1\r\n"
	case command == "ACL LIST":
		return "*1\r\n" + bulk("user default on nopass ~* &* +@all")
	case kind == LongError:
		return "-ERR " + strings.Repeat("no \x1b[31m", 1<<10) + "\r\n"
	}
	return "+OK\r\n"
}

func bulk(text string) string { return fmt.Sprintf("$%d\r\n%s\r\n", len(text), text) }

func info(kind Kind) string {
	number := "1"
	if kind == Numbers {
		number = "9223372036854775807"
	}
	var text strings.Builder
	text.WriteString("redis_version:7.0.15\r\nrun_id:" + id + "\r\nloading:0\r\nrole:slave\r\nmaster_link_status:down\r\n")
	for _, name := range []string{"uptime_in_seconds", "used_memory", "maxmemory", "number_of_libraries", "slave_repl_offset",
		"master_link_down_since_seconds"} {
		text.WriteString(name + ":" + number + "\r\n")
	}
	text.WriteString("db0:keys=" + number + "\r\ndb1:keys=" + number + "\r\n")
	return text.String()
}

func nodes(kind Kind) string {
	var text strings.Builder
	text.WriteString(id + " :6379@16379 myself,master - 0 0 1 connected 0-16383\n")
	if kind == LongNodes {
		for i := range 100_000 {
			fmt.Fprintf(&text, "%040x 10.0.0.1:6379@16379 master - 0 0 1 connected\n", i)
		}
	}
	return text.String()
}

// settings answers each name with a value that most settings have.
func settings(command string) string {
	names := strings.Fields(strings.ToLower(command))[2:]
	var text strings.Builder
	fmt.Fprintf(&text, "*%d\r\n", 2*len(names))
	for _, name := range names {
		text.WriteString(bulk(name) + bulk("5000"))
	}
	return text.String()
}
