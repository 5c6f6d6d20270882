// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// ErrNotAtomic means that the engine does not move slots on its own.
var ErrNotAtomic = errors.New("the engine does not move slots on its own")

// Atomic has the engine move the slots of each move in one job, and follows the jobs until they end or the slice does. A
// job that goes on longer is no error: the next call finds it and follows it again, whoever started it. A job that is in
// the way, because it goes to another destination, is not waited for; the engine refuses or queues the new one.
//
// A job that failed or was cancelled is an error with the engine's message. With slots.AtomicDestination the engine tries
// a failed job again by itself: it stays under way, and the error of its last attempt is returned when the slice ends.
// Progress counts keys where the job ended within the call; bytes and blocking times are not known.
//
// An engine that refuses because of a module that it has loaded moves the slots as Classic does.
func Atomic(ctx context.Context, moves []Move, o Options) (Progress, error) {
	o = o.withDefaults()
	end := o.Now().Add(o.Slice)
	byKey := make(chan Move, len(moves))
	progress, err := sideBySide(ctx, moves, func(ctx context.Context, m Move) (Progress, error) {
		done, err := atomicMove(ctx, m, o, end)
		if refusedForModules(err) {
			byKey <- Move{From: m.From, To: m.To, Slots: m.Slots.Subtract(done.Slots)}
			return done, nil
		}
		if err != nil {
			err = fmt.Errorf("moving slots from %s to %s: %w", m.From.Node, m.To.Node, err)
		}
		return done, err
	})
	close(byKey)
	var rest []Move
	for move := range byKey {
		rest = append(rest, move)
	}
	if len(rest) == 0 {
		return progress, err
	}
	classic, failure := Classic(ctx, rest, o)
	progress.add(classic)
	return progress, errors.Join(err, failure)
}

// refusedForModules reports whether the engine moves no slots by itself because a module has not declared that it may (Valkey,
// clusterCommandMigrateSlots). Nothing was begun then.
func refusedForModules(err error) bool {
	return errors.Is(err, redis.ErrRefused) && strings.Contains(err.Error(), "does not support atomic slot migration")
}

// atomicMove follows the jobs under way from one end to the other, then makes one for the slots that are left.
func atomicMove(ctx context.Context, m Move, o Options, end time.Time) (Progress, error) {
	var done Progress
	source, err := m.From.Node.Describe(ctx)
	if err != nil {
		return done, err
	}
	if source.Atomic == slots.AtomicNone {
		return done, ErrNotAtomic
	}
	jobs, err := underWay(ctx, m, source.Atomic)
	for _, job := range jobs {
		if err = follow(ctx, m, source.Atomic, job, &done, o.Now, end); err != nil {
			return done, err
		}
	}
	left := m.Slots.Intersect(source.Slots).Subtract(done.Slots)
	if err != nil || left.IsEmpty() || !o.Now().Before(end) {
		return done, err
	}
	job, err := begin(ctx, m, source.Atomic, left)
	if err != nil {
		return done, fmt.Errorf("slots %s: %w", left, err)
	}
	return done, follow(ctx, m, source.Atomic, job, &done, o.Now, end)
}

// coordinator is the end that is told and asked about a job.
func coordinator(m Move, method slots.AtomicMethod) *redis.Node {
	if method == slots.AtomicDestination {
		return m.To.Node
	}
	return m.From.Node
}

// underWay are the jobs under way between the two ends of the move that have slots of it.
func underWay(ctx context.Context, m Move, method slots.AtomicMethod) ([]redis.SlotMigration, error) {
	jobs, err := coordinator(m, method).SlotMigrations(ctx, method)
	return slices.DeleteFunc(jobs, func(job redis.SlotMigration) bool {
		return job.Outcome != redis.SlotMigrationUnderWay || job.SourceID != m.From.ID || job.TargetID != m.To.ID ||
			job.Slots.Intersect(m.Slots).IsEmpty()
	}), err
}

// begin makes a job and returns it as the engine shows it.
func begin(ctx context.Context, m Move, method slots.AtomicMethod, set slots.Set) (redis.SlotMigration, error) {
	node := coordinator(m, method)
	if method == slots.AtomicDestination {
		id, err := node.ImportSlots(ctx, set)
		return redis.SlotMigration{ID: id, Slots: set, SourceID: m.From.ID, TargetID: m.To.ID}, err
	}
	if err := node.MigrateSlots(ctx, set, m.To.ID); err != nil {
		return redis.SlotMigration{}, err
	}
	jobs, err := node.SlotMigrations(ctx, method)
	if err != nil {
		return redis.SlotMigration{}, err
	}
	// The command does not tell the job's name. The latest job for these slots is the one, even if it has ended.
	for _, job := range jobs {
		if job.TargetID == m.To.ID && job.Slots.Equal(set) {
			return job, nil
		}
	}
	return redis.SlotMigration{}, errors.New("the job is gone as soon as it was made: did the source restart?")
}

// follow asks for the job until it ends or the slice does, and adds what it did.
func follow(ctx context.Context, m Move, method slots.AtomicMethod, job redis.SlotMigration, done *Progress,
	now func() time.Time, end time.Time,
) error {
	const first, longest = 10 * time.Millisecond, 200 * time.Millisecond
	for pause := first; ; pause = min(2*pause, longest) {
		jobs, err := coordinator(m, method).SlotMigrations(ctx, method)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(jobs, func(other redis.SlotMigration) bool { return other.ID == job.ID })
		if i < 0 {
			return fmt.Errorf("slots %s: job %s is gone: %s restarted", job.Slots, job.ID, coordinator(m, method))
		}
		switch job = jobs[i]; job.Outcome {
		case redis.SlotMigrationSucceeded:
			return succeeded(ctx, m, job, done)
		case redis.SlotMigrationFailed, redis.SlotMigrationCancelled:
			return failed(ctx, m, method, job)
		case redis.SlotMigrationUnderWay:
		}
		if left := end.Sub(now()); left <= 0 {
			if job.Message != "" {
				return failed(ctx, m, method, job)
			}
			return nil
		} else if err := sleep(ctx, min(pause, left)); err != nil {
			return err
		}
	}
}

func succeeded(ctx context.Context, m Move, job redis.SlotMigration, done *Progress) error {
	moved := job.Slots.Intersect(m.Slots)
	done.Slots = done.Slots.Union(moved)
	counts, err := m.To.Node.CountKeysInSlots(ctx, moved)
	for _, count := range counts {
		done.Keys += count
	}
	return err
}

// failed is the error of a job. A source knows less than the target why a job failed, so both are asked.
func failed(ctx context.Context, m Move, method slots.AtomicMethod, job redis.SlotMigration) error {
	message := job.Message
	if method == slots.AtomicSource {
		jobs, _ := m.To.Node.SlotMigrations(ctx, method) // the source's word is enough if the target does not answer
		for _, other := range jobs {
			if other.ID == job.ID && other.Message != "" {
				message += " Target: " + other.Message
			}
		}
	}
	return fmt.Errorf("slots %s: job %s is %s: %s", job.Slots, job.ID, job.State, message)
}
