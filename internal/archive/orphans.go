// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"gocloud.dev/blob"
)

const (
	// leastOrphan is how much older than a record what no record names is at least when it is deleted.
	leastOrphan = 24 * time.Hour
	// mostOrphans are deleted at a time.
	mostOrphans = 10_000
)

// deleteOrphans deletes what processes wrote that no record names, or none that is kept. last is a record that the caller wrote, and no
// record before last.Oldest is there any more.
//
// A process that was followed by another one records nothing any more, since the number that it wants is taken. So what it wrote is of no
// use once none of the records that are kept is its. One that has followed the caller, who does not know it yet, writes after last: ages
// are by the store's own clock, counted back from that record.
func (s *Store) deleteOrphans(ctx context.Context, last *Record, keep time.Duration) error {
	newest, err := s.newest(ctx, last.Name, false)
	if err != nil || newest.Writer != last.Writer { // another process writes it by now
		return err
	}
	written, err := s.writtenAt(ctx, recordKey(last.Name, last.Number))
	if err != nil {
		return err
	}
	before := written.Add(-max(keep, leastOrphan))
	oldest, err := s.record(ctx, last.Name, last.Oldest)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	if err := s.writers(ctx, oldest, newest, kept); err != nil {
		return err
	}
	left := mostOrphans
	folders := []string{last.Name + "/.", recordsPrefix(last.Name) + "."} // files of a directory that were never complete
	for list := s.bucket.List(&blob.ListOptions{Prefix: last.Name + "/", Delimiter: "/"}); ; {
		entry, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", last.Name, err)
		}
		writer := strings.Trim(strings.TrimPrefix(entry.Key, last.Name), "/")
		if entry.IsDir && attemptForm.MatchString(writer) && !kept[writer] {
			folders = append(folders, entry.Key)
		}
	}
	for _, prefix := range folders {
		if err := s.deleteOld(ctx, last.Name, prefix, before, &left); err != nil {
			return err
		}
	}
	return nil
}

// writers are those of two records and of all in between. Each wrote one after the other, without a gap.
func (s *Store) writers(ctx context.Context, first, last *Record, into map[string]bool) error {
	into[first.Writer], into[last.Writer] = true, true
	if first.Writer == last.Writer || last.Number-first.Number < 2 {
		return nil
	}
	middle, err := s.record(ctx, last.Name, first.Number+(last.Number-first.Number)/2)
	if err != nil {
		return err
	}
	if err := s.writers(ctx, first, middle, into); err != nil {
		return err
	}
	return s.writers(ctx, middle, last, into)
}

// writtenAt is when an object was written, by the store's clock.
func (s *Store) writtenAt(ctx context.Context, key string) (time.Time, error) {
	entry, err := s.bucket.List(&blob.ListOptions{Prefix: key}).Next(ctx)
	if err == nil && (entry.Key != key || entry.ModTime.IsZero()) {
		err = ErrNotFound
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("when %s was written: %w", key, err)
	}
	return entry.ModTime, nil
}

// deleteOld deletes objects of an archive that were written before a time, as many as are left to be.
func (s *Store) deleteOld(ctx context.Context, archive, prefix string, before time.Time, left *int) error {
	for list := s.bucket.List(&blob.ListOptions{Prefix: prefix, BeforeList: withUnfinished}); *left > 0; {
		entry, err := list.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listing %s: %w", prefix, err)
		}
		if !objectForm.MatchString(strings.TrimPrefix(entry.Key, archive)) || entry.ModTime.IsZero() || !entry.ModTime.Before(before) {
			continue // not ours, or too new
		}
		if err := s.remove(ctx, entry.Key); err != nil {
			return err
		}
		*left--
	}
	return nil
}
