// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// nodes is CLUSTER NODES (clusterGenNodeDescription).
func (n *Node) nodes() string {
	var b strings.Builder
	for _, p := range n.table {
		address := fmt.Sprintf("%s:%d@%d", p.ip, n.portOf(p), p.busPort)
		if p.hostname != "" {
			address += "," + p.hostname
		}
		masterID, epoch := "-", p.configEpoch
		if master := n.find(p.masterID); p.replica && master != nil {
			masterID, epoch = master.id, master.configEpoch
		}
		link := "disconnected"
		if p.linkUp || p == n.self() {
			link = "connected"
		}
		fmt.Fprintf(&b, "%s %s %s %s %d %d %d %s", p.id, address, n.flags(p), masterID,
			millis(p.pingSent), millis(p.pong), epoch, link)
		for _, interval := range p.slots.Ranges() {
			b.WriteString(" " + interval.String())
		}
		if p == n.self() {
			b.WriteString(n.openSlots())
		}
		b.WriteString("\n")
	}
	return b.String()
}

// flags are the words of representClusterNodeFlags, in its order.
func (n *Node) flags(p *peer) string {
	var words []string
	for _, flag := range []struct {
		set  bool
		word string
	}{
		{p == n.self(), "myself"},
		{!p.handshake && !p.replica, "master"},
		{!p.handshake && p.replica, "slave"},
		{p.pfail, "fail?"},
		{p.fail, "fail"},
		{p.handshake, "handshake"},
		{p.noAddress, "noaddr"},
	} {
		if flag.set {
			words = append(words, flag.word)
		}
	}
	return strings.Join(words, ",")
}

func millis(at time.Time) int64 {
	if at.IsZero() {
		return 0
	}
	return at.UnixMilli()
}

// clusterInfo is CLUSTER INFO, without the counters of messages.
func (n *Node) clusterInfo() string {
	var suspected, failed int
	for _, p := range n.table {
		if p.pfail {
			suspected += p.slots.Len()
		}
		if p.fail {
			failed += p.slots.Len()
		}
	}
	assigned := n.owned().Len()
	size, _ := n.votingMasters()
	epoch := n.self().configEpoch
	if master := n.master(); master != nil {
		epoch = master.configEpoch
	}
	return lines(
		"cluster_state:%s", n.state,
		"cluster_slots_assigned:%d", assigned,
		"cluster_slots_ok:%d", assigned-suspected-failed,
		"cluster_slots_pfail:%d", suspected,
		"cluster_slots_fail:%d", failed,
		"cluster_known_nodes:%d", len(n.table),
		"cluster_size:%d", size,
		"cluster_current_epoch:%d", n.currentEpoch,
		"cluster_my_epoch:%d", epoch,
	)
}

// info is INFO: all fields that redis.Node.Describe reads, whatever sections are asked for.
func (n *Node) info() string {
	text := "# Server\r\n" + lines("redis_version:%s", n.options.Version)
	if n.options.Valkey {
		text = "# Server\r\n" + lines("redis_version:%s", "7.2.4", "server_name:%s", "valkey",
			"valkey_version:%s", n.options.Version)
	}
	usedMemory := 1 << 20
	for key, value := range n.keys {
		usedMemory += len(key) + len(value) + n.world.keyBytes
	}
	loading := 0
	if n.loading {
		loading = 1
	}
	text += lines(
		"redis_mode:%s", "cluster",
		"cluster_enabled:%d", 1,
		"run_id:%s", n.runID,
		"uptime_in_seconds:%d", int(n.world.now.Sub(n.started).Seconds()),
	) + "\r\n# Memory\r\n" + lines(
		"used_memory:%d", usedMemory,
		"maxmemory:%d", n.options.MaxMemory,
		"number_of_libraries:%d", len(n.libraries),
	) + "\r\n# Persistence\r\n" + lines(
		"loading:%d", loading,
		"async_loading:%d", 0,
	) + n.persistence() + "\r\n# Stats\r\n" + lines(
		"unexpected_error_replies:%d", n.loadErrors,
		"total_commands_processed:%d", n.commands(),
	) + "\r\n# Replication\r\n" + n.replicationInfo() + "\r\n# Keyspace\r\n"
	if len(n.keys) > 0 {
		text += lines("db0:keys=%d,expires=0,avg_ttl=0", len(n.keys))
	}
	return text + n.figures(text)
}

// figures are those of the world's options that a text does not have.
func (n *Node) figures(text string) string {
	var b strings.Builder
	node, _ := strconv.ParseInt(n.self().id[:6], 16, 64) // IDs are hexadecimal
	for i, field := range n.world.options.Figures {
		value := node % 100
		if strings.HasPrefix(field, "total_") || strings.HasPrefix(field, "keyspace_") {
			value = int64(i)*node + n.world.now.Unix()%1e6
		}
		if !strings.Contains(text, "\n"+field+":") {
			b.WriteString(lines(field+":%d", value))
		}
	}
	return b.String()
}

// commands is how many commands applications have sent to a master: as many for each of its slots, see World.SetCommandsPerSecond.
func (n *Node) commands() int {
	w := n.world
	if self := n.self(); !self.replica {
		n.carriedOut += w.perSlot * float64(self.slots.Len()) * w.now.Sub(n.countedAt).Seconds()
	}
	n.countedAt = w.now
	return int(n.carriedOut)
}

func (n *Node) replicationInfo() string {
	if !n.self().replica {
		replicas := n.syncedReplicas()
		text := lines("role:%s", "master", "connected_slaves:%d", len(replicas))
		for i, r := range replicas {
			text += lines(fmt.Sprintf("slave%d:ip=%%s,port=%d,state=online,offset=%d,lag=0", i, r.options.Port, r.offset), r.options.IP)
		}
		return text + lines("master_repl_offset:%d", n.offset) + n.historyInfo()
	}
	var ip string
	var port int
	if master := n.master(); master != nil {
		ip, port = master.ip, master.port
	}
	status := lines("master_link_status:%s", "up")
	if !n.masterLinkUp {
		down := -1
		if !n.masterLostSince.IsZero() {
			down = int(n.world.now.Sub(n.masterLostSince).Seconds())
		}
		status = lines("master_link_status:%s", "down", "master_link_down_since_seconds:%d", down)
	}
	return lines("role:%s", "slave", "master_host:%s", ip, "master_port:%d", port) + status + lines(
		"slave_repl_offset:%d", n.offset,
		"master_repl_offset:%d", n.offset,
	) + n.historyInfo()
}

// lines joins pairs of a format and its value to lines as the protocol ends them.
func lines(pairs ...any) string {
	var b strings.Builder
	for pair := range slices.Chunk(pairs, 2) {
		fmt.Fprintf(&b, pair[0].(string)+"\r\n", pair[1])
	}
	return b.String()
}

// shards is CLUSTER SHARDS (clusterCommandShards) with the fields of the RESP2 answer.
func (n *Node) shards() any {
	var answer []any
	for _, master := range n.table {
		if master.replica || master.handshake {
			continue
		}
		bounds := []any{}
		for _, interval := range master.slots.Ranges() {
			bounds = append(bounds, int(interval.First), int(interval.Last))
		}
		members := []any{n.shardMember(master)}
		for _, p := range n.table {
			if p.replica && p.masterID == master.id {
				members = append(members, n.shardMember(p))
			}
		}
		answer = append(answer, []any{"slots", bounds, "nodes", members})
	}
	return answer
}

func (n *Node) shardMember(p *peer) any {
	role, health := "master", "online"
	if p.replica {
		role = "replica"
	}
	if p.fail || p.pfail {
		health = "fail"
	}
	member := []any{"id", p.id, "port", n.portOf(p), "ip", p.ip, "endpoint", p.ip}
	if p.hostname != "" {
		member = append(member, "hostname", p.hostname)
	}
	// Replication offsets of others are not simulated.
	return append(member, "role", role, "replication-offset", 0, "health", health)
}

// fingerprint is all of an entry that gossip can change but the times.
func (p *peer) fingerprint() string {
	return fmt.Sprintf("%s %s:%d,%d@%d,%s %s %t %s %d %s %t %t %t %t %t %t %d", p.id, p.ip, p.port, p.tlsPort, p.busPort, p.hostname,
		p.shard, p.replica, p.masterID, p.configEpoch, p.slots, p.handshake, p.meet, p.noAddress, p.pfail, p.fail, p.linkUp, len(p.reports))
}

// Describe is CLUSTER NODES with the number of keys, for messages of tests.
func (n *Node) Describe() string {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	return fmt.Sprintf("%d keys, link to the master %t, %s\n%s", len(n.keys), n.masterLinkUp, n.state, n.nodes())
}
