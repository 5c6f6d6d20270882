// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"math"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/replication"
)

// RightsToBackUp are what a user needs to follow an instance's data and to set a mark. Every engine knows all of them: a rule that an
// engine does not know would keep it from starting.
const RightsToBackUp = "+psync +replconf +ping +info +cluster|nodes +cluster|info +command|info +client|pause +client|unpause"

// RightToSeeJobs is what MovesSlots needs besides on Valkey from 9.0 on, which earlier versions and Redis do not know.
const RightToSeeJobs = "+cluster|getslotmigrations"

// RightsToImport are what a user of a server outside needs for its data to be followed and its writes to be paused, and at those in cluster
// mode for the masters to be found.
const RightsToImport = "+psync +replconf +ping +info +client|pause +client|unpause +cluster|nodes"

// Follow begins a replication session at the node, from a position on if it has what follows, or else from a base. The pool's DialTimeout
// bounds the connecting; for a base, the node may fork and write a file first, and says with empty lines that it lives. An error
// matches one of this package's and what replication says.
func (n *Node) Follow(ctx context.Context, from replication.Position, version string, uncounted bool) (*replication.Session, error) {
	c := command{name: "PSYNC"}
	dialing, cancel := context.WithTimeout(ctx, n.pool.options.DialTimeout)
	defer cancel()
	conn, err := n.pool.dial(dialing, n.key.addr, n.key.credentials)
	if err != nil {
		return nil, n.failed(ctx, c, err)
	}
	session, err := replication.Follow(ctx, conn, from, replication.Options{
		Username: userOf(n.key.credentials), Password: n.key.credentials.Password, Version: version, Uncounted: uncounted,
	})
	if err != nil {
		return nil, n.failed(ctx, c, err)
	}
	return session, nil
}

// History is where a node is in the history of its data, and what it says of its cluster at that moment.
type History struct {
	// View has the engine, its version, the role, the link to the master, how many keys there are, and what CLUSTER NODES says, and
	// nothing else. The keys are those of the moment of At.
	View View
	// At is the node's own position. Before is the history that it had until it became a master, with the offset that begins what
	// followed; without an ID there is none.
	At, Before replication.Position
	// Backlog is the offset of the first byte that the node still has of its stream; 0: it has none.
	Backlog int64
	// Others reports whether there are keys in other databases than 0.
	Others bool
	// Counts reports whether the master refuses writes while too few replicas answer (min-replicas-to-write).
	Counts bool
}

// History asks for it, in one round trip.
func (n *Node) History(ctx context.Context) (History, error) {
	commands := []command{
		{name: "INFO", args: words("INFO server replication keyspace")},
		{name: "CLUSTER NODES", args: words("CLUSTER NODES")},
	}
	answers, err := n.pipeline(ctx, commands...)
	if err != nil {
		return History{}, err
	}
	var texts [2]string
	for i, answer := range answers {
		if err := answer.Err(); err != nil {
			return History{}, n.failed(ctx, commands[i], err)
		}
		if texts[i], err = answer.Text(); err != nil {
			return History{}, n.notUnderstood(commands[i], err)
		}
	}
	var h History
	if err := readHistory(&h, texts[0]); err != nil {
		return History{}, n.notUnderstood(commands[0], err)
	}
	if err := readNodes(&h.View, texts[1]); err != nil {
		return History{}, n.notUnderstood(commands[1], err)
	}
	return h, nil
}

// readHistory reads the sections server, replication and keyspace of INFO.
func readHistory(h *History, text string) error {
	info := parseFields(text)
	readVersion(&h.View, info)
	readReplication(&h.View, info)
	h.At = replication.Position{ID: strings.Clone(info.word("master_replid")), Offset: info.offset("master_repl_offset")}
	h.Before = replication.Position{ID: strings.Clone(info.word("master_replid2")), Offset: info.integer("second_repl_offset", math.MaxInt64)}
	if h.Before.Offset < 0 {
		h.Before = replication.Position{} // no master before
	}
	if info.word("repl_backlog_active") == "1" {
		h.Backlog = info.offset("repl_backlog_first_byte_offset")
	}
	for line := range strings.Lines(text) {
		h.Others = h.Others || strings.HasPrefix(line, "db") && !strings.HasPrefix(line, "db0:")
	}
	h.Counts = info.values["min_slaves_good_slaves"] != ""
	if info.err == nil {
		info.err = checkNodeID(h.At.ID)
	}
	if info.err == nil {
		info.err = countKeys(&h.View, text)
	}
	return info.err
}

// Sending is what a node says of the data set that it sends to a replica, or would send.
type Sending struct {
	UsedMemory int64
	// Keys of Total have been sent, or saved in some other way: a process of the node's that does either counts them. Total 0: none does.
	Keys, Total int64
}

// Sending asks for it.
func (n *Node) Sending(ctx context.Context) (Sending, error) {
	c := command{name: "INFO", args: words("INFO memory persistence")}
	answer, err := n.do(ctx, c)
	if err != nil {
		return Sending{}, err
	}
	text, err := answer.Text()
	if err != nil {
		return Sending{}, n.notUnderstood(c, err)
	}
	sending, err := readSending(text)
	if err != nil {
		return Sending{}, n.notUnderstood(c, err)
	}
	return sending, nil
}

// readSending reads the sections memory and persistence of INFO. The counts are there only while there is something to count.
func readSending(text string) (Sending, error) {
	info := parseFields(text)
	s := Sending{UsedMemory: info.count("used_memory")}
	if _, counts := info.values[savedKeys]; counts {
		s.Keys, s.Total = info.count(savedKeys), info.count(keysToSave)
	}
	return s, info.err
}

// PauseWrites delays every write that clients send, for so long at most; ResumeWrites ends that. Reads go on.
func (n *Node) PauseWrites(ctx context.Context, most time.Duration) error {
	return n.tell(ctx, "CLIENT PAUSE", most.Milliseconds(), "WRITE")
}

// ResumeWrites ends what PauseWrites began.
func (n *Node) ResumeWrites(ctx context.Context) error { return n.tell(ctx, "CLIENT UNPAUSE") }
