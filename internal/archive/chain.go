// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/redis/replication"
)

// Bounds of segments, in bytes. A shard has mostWaiting of them in memory at most, and the one that is being filled.
const (
	fullSegment = 8 << 20 // as it is stored
	fullPlain   = 64 << 20
	// mostSegment is what one command or transaction may make of a segment.
	mostSegment = 256 << 20
	mostWaiting = 4
	// mostPieces of all shards are in the store and in no record: one has to have room for them.
	mostPieces = 8000
)

// chain is what an archive has of one shard: a base, and the segments that follow it without a gap.
type chain struct {
	*flow
	archiver *archiver
	id       string
	begun    time.Time
	// since is the number of the record that has the base; 0: none has yet. It, rdb and parts are the archiver's.
	since int64
	rdb   string
	parts int64 // of the chain, in records
	room  int   // how many of mostPieces may be its

	// With the lock of the flow, whose condition tells of every change:
	base    *Piece                // nil: it is in a record, or is being read
	ready   bool                  // the base is in the store, or in a record
	segment *segment              // that is being filled; nil: nothing has come since
	begins  replication.Position  // where that begins
	cut     *replication.Position // where it is to end, once that is known
	missed  bool                  // that was never reached
	waiting []*segment            // for the store, in their order
	pieces  []Piece               // that are in the store and in no record
	upTo    int                   // how many of pieces and waiting came before the last cut
	over    error                 // why nothing more comes
}

// segment is a part of a stream, encoded.
type segment struct {
	*encoder
	text   bytes.Buffer
	stored *measured
}

// run follows the shard until ctx ends. The error says why the chain ends there.
func (c *chain) run(ctx context.Context) error {
	defer context.AfterFunc(ctx, c.stop)()
	defer c.stop()
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, c.stop)()
	if c.since > 0 {
		if err := c.attach(ctx, c.begins); err != nil {
			return err
		}
	} else {
		piece, err := c.readBase(ctx)
		if err != nil {
			return err
		}
		group.Go(func() error {
			if err := c.confirm(ctx, piece); err != nil {
				return err
			}
			c.change(func() { c.base, c.ready = piece, true })
			return nil
		})
	}
	group.Go(func() error { return c.read(ctx) })
	group.Go(func() error { return c.store(ctx) })
	return group.Wait()
}

// confirm reads the base back. Reading it anew from the instance costs more than to ask the store twice.
func (c *chain) confirm(ctx context.Context, base *Piece) error {
	const attempts = 3
	for left := attempts; ; left-- {
		within, cancel := context.WithTimeout(ctx, putTimeout(base.Size))
		err := c.taking.Store.readBack(within, baseKey(c.taking.Name, c.archiver.writer, base.Number), base.Object, io.Discard)
		cancel()
		if err == nil || left == 0 || ctx.Err() != nil || errors.Is(err, ErrDamaged) {
			return err
		}
		c.taking.Report(Progress{Shard: c.shard, What: err.Error()})
		select {
		case <-ctx.Done():
		case <-time.After(soonestBase):
		}
	}
}

// putTimeout is how long a store may take for so many bytes: a minute, and a second for each MiB.
func putTimeout(bytes int64) time.Duration { return time.Minute + time.Duration(bytes>>20)*time.Second }

// change changes what the lock is for.
func (c *chain) change(what func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	what()
	c.released.Broadcast()
}

// readBase puts the base into the store.
func (c *chain) readBase(ctx context.Context) (*Piece, error) {
	if err := c.archiver.turns.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer c.archiver.turns.Release(1)
	session, err := c.begin(ctx)
	if err != nil {
		return nil, err
	}
	c.use(session)
	piece, described := &Piece{Number: c.archiver.number()}, &Shard{}
	piece.Object, err = c.taking.Store.put(ctx, baseKey(c.taking.Name, c.archiver.writer, piece.Number),
		func(to io.Writer) error { return c.copyBase(to, described) })
	c.change(func() { c.rdb, c.begins = described.RDB, session.Position() })
	return piece, err
}

// read fills segments.
func (c *chain) read(ctx context.Context) error {
	for ctx.Err() == nil {
		err := c.session.Wait()
		if err == nil {
			c.admit()
			err = c.session.Copy(c)
		}
		if !errors.Is(err, replication.ErrTorn) { // after another error the command may be there whole
			if last := c.advance(); last != nil {
				return last
			}
		}
		if err != nil && ctx.Err() == nil {
			err = c.goBack(ctx, err)
		}
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	return ctx.Err()
}

// admit waits while the chain is held, or the store is behind, or there are no records.
func (c *chain) admit() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for (c.held || len(c.waiting) >= mostWaiting || len(c.pieces) >= c.room && c.cut == nil) && !c.stopped {
		c.released.Wait()
	}
}

// Write adds to the segment.
func (c *chain) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.segment == nil {
		s := &segment{}
		s.stored = newMeasured(&s.text)
		var err error
		if s.encoder, err = c.taking.Store.newEncoder(s.stored); err != nil {
			return 0, err
		}
		c.segment = s
	}
	if c.segment.text.Len() > mostSegment {
		return 0, fmt.Errorf("%w: one command or transaction takes more than %d MiB", errTooLarge, mostSegment>>20)
	}
	return c.segment.plain.Write(p)
}

var errTooLarge = errors.New("it cannot be archived")

// advance ends the segment where it is to end, or is full. An error is the end of the chain.
func (c *chain) advance() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, whole := c.session.Position(), c.session.Whole()
	switch {
	case c.cut != nil && at.ID != c.cut.ID:
		c.cut, c.missed = nil, true // there was a failover
		c.released.Broadcast()
	case c.cut != nil && at.Offset >= c.cut.Offset:
		if at != *c.cut || !whole {
			return fmt.Errorf("the stream is at %d of %s, and the mark at %d", at.Offset, at.ID, c.cut.Offset)
		}
		return c.endAtCut(at)
	case c.segment != nil && whole && (c.segment.text.Len() >= fullSegment || c.segment.plain.size >= fullPlain):
		return c.end(at)
	}
	return nil
}

// endAtCut ends the segment at the mark. Without that nobody takes the mark for reached.
func (c *chain) endAtCut(at replication.Position) error {
	if err := c.end(at); err != nil {
		return err
	}
	c.cut, c.upTo = nil, len(c.pieces)+len(c.waiting)
	return nil
}

// end hands the segment to the store, and begins another one at a position. It is for who has the lock.
func (c *chain) end(at replication.Position) error {
	if c.segment != nil {
		if err := c.segment.close(); err != nil {
			return err
		}
		if c.segment.plain.size > 0 {
			c.waiting = append(c.waiting, c.segment)
		}
	}
	c.segment, c.begins = nil, at
	c.released.Broadcast()
	return nil
}

// release ends hold. With an end, a segment ends there.
func (c *chain) release(end *replication.Position) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = false
	if end != nil {
		c.cut, c.missed = end, false
		if at := c.session.Position(); at == *end && c.session.Whole() {
			if err := c.endAtCut(at); err != nil {
				c.over = err
				c.session.Close()
			}
		}
	}
	c.released.Broadcast()
}

// position is how far the chain is.
func (c *chain) position() replication.Position {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.session == nil {
		return c.begins
	}
	return c.session.Position()
}

// goBack follows the stream again after the session was lost. What cannot be gone on with, such as a half of a transaction, is read again
// from where the segment begins.
func (c *chain) goBack(ctx context.Context, why error) error {
	at, whole := c.session.Position(), c.session.Whole()
	if errors.Is(why, errTooLarge) {
		return why
	}
	if torn := errors.Is(why, replication.ErrTorn); torn || !whole {
		c.change(func() { c.segment, at = nil, c.begins })
		why = fmt.Errorf("the stream broke off: %s", why) //nolint:errorlint // it is no reason to end
	}
	c.admit() // a session that is not read would cost the server memory
	return c.resume(ctx, why, at, true)
}

// store writes segments into the store, one after the other, for as long as that takes.
func (c *chain) store(ctx context.Context) error {
	const mostPause = 30 * time.Second
	for pause := betweenAttempts; ; {
		s := c.next()
		if s == nil {
			return ctx.Err()
		}
		piece := Piece{Number: c.archiver.number(), Object: Object{Size: s.stored.size, SHA256: s.stored.hex(), PlainSize: s.plain.size,
			PlainSHA256: s.plain.hex()}}
		key := segmentKey(c.taking.Name, c.archiver.writer, piece.Number)
		within, cancel := context.WithTimeout(ctx, putTimeout(s.stored.size))
		err := c.taking.Store.putSegment(within, key, s.text.Bytes(), piece.Object)
		cancel()
		if err != nil {
			c.archiver.Watch.failed(err)
			c.taking.Report(Progress{Shard: c.shard, What: err.Error()})
			c.change(func() {
				if len(c.waiting) >= mostWaiting { // nobody reads it
					c.session.Close()
				}
			})
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(pause):
			}
			pause = min(2*pause, mostPause)
			continue
		}
		pause = betweenAttempts
		c.change(func() {
			c.waiting[0] = nil
			c.waiting, c.pieces = c.waiting[1:], append(c.pieces, piece)
		})
	}
}

// next waits for a segment; nil: there will be none.
func (c *chain) next() *segment {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.waiting) == 0 {
		if c.stopped {
			return nil
		}
		c.released.Wait()
	}
	return c.waiting[0]
}

// await waits until all up to the mark is in the store.
func (c *chain) await(ctx context.Context) error {
	defer context.AfterFunc(ctx, func() { c.change(func() {}) })()
	c.mu.Lock()
	defer c.mu.Unlock()
	for ctx.Err() == nil {
		switch {
		case c.over != nil || c.stopped:
			return blocked(c.shard, "the stream ended: %v", c.over)
		case c.missed:
			return blocked(c.shard, "there was a failover while the mark was set")
		case c.cut == nil && len(c.pieces) >= c.upTo:
			return nil
		}
		c.released.Wait()
	}
	return ctx.Err()
}
