// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// claim writes a record that has nothing new, so that the process which wrote the last one ends, and goes on with the chains of that. An
// archive without a record has nobody to take it from.
func (r *archiver) claim(ctx context.Context) error {
	const attempts = 10
	for left := attempts; ; left-- {
		last, err := r.Store.newest(ctx, r.Name, false)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if errors.Is(err, ErrDamaged) {
			return fmt.Errorf("%w (delete that object: with it goes what came after the record before)", err)
		}
		if err != nil {
			return err
		}
		if last.Request != r.Request {
			return fmt.Errorf("archive %s: %w", r.Name, ErrAnother)
		}
		next := *last
		next.Number, next.Previous, next.Writer, next.Shards = last.Number+1, last.checksum, r.writer, slices.Clone(last.Shards)
		for i := range next.Shards {
			next.Shards[i].Base, next.Shards[i].Segments = nil, nil
		}
		if err = r.write(ctx, &next); err == nil {
			r.last.Store(&next)
			r.Watch.recorded(&next, r.firstMoment(ctx, &next))
			if next.Recipients == r.Store.recipients() { // who restores has a key for all parts, or needs none
				r.takeUp(ctx, &next)
			}
			return nil
		}
		if !errors.Is(err, ErrReplaced) || left == 0 {
			return err
		}
	}
}

// takeUp goes on with the chains of a record.
func (r *archiver) takeUp(ctx context.Context, last *Record) {
	ids := map[string]bool{}
	for _, s := range last.Shards {
		ids[s.NodeID] = true
	}
	r.known.expect(ids)
	for i, s := range last.Shards {
		c := &chain{flow: newFlow(r.Taking, i, members{}), archiver: r, id: s.Chain, begun: s.Begun, since: s.Since, rdb: s.RDB,
			parts: s.Parts, room: room(len(last.Shards)), ready: true}
		c.begins.ID, c.begins.Offset = s.History, s.To
		r.start(ctx, c)
	}
}

// firstMoment is the first one that can be restored; where its record cannot be read, the last one.
func (r *archiver) firstMoment(ctx context.Context, last *Record) time.Time {
	first, err := r.Store.record(ctx, r.Name, last.First)
	if err != nil {
		return last.Marked
	}
	return first.Marked
}
