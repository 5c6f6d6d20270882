// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import "strings"

// disk is what the node's append-only file has come to. A file that could not be synced once counts as one that cannot be written for good,
// until it is written anew, or, on Redis before 7.2, opened again (aof_bio_fsync_status).
type disk struct{ full, failed, rewriteFailed, rewritten bool }

// SetDiskFull makes the node fail to sync its append-only file, as all do that write to it then, or gives it room again.
func (n *Node) SetDiskFull(full bool) {
	n.world.mu.Lock()
	defer n.world.mu.Unlock()
	n.disk.full = full
	if full {
		n.disk.failed, n.disk.rewritten = true, false
	}
}

// rewriteAOF is BGREWRITEAOF. It comes to its end at once.
func (s *session) rewriteAOF([]string) any {
	d := &s.node.disk
	d.rewriteFailed, d.rewritten = d.full, !d.full
	if column := s.node.column(); !d.full && column != "redis-7.0" {
		d.failed = false
	}
	return simple("Background append only file rewriting started")
}

// multi is MULTI, exec is EXEC: what comes in between is queued.
func (s *session) multi([]string) any {
	s.queued = [][]string{}
	return okReply
}

func (s *session) exec([]string) any {
	queued, answers := s.queued, []any{}
	if queued == nil {
		return errorText("ERR EXEC without MULTI")
	}
	s.queued = nil
	for _, args := range queued {
		answers = append(answers, s.execute(args))
	}
	return answers
}

// queues reports whether a command waits for EXEC.
func (s *session) queues(args []string) bool {
	if s.queued == nil || strings.EqualFold(args[0], "EXEC") {
		return false
	}
	s.queued = append(s.queued, args)
	return true
}

// switchAOF is what CONFIG SET appendonly does.
func (n *Node) switchAOF(was, is string) {
	if was == "no" && is == "yes" {
		n.disk.failed, n.disk.rewriteFailed, n.disk.rewritten = false, n.disk.full, !n.disk.full
	}
}

// persistence is that section of INFO, without what is about loading.
func (n *Node) persistence() string {
	status := map[bool]string{false: "ok", true: "err"}
	size := 200
	if n.disk.rewritten {
		size = 100
	}
	enabled := 0
	if n.settings["appendonly"] == "yes" {
		enabled = 1
	}
	return lines(
		"aof_enabled:%d", enabled,
		"aof_rewrite_in_progress:%d", 0,
		"aof_last_bgrewrite_status:%s", status[n.disk.rewriteFailed],
		"aof_last_write_status:%s", status[n.disk.failed && enabled == 1],
		"aof_current_size:%d", size,
		"aof_base_size:%d", 100,
	)
}
