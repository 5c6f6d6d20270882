// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// jobTimeout is how long a migration lives without a word from the other end (repl-timeout).
const jobTimeout = 60 * time.Second

// job is one end of a migration of slots in Valkey 9 (slotMigrationJob), kept in memory only. It has the states of real
// ones that matter to others: the keys travel all at once, with the slots.
type job struct {
	name           string
	isImport       bool
	isTracking     bool // a replica's note of an import by its master
	slots          slots.Set
	ranges         string // slots as they were asked for
	source, target string // node IDs
	created        time.Time
	updated, acked time.Time
	state, message string
}

func (j *job) inProgress() bool {
	return j.state != "success" && j.state != "cancelled" && j.state != "failed"
}

// Which jobs.
func anyJob(*job) bool      { return true }
func importJob(j *job) bool { return j.isImport }
func exportJob(j *job) bool { return !j.isImport }

// running are the jobs of a kind that have not ended.
func (n *Node) running(kind func(*job) bool) []*job {
	var found []*job
	for _, j := range n.jobs {
		if kind(j) && j.inProgress() {
			found = append(found, j)
		}
	}
	return found
}

// endJobs fails the running jobs of a kind (finishSlotMigrationJob).
func (n *Node) endJobs(kind func(*job) bool, message string) {
	for _, j := range n.running(kind) {
		n.setJob(j, "failed", message)
	}
}

func (n *Node) setJob(j *job, state, message string) {
	j.state, j.message, j.updated = state, message, n.world.now
}

func (n *Node) jobSlots(kind func(*job) bool) slots.Set {
	var all slots.Set
	for _, j := range n.running(kind) {
		all = all.Union(j.slots)
	}
	return all
}

// busyWithJobs is why slots cannot be moved by hand now; empty when they can (clusterParseSetSlotCommand).
func (n *Node) busyWithJobs() errorText {
	switch {
	case len(n.running(importJob)) > 0:
		return "ERR Slot import in progress."
	case len(n.running(exportJob)) > 0:
		return "ERR Slot export in progress."
	}
	return ""
}

// refuseJobs is why no migration can start here; empty when one can (validateSlotMigrationCanStartOrReply).
func (n *Node) refuseJobs() errorText {
	switch {
	case n.self().replica:
		return "ERR Slot migration can only be used on primary nodes."
	case len(n.importing) > 0:
		return "ERR Slots are being manually imported"
	case len(n.migrating) > 0:
		return "ERR Slots are being manually migrated"
	}
	return ""
}

// migrateSlotsCommand is CLUSTER MIGRATESLOTS (clusterCommandMigrateSlots). What it starts goes on in later rounds.
func (n *Node) migrateSlotsCommand(args []string) any {
	if refusal := n.refuseJobs(); refusal != "" {
		return refusal
	}
	var started []*job
	for len(args) > 0 {
		if !strings.EqualFold(args[0], "SLOTSRANGE") {
			return syntaxError
		}
		ranges := args[1:]
		end := 0
		for end < len(ranges) && isInteger(ranges[end]) {
			end += 2
		}
		end = min(end, len(ranges))
		j, refusal := n.newExport(ranges[:end], started)
		if refusal == "" {
			refusal = n.setTarget(j, ranges[end:])
		}
		if refusal != "" {
			return refusal
		}
		started, args = append(started, j), ranges[end+2:]
	}
	for _, j := range started {
		n.jobs = append([]*job{j}, n.jobs...)
	}
	return okReply
}

func isInteger(text string) bool {
	_, err := strconv.ParseInt(text, 10, 64)
	return err == nil
}

// newExport makes a job of pairs of bounds (parseSlotRangesOrReply).
func (n *Node) newExport(bounds []string, before []*job) (*job, errorText) {
	now := n.world.now
	j := &job{name: n.world.hexID(), source: n.id, created: now, updated: now, acked: now, state: "connecting"}
	var words []string
	for len(bounds) > 0 {
		first, err := slots.ParseNumber(bounds[0])
		if err != nil {
			return nil, invalidSlot
		}
		if len(bounds) == 1 {
			return nil, "ERR No end slot for final slot range"
		}
		last, err := slots.ParseNumber(bounds[1])
		if err != nil {
			return nil, invalidSlot
		}
		if first > last {
			return nil, errorText(fmt.Sprintf("ERR Start slot number %d is greater than end slot number %d.", first, last))
		}
		for _, earlier := range words {
			if other, err := slots.Parse(earlier); err == nil && !other.Intersect(slots.Range(first, last)).IsEmpty() {
				return nil, errorText(fmt.Sprintf("ERR Slot range %d-%d overlaps with previous range %s.", first, last, earlier))
			}
		}
		j.slots = j.slots.Union(slots.Range(first, last))
		words = append(words, fmt.Sprintf("%d-%d", first, last))
		if refusal := n.refuseOwners(j.slots); refusal != "" {
			return nil, refusal
		}
		bounds = bounds[2:]
	}
	j.ranges = strings.Join(words, " ")
	if len(words) == 0 {
		return nil, "ERR No slot ranges specified"
	}
	if j.slots.Intersect(n.self().slots).IsEmpty() {
		return nil, "ERR Slots are not served by this node."
	}
	if twice := j.slots.Intersect(n.jobSlots(exportJob)); !twice.IsEmpty() {
		return nil, errorText(fmt.Sprintf("ERR I am already migrating slot %s.", twice.Take(1)))
	}
	for _, other := range before {
		if !other.slots.Intersect(j.slots).IsEmpty() {
			return nil, "ERR Slot ranges in migrations overlap"
		}
	}
	return j, ""
}

// refuseOwners is why the slots cannot move together; empty when they have one owner.
func (n *Node) refuseOwners(wanted slots.Set) errorText {
	if free := wanted.Subtract(n.owned()); !free.IsEmpty() {
		return errorText(fmt.Sprintf("ERR Slot %s has no node served.", free.Take(1)))
	}
	for _, p := range n.table {
		if common := wanted.Intersect(p.slots); !common.IsEmpty() && !common.Equal(wanted) {
			return "ERR Requested slots span multiple shards"
		}
	}
	return ""
}

func (n *Node) setTarget(j *job, words []string) errorText {
	if len(words) < 2 || !strings.EqualFold(words[0], "NODE") {
		return syntaxError
	}
	target := n.find(words[1])
	switch {
	case len(words[1]) != len(n.id):
		return errorText("ERR Invalid node name: " + words[1])
	case target == nil:
		return errorText("ERR Unknown node name: " + words[1])
	case target == n.self():
		return "ERR Target node can not be this node."
	}
	j.target = target.id
	return ""
}

// cancelMigrationsCommand is CLUSTER CANCELSLOTMIGRATIONS (clusterCommandCancelSlotMigrations).
func (n *Node) cancelMigrationsCommand([]string) any {
	running := n.running(exportJob)
	if len(running) == 0 {
		return errorText("ERR No migrations ongoing")
	}
	for _, j := range running {
		n.setJob(j, "cancelled", "")
	}
	return okReply
}

// getMigrationsCommand is CLUSTER GETSLOTMIGRATIONS (clusterCommandGetSlotMigrations).
func (n *Node) getMigrationsCommand([]string) any {
	answer := []any{}
	for _, j := range n.jobs {
		operation := "EXPORT"
		if j.isImport {
			operation = "IMPORT"
		}
		entry := []any{"name", j.name, "operation", operation, "slot_ranges", j.ranges}
		if !j.isTracking {
			entry = append(entry, "target_node", j.target, "source_node", j.source)
		}
		answer = append(answer, append(entry,
			"create_time", int(j.created.Unix()), "last_update_time", int(j.updated.Unix()), "last_ack_time", int(j.acked.Unix()),
			"state", j.state, "message", j.message, "cow_size", 0, "remaining_repl_size", 0,
		))
	}
	return answer
}
