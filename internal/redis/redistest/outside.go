// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// StandIn is the node that an instance follows when it begins as a replica of a server outside: what its nodes.conf says of it. Nobody
// answers there on the cluster bus.
type StandIn struct {
	ID, IP string
	Slots  slots.Set
	Epoch  uint64
}

// SetRelays makes addresses lead to nodes, as relays do to servers outside: a replica of who is there copies the node, and clients that
// connect reach it, whatever password they log in with. It replaces what was set before.
func (w *World) SetRelays(to map[string]*Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.relays = to
}

// relayed is the living node that an address leads to through a relay, nil when there is none.
func (w *World) relayed(ip string) *Node {
	if n := w.relays[ip]; n != nil && n.alive() {
		return n
	}
	return nil
}

// at is the living node whose clients connect to an address: its own, or that of a relay. The caller has the lock.
func (w *World) at(addr string) (n *Node, relay bool) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, false
	}
	for _, n := range w.nodes {
		if listens, _ := n.takes(port); n.alive() && listens && n.options.IP == host {
			return n, false
		}
	}
	return w.relayed(host), true
}

// standIn makes the node a replica of one that it knows from its nodes.conf only.
func (n *Node) standIn(of StandIn) {
	n.table = append(n.table, &peer{id: of.ID, ip: of.IP, port: n.options.Port, tlsPort: n.options.Port, busPort: n.busPort(),
		shard: of.ID, configEpoch: of.Epoch,
		slots: of.Slots, created: n.world.now})
	n.currentEpoch = max(n.currentEpoch, of.Epoch)
	n.self().replica, n.self().masterID, n.self().shard = true, of.ID, of.ID
}

// Put writes a key as a client does that does not wait: false while writes are paused.
func (n *Node) Put(key, value string) bool {
	w := n.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.elapse()
	if !n.alive() || w.now.Before(n.pausedUntil) {
		return false
	}
	n.put(key, value)
	return true
}

// Master is the ID of the node that this one follows; empty: it is a master.
func (n *Node) Master() string {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	if !n.self().replica {
		return ""
	}
	return n.self().masterID
}

// passes reports whether a relay passes a command on.
func passes(args []string) bool {
	switch name := strings.ToUpper(args[0]); name {
	case "AUTH", "HELLO", "PING", "INFO":
		return true
	case "CLIENT", "CLUSTER":
		sub := strings.ToUpper(strings.Join(args[1:min(len(args), 2)], ""))
		return name == "CLIENT" && (sub == "PAUSE" || sub == "UNPAUSE") || name == "CLUSTER" && sub == "NODES"
	}
	return false
}

// client is CLIENT PAUSE and UNPAUSE (clientPauseCommand): a pause that is asked for again only gets longer.
func (s *session) client(args []string) any {
	n := s.node
	switch sub := strings.ToUpper(args[0]); {
	case sub == "PAUSE" && len(args) >= 2 && len(args) <= 3:
		milliseconds, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil || milliseconds < 0 {
			return errorText("ERR timeout is not an integer or out of range")
		}
		if until := n.world.now.Add(time.Duration(milliseconds) * time.Millisecond); until.After(n.pausedUntil) {
			n.pausedUntil = until
		}
		return okReply
	case sub == "UNPAUSE" && len(args) == 1:
		n.pausedUntil = time.Time{}
		return okReply
	}
	return unknownSubcommand("CLIENT", args[0])
}

// beginHistory begins a new history of the data (changeReplicationId).
func (n *Node) beginHistory() {
	n.histories++
	sum := sha256.Sum256([]byte(n.id + " " + strconv.Itoa(n.histories)))
	n.history = hex.EncodeToString(sum[:])[:40]
}

// endHistory begins a new history at the end of the one before, which is kept (shiftReplicationId).
func (n *Node) endHistory() {
	n.former, n.formerEnd = n.history, n.offset+1
	n.beginHistory()
}

func (n *Node) historyInfo() string {
	former, end := n.former, n.formerEnd
	if former == "" {
		former, end = strings.Repeat("0", 40), -1
	}
	return lines("master_replid:%s", n.history, "master_replid2:%s", former, "second_repl_offset:%s", fmt.Sprint(end))
}
