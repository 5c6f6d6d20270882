// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"gocloud.dev/blob"
)

// prune deletes, from time to time, what is not kept any more.
func (r *archiver) prune(ctx context.Context) error {
	for {
		if err := r.pruneOnce(ctx); err != nil && ctx.Err() == nil {
			r.Report(Progress{Shard: -1, What: "deleting what is too old: " + err.Error()})
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pruneEvery):
		}
	}
}

// pruneOnce finds what the moments since Keep ago need, and deletes what came before: only records that the newest one counts out, for
// who reads that looks no further back.
func (r *archiver) pruneOnce(ctx context.Context) error {
	last := r.last.Load()
	if last == nil {
		return nil
	}
	written, err := r.Store.writtenAt(ctx, recordKey(last.Name, last.Number))
	if err != nil {
		return err
	}
	kept, err := r.Store.before(ctx, last, horizon(written, time.Now(), r.Keep))
	if err == nil {
		r.kept.Store(kept)
	} else if !errors.Is(err, ErrNotFound) {
		return err
	}
	if err := r.Store.deleteRecords(ctx, r.Name, last.Oldest); err != nil {
		return err
	}
	return r.Store.deleteOrphans(ctx, last, r.Keep)
}

// horizon is the time since when moments are kept. A clock that is ahead, the store's by which the last record was written or one's own,
// makes none of them older.
func horizon(written, own time.Time, keep time.Duration) time.Time {
	if own.Before(written) {
		written = own
	}
	return written.Add(-keep)
}

// deleteRecords deletes the records before one, the oldest first, each after its objects.
func (s *Store) deleteRecords(ctx context.Context, archive string, oldest int64) error {
	first, err := s.firstRecord(ctx, archive)
	if err != nil {
		return err
	}
	for n := first; n < oldest; n++ {
		r, err := s.record(ctx, archive, n)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil && !errors.Is(err, ErrDamaged) { // what one names that is damaged cannot be known
			return err
		}
		if r == nil {
			r = &Record{}
		}
		for _, shard := range r.Shards {
			if shard.Base != nil {
				if err := s.remove(ctx, baseKey(archive, r.Writer, shard.Base.Number)); err != nil {
					return err
				}
			}
			for _, p := range shard.Segments {
				if err := s.remove(ctx, segmentKey(archive, r.Writer, p.Number)); err != nil {
					return err
				}
			}
		}
		if err := s.remove(ctx, recordKey(archive, n)); err != nil {
			return err
		}
	}
	return nil
}

// firstRecord is the number of the first record that is there, which is the last in the list.
func (s *Store) firstRecord(ctx context.Context, archive string) (int64, error) {
	prefix, first := recordsPrefix(archive), int64(mostRecords)
	for list := s.bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		entry, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return first, nil
		}
		if err != nil {
			return 0, fmt.Errorf("listing %s: %w", prefix, err)
		}
		if name := strings.TrimPrefix(entry.Key, prefix); recordForm.MatchString(name) {
			n, err := strconv.ParseInt(strings.TrimSuffix(name, ".json"), 10, 64)
			if err == nil {
				first = mostRecords - n
			}
		}
	}
}

// removeRecords removes all records of an archive, the newest one before all others: what is left after an interruption is an archive that
// ends earlier.
func (s *Store) removeRecords(ctx context.Context, archive string) error {
	prefix := recordsPrefix(archive)
	list := s.bucket.List(&blob.ListOptions{Prefix: prefix})
	for {
		entry, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", prefix, err)
		}
		if !recordForm.MatchString(strings.TrimPrefix(entry.Key, prefix)) {
			continue // not ours
		}
		if err := s.remove(ctx, entry.Key); err != nil {
			return err
		}
	}
}

var recordForm = regexp.MustCompile(`^[0-9]{12}\.json$`)
