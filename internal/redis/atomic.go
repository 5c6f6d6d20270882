// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// The commands are probed, not the version: COMMAND INFO answers nil for those that do not exist, which is no error.
var atomicProbe = command{name: "COMMAND INFO", args: words("COMMAND INFO cluster|migrateslots cluster|migration")}

// readAtomicMethod reads the answer to atomicProbe.
func readAtomicMethod(view *View, answer *redis.Cmd) error {
	entries, err := answer.Slice()
	if err != nil {
		return err
	}
	for i, method := range []slots.AtomicMethod{slots.AtomicSource, slots.AtomicDestination} {
		if i < len(entries) && entries[i] != nil {
			view.Atomic = method
			return nil
		}
	}
	return nil
}

// SlotMigration is a job of an engine that moves slots on its own, as one of its two ends sees it.
type SlotMigration struct {
	// ID names the job, the same at both ends.
	ID string
	// Slots are those that the job moves.
	Slots slots.Set
	// SourceID and TargetID are the node IDs of the ends. A replica that follows the job of its master does not know them.
	SourceID, TargetID string
	// State is the engine's word. It is for people: decide with Outcome and HandingOver.
	State string
	// HandingOver reports whether the source has its clients wait, so that the target takes the slots over at any moment (AtomicSource).
	HandingOver bool
	// Outcome reports whether the job is under way, and how it ended.
	Outcome SlotMigrationOutcome
	// Message is why the job failed; with AtomicDestination, also why its last attempt did.
	Message string
	// Started is when the job was made, to the second (AtomicSource) or millisecond.
	Started time.Time
}

// SlotMigrationOutcome is how a job ended.
type SlotMigrationOutcome string

// The outcomes.
const (
	SlotMigrationUnderWay  SlotMigrationOutcome = "under way"
	SlotMigrationSucceeded SlotMigrationOutcome = "succeeded"
	SlotMigrationFailed    SlotMigrationOutcome = "failed"
	SlotMigrationCancelled SlotMigrationOutcome = "cancelled"
)

// MigrateSlots makes this node, their owner, send the slots to the target on its own (AtomicSource). It returns when the job
// is accepted: SlotMigrations tells what becomes of it.
func (n *Node) MigrateSlots(ctx context.Context, set slots.Set, targetID string) error {
	args := append([]any{"SLOTSRANGE"}, bounds(set)...)
	return n.tell(ctx, "CLUSTER MIGRATESLOTS", append(args, "NODE", targetID)...)
}

// ImportSlots makes this node fetch the slots from their owner on its own (AtomicDestination) and returns the job's ID. All
// slots must have the same owner, and this node must have no slot that is marked as importing or migrating.
func (n *Node) ImportSlots(ctx context.Context, set slots.Set) (string, error) {
	c := command{name: "CLUSTER MIGRATION IMPORT", args: append(words("CLUSTER MIGRATION IMPORT"), bounds(set)...)}
	answer, err := n.do(ctx, c)
	if err != nil {
		return "", err
	}
	id, err := answer.Text()
	if err != nil || id == "" {
		return "", n.unexpected(c, answer, "the ID of a task")
	}
	return id, nil
}

// CancelSlotMigrations ends the jobs that this node was told to do, whichever method the engine has: jobs of AtomicSource
// at their source, jobs of AtomicDestination at their destination (the source would only make the destination try again). It
// is no error when there is none, or when the engine has no such jobs.
//
// A source that is told so lets clients write again at once, also when it has just let the target take the slots over: what they write
// then is lost (finishSlotMigrationJob() of Valkey 9). Have them wait (PauseWrites) until it is known who owns the slots.
func (n *Node) CancelSlotMigrations(ctx context.Context) error {
	err := n.tell(ctx, "CLUSTER CANCELSLOTMIGRATIONS")
	var refused *Error
	if errors.As(err, &refused) && strings.Contains(refused.Err.Error(), "No migrations ongoing") {
		return nil
	}
	if !errors.Is(err, ErrUnsupported) {
		return err
	}
	c := command{name: "CLUSTER MIGRATION CANCEL", args: words("CLUSTER MIGRATION CANCEL ALL")}
	if _, err = n.do(ctx, c); errors.Is(err, ErrUnsupported) { // it answers the number of jobs it ended
		return nil
	}
	return err
}

// SlotMigrations are the jobs that the node knows of, those under way and the last ones that ended, the latest first. The
// node forgets them when it restarts. An engine with AtomicNone has none.
func (n *Node) SlotMigrations(ctx context.Context, method slots.AtomicMethod) ([]SlotMigration, error) {
	c, read := command{name: "CLUSTER GETSLOTMIGRATIONS", args: words("CLUSTER GETSLOTMIGRATIONS")}, readExport
	switch method {
	case slots.AtomicNone:
		return nil, nil
	case slots.AtomicDestination:
		c, read = command{name: "CLUSTER MIGRATION STATUS", args: words("CLUSTER MIGRATION STATUS ALL")}, readTask
	case slots.AtomicSource:
	}
	answer, err := n.do(ctx, c)
	if err != nil {
		return nil, err
	}
	jobs, err := parseJobs(answer.Val(), read)
	if err != nil {
		return nil, n.notUnderstood(c, err)
	}
	return jobs, nil
}

// parseJobs reads an array of maps, which RESP2 writes as arrays of names and values in turn.
func parseJobs(answer any, read func(*jobFields) SlotMigration) ([]SlotMigration, error) {
	entries, isArray := answer.([]any)
	if !isArray {
		return nil, fmt.Errorf("%T instead of an array", answer)
	}
	var jobs []SlotMigration
	for _, entry := range entries {
		pairs, isArray := entry.([]any)
		if !isArray || len(pairs)%2 != 0 {
			return nil, fmt.Errorf("%s instead of pairs", show(entry))
		}
		fields := jobFields{values: map[string]any{}}
		for pair := range slices.Chunk(pairs, 2) {
			if name, isText := pair[0].(string); isText {
				fields.values[name] = pair[1]
			}
		}
		jobs = append(jobs, read(&fields))
		if fields.err != nil {
			return nil, fields.err
		}
	}
	slices.SortStableFunc(jobs, func(a, b SlotMigration) int { return b.Started.Compare(a.Started) })
	return jobs, nil
}

// readExport reads an entry of CLUSTER GETSLOTMIGRATIONS (clusterCommandGetSlotMigrations() of Valkey 9).
func readExport(f *jobFields) SlotMigration {
	job := SlotMigration{
		ID: f.text("name"), Slots: f.slots("slot_ranges"), State: f.text("state"), Message: f.optional("message"),
		SourceID: f.optional("source_node"), TargetID: f.optional("target_node"),
		Started: time.Unix(f.integer("create_time"), 0),
	}
	switch job.State {
	case "success":
		job.Outcome = SlotMigrationSucceeded
	case "failed":
		job.Outcome = SlotMigrationFailed
	case "cancelled":
		job.Outcome = SlotMigrationCancelled
	default:
		job.Outcome = SlotMigrationUnderWay
		job.HandingOver = strings.HasPrefix(job.State, "failover-")
	}
	return job
}

// readTask reads an entry of CLUSTER MIGRATION STATUS (replyTaskStatus() of Redis 8.4). A failed import is under way: the
// destination tries again until it is cancelled.
func readTask(f *jobFields) SlotMigration {
	job := SlotMigration{
		ID: f.text("id"), Slots: f.slots("slots"), State: f.text("state"), Message: f.optional("last_error"),
		SourceID: f.text("source"), TargetID: f.text("dest"), Started: time.UnixMilli(f.integer("create_time")),
	}
	switch {
	case job.State == "completed":
		job.Outcome = SlotMigrationSucceeded
	case job.State == "canceled":
		job.Outcome = SlotMigrationCancelled
	case job.State == "failed" && f.text("operation") == "migrate":
		job.Outcome = SlotMigrationFailed
	default:
		job.Outcome = SlotMigrationUnderWay
	}
	return job
}

// jobFields keeps the first field that is missing or malformed as err.
type jobFields struct {
	values map[string]any
	err    error
}

func (f *jobFields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// optional is text that may be missing. It is cut to a sentence: messages are shown to people, and the rest is short.
func (f *jobFields) optional(name string) string {
	text, _ := f.values[name].(string)
	return excerpt.Of(text, longestText)
}

func (f *jobFields) text(name string) string {
	if _, isText := f.values[name].(string); !isText {
		f.fail("field %s: %s is not text", name, show(f.values[name]))
	}
	return f.optional(name)
}

func (f *jobFields) integer(name string) int64 {
	n, isInteger := f.values[name].(int64)
	if !isInteger {
		f.fail("field %s: %s is not a whole number", name, show(f.values[name]))
	}
	return max(0, min(n, mostCounted)) // times, which only sort the jobs
}

func (f *jobFields) slots(name string) slots.Set {
	text, _ := f.values[name].(string) // not cut
	set, err := slots.Parse(text)
	if f.text(name); err != nil {
		f.fail("field %s: %w", name, err)
	}
	return set
}

// bounds are the first and last slots of the set's ranges in turn.
func bounds(set slots.Set) []any {
	var numbers []any
	for _, interval := range set.Ranges() {
		numbers = append(numbers, interval.First, interval.Last)
	}
	return numbers
}
