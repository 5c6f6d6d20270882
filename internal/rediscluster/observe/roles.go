// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// role is since when a master is a master no more, when a replica was told to take over or a node to write its append-only file anew,
// and when slots were received.
type role struct {
	shard                              int
	master                             bool
	switchover, demoted, rewrite, seen time.Time
	// owned are the slots of the last look, received is when the first of them that are new were seen.
	owned    slots.Set
	received time.Time
}

// forgotten is after how long nothing is remembered of a node that does not answer.
const forgotten = time.Hour

// NoteSwitchover notes that a replica was told to take over.
func (m *Memory) NoteSwitchover(nodeID string, now time.Time) {
	if r, known := m.roles[nodeID]; known {
		r.switchover = now
		m.roles[nodeID] = r
	}
}

// NoteRewrite notes that a node was asked to write its append-only file anew.
func (m *Memory) NoteRewrite(nodeID string, now time.Time) {
	if r, known := m.roles[nodeID]; known {
		r.rewrite = now
		m.roles[nodeID] = r
	}
}

// noteRoles fills in SwitchoverAt, DemotedAt, ReceivedAt, RewriteAt and Answered. A master is one no more when it says so, and when another
// instance of its shard becomes one.
func (m *Memory) noteRoles(s *snapshot.Snapshot, now time.Time) {
	if m.roles == nil {
		m.roles = map[string]role{}
	}
	nodes := m.roles
	for _, in := range s.Reachable() {
		if was, known := nodes[in.Redis.NodeID]; known && !was.master && !in.Redis.Slots.IsEmpty() {
			demote(nodes, in.Shard, now)
		}
	}
	for _, in := range s.Reachable() {
		node, master := nodes[in.Redis.NodeID], !in.Redis.Slots.IsEmpty()
		if node.master && !master {
			node.demoted = now
		}
		if master {
			node.switchover = time.Time{}
		}
		if !in.Redis.Slots.Subtract(node.owned).IsEmpty() {
			node.received = now
		}
		node.shard, node.master, node.seen, node.owned = in.Shard, master, in.Redis.AnsweredAt, in.Redis.Slots
		nodes[in.Redis.NodeID] = node
		in.Redis.SwitchoverAt, in.Redis.DemotedAt, in.Redis.ReceivedAt = node.switchover, node.demoted, node.received
		in.Redis.RewriteAt = node.rewrite
	}
	followed := map[string]bool{}
	for _, in := range s.Reachable() {
		followed[in.Redis.MasterID] = true
	}
	for id, node := range nodes {
		switch {
		case s.ByNodeID(id) != nil:
		case now.Sub(node.seen) > forgotten && !followed[id]:
			delete(nodes, id)
		default:
			if s.Answered == nil {
				s.Answered = map[string]snapshot.Answered{}
			}
			s.Answered[id] = snapshot.Answered{At: node.seen, Master: node.master}
		}
	}
}

func demote(nodes map[string]role, shard int, now time.Time) {
	for id, r := range nodes {
		if r.master && r.shard == shard {
			r.master, r.demoted = false, now
			nodes[id] = r
		}
	}
}

// noteDisowned fills in Disowned and DisownedSince. Slots that come to it later wait for the next time, as a migration under way has
// others at every look.
func (m *Memory) noteDisowned(s *snapshot.Snapshot, now time.Time) {
	found := s.FindDisowned()
	if lasting := m.disowned.Intersect(found); !lasting.IsEmpty() {
		m.disowned = lasting
	} else {
		m.disowned, m.disownedSince = found, now
	}
	s.Disowned, s.DisownedSince = m.disowned, m.disownedSince
}
