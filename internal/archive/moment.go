// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/redis"
)

// Span is what moments an archive has.
type Span struct {
	First, Last Moment
	Cluster     string
	Engine      redis.Engine
	Version     string
	Shards      int
}

// Span reads which they are. ErrNotFound: there is no such archive.
func (s *Store) Span(ctx context.Context, archive string) (Span, error) {
	last, err := s.newest(ctx, archive, true)
	if err != nil {
		return Span{}, err
	}
	first := last
	if r, err := s.record(ctx, archive, last.First); err == nil {
		first = r
	} else if !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrDamaged) {
		return Span{}, err
	}
	return Span{first.Moment, last.Moment, last.Cluster, last.Engine, last.Version, len(last.Shards)}, nil
}

// At is a moment of an archive, to be read like a backup: the last one of which there is a record, or with a time the last one that is not
// after that; with consistent, of those that are one moment for all shards. ErrNotFound: there is none.
func (s *Store) At(ctx context.Context, archive string, at time.Time, consistent bool) (*Manifest, error) {
	newest, err := s.newest(ctx, archive, true)
	if err != nil {
		return nil, err
	}
	r := newest
	if !at.IsZero() {
		if r, err = s.before(ctx, newest, at); err != nil {
			return nil, err
		}
	}
	const mostInconsistent = 10_000
	first, from := max(newest.First, r.Number-mostInconsistent), r.Number
	for consistent && r != nil && !r.Consistent {
		if r, err = s.readable(ctx, archive, first, r.Number-1); err != nil {
			return nil, err
		}
	}
	if r == nil {
		return nil, fmt.Errorf("archive %s has no moment that is one for all shards among records %d to %d: %w", archive, first, from,
			ErrNotFound)
	}
	return s.assemble(ctx, r)
}

// before is the last record that is not after a time, of those that can be read.
func (s *Store) before(ctx context.Context, newest *Record, at time.Time) (*Record, error) {
	if !newest.Marked.After(at) {
		return newest, nil
	}
	var found *Record
	for low, high := newest.First, newest.Number-1; low <= high; {
		middle := low + (high-low)/2
		r, err := s.readable(ctx, newest.Name, low, middle)
		switch {
		case err != nil:
			return nil, err
		case r == nil:
			low = middle + 1
		case r.Marked.After(at):
			high = r.Number - 1
		default:
			found, low = r, middle+1
		}
	}
	if found == nil {
		return nil, fmt.Errorf("archive %s begins after %s: %w", newest.Name, at.Format(time.RFC3339), ErrNotFound)
	}
	return found, nil
}

// readable is the last record between two numbers that can be read; nil: none.
func (s *Store) readable(ctx context.Context, archive string, first, last int64) (*Record, error) {
	for n := last; n >= first; n-- {
		r, err := s.record(ctx, archive, n)
		if err == nil || !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrNotFound) {
			return r, err
		}
	}
	return nil, nil
}

// mostParts is how many objects there may be of a shard: a day of them, one a second, and again as many.
const mostParts = 200_000

// assemble finds all that there is to read for a record. Each record that it takes is the one that the next was written after.
func (s *Store) assemble(ctx context.Context, r *Record) (*Manifest, error) {
	const chunk = 64
	m := r.manifest()
	m.archived = make([][]part, len(r.Shards))
	shards := map[string]int{}
	for i, shard := range r.Shards {
		shards[shard.Chain] = i
	}
	previous := ""
	for first := r.earliest(); first <= r.Number; first += chunk {
		records := make([]*Record, min(chunk, r.Number-first+1))
		group, ctx := errgroup.WithContext(ctx)
		for i := range records {
			group.Go(func() (err error) {
				records[i], err = s.record(ctx, r.Name, first+int64(i))
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return nil, err
		}
		for _, record := range records {
			if previous != "" && record.Previous != previous {
				return nil, fmt.Errorf("%s: %w: it does not follow the record before it", recordKey(r.Name, record.Number), ErrDamaged)
			}
			previous = record.checksum
			if err := m.add(shards, r.Shards, record); err != nil {
				return nil, err
			}
		}
	}
	if previous != r.checksum {
		return nil, errors.New("the archive's records changed while they were read")
	}
	for i := range m.archived {
		if len(m.archived[i]) == 0 {
			return nil, fmt.Errorf("%s: %w: record %d, which it names, has no base of shard %d", recordKey(r.Name, r.Number), ErrDamaged,
				r.Shards[i].Since, i)
		}
	}
	m.Attempt = r.checksum[:len(m.Attempt)] // what is restored is known by it
	return m, nil
}

// add adds what a record has for a moment, whose shards are known by their chains.
func (m *Manifest) add(shards map[string]int, since []ArchivedShard, r *Record) error {
	encrypted := r.Encryption != ""
	for _, there := range r.Shards {
		i, wanted := shards[there.Chain]
		if !wanted || r.Number < since[i].Since {
			continue
		}
		if (there.Base != nil) != (len(m.archived[i]) == 0) {
			return fmt.Errorf("%s: %w: the base of shard %d is not where it should be", recordKey(r.Name, r.Number), ErrDamaged, i)
		}
		if there.Base != nil {
			m.archived[i] = append(m.archived[i], part{there.Base.Object, baseKey(r.Name, r.Writer, there.Base.Number), encrypted})
			m.Shards[i].Base = there.Base.Object
		}
		for _, p := range there.Segments {
			m.archived[i] = append(m.archived[i], part{p.Object, segmentKey(r.Name, r.Writer, p.Number), encrypted})
			m.Shards[i].Stream.Size += p.Size
			m.Shards[i].Stream.PlainSize += p.PlainSize
		}
		if len(m.archived[i]) > mostParts {
			return fmt.Errorf("shard %d has more than %d objects since its base", i, mostParts)
		}
	}
	return nil
}
