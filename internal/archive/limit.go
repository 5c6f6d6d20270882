// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"io"

	"golang.org/x/time/rate"
)

// Limit bounds how many bytes of objects are written to the store and read from it in a second, of all shards together. It comes before
// the first use. What a driver gathers before it sends it, a part of an object, goes at once.
func (s *Store) Limit(bytesPerSecond int64) {
	const atOnce = 64 << 10
	s.limit = rate.NewLimiter(rate.Limit(bytesPerSecond), int(min(bytesPerSecond, atOnce)))
}

// wait waits until a number of bytes may pass.
func (s *Store) wait(ctx context.Context, bytes int) error {
	for s.limit != nil && bytes > 0 {
		n := min(bytes, s.limit.Burst())
		if err := s.limit.WaitN(ctx, n); err != nil {
			return err
		}
		bytes -= n
	}
	return nil
}

// slow is a stream whose bytes are waited for.
type slow struct {
	ctx   context.Context // of the one call that reads or writes the stream
	store *Store
	in    io.Reader
	out   io.Writer
}

// slowly is a writer that keeps to the limit.
func (s *Store) slowly(ctx context.Context, out io.Writer) io.Writer {
	if s.limit == nil {
		return out
	}
	return &slow{ctx: ctx, store: s, out: out}
}

// slowlyFrom is a reader that keeps to the limit.
func (s *Store) slowlyFrom(ctx context.Context, in io.Reader) io.Reader {
	if s.limit == nil {
		return in
	}
	return &slow{ctx: ctx, store: s, in: in}
}

func (s *slow) Write(p []byte) (written int, err error) {
	for len(p) > 0 {
		part := p[:min(len(p), s.store.limit.Burst())]
		if err := s.store.wait(s.ctx, len(part)); err != nil {
			return written, err
		}
		n, err := s.out.Write(part)
		written += n
		if err != nil {
			return written, err
		}
		p = p[len(part):]
	}
	return written, nil
}

func (s *slow) Read(p []byte) (int, error) {
	n, err := s.in.Read(p[:min(len(p), s.store.limit.Burst())])
	if waited := s.store.wait(s.ctx, n); waited != nil {
		return n, waited
	}
	return n, err
}
