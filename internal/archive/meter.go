// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"io"
	"sync"
	"time"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
)

// Meter counts how far a backup or a restore is. The zero value has counted nothing; nil counts for nobody.
type Meter struct {
	mu     sync.Mutex
	began  time.Time
	stage  report.Stage
	shards []report.ShardProgress // in the order of their numbers, without a gap
}

// Report is how far it is now.
func (m *Meter) Report() report.Progress {
	m.mu.Lock()
	defer m.mu.Unlock()
	p := report.Progress{Stage: m.stage, Shards: append([]report.ShardProgress(nil), m.shards...)}
	if !m.began.IsZero() {
		p.Elapsed = time.Since(m.began).Seconds()
	}
	known := true
	for _, s := range m.shards {
		p.Bytes, p.Of = p.Bytes+s.Bytes, p.Of+s.Of
		known = known && s.Of > 0
	}
	if !known && m.stage != report.StageReadingBack { // of which some may have nothing
		p.Of = 0
	}
	return p
}

// change changes what is counted.
func (m *Meter) change(what func()) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	what()
}

// begin begins a stage, with how many bytes there are of each shard from a first one on; 0: that is not known.
func (m *Meter) begin(stage report.Stage, first int, of ...int64) {
	m.change(func() {
		if m.stage, m.shards = stage, nil; m.began.IsZero() {
			m.began = time.Now()
		}
		for i, bytes := range of {
			m.shards = append(m.shards, report.ShardProgress{Shard: first + i, Of: bytes})
		}
	})
}

// mark begins the stage in which all is read.
func (m *Meter) mark() { m.change(func() { m.stage = report.StageMarking }) }

// shard changes what is counted of a shard.
func (m *Meter) shard(number int, what func(*report.ShardProgress)) {
	m.change(func() { what(&m.shards[number-m.shards[0].Shard]) })
}

// of counts what is written to it as a shard's.
func (m *Meter) of(shard int) io.Writer {
	if m == nil {
		return io.Discard
	}
	return counter(func(n int) { m.shard(shard, func(s *report.ShardProgress) { s.Bytes += int64(n) }) })
}

type counter func(n int)

func (c counter) Write(p []byte) (int, error) {
	c(len(p))
	return len(p), nil
}

// estimate says, until the base is there or ctx ends, how large it is going to be.
func (f *flow) estimate(ctx context.Context, of member) {
	const every = 2 * time.Second
	for f.taking.Meter != nil {
		f.weigh(ctx, of)
		select {
		case <-f.based:
			f.taking.Meter.shard(f.shard, func(s *report.ShardProgress) { s.Of = s.Bytes })
			return
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}

// weigh says how large the base of an instance is going to be, by what it says now.
func (f *flow) weigh(ctx context.Context, of member) {
	if f.taking.Meter == nil {
		return
	}
	if sending, err := of.node.Sending(ctx); err == nil {
		f.taking.Meter.shard(f.shard, func(s *report.ShardProgress) {
			if s.Of = max(s.Of, s.Bytes); sending.Total > 0 || s.Of == s.Bytes { // else all is sent, and on its way: what was known stays
				s.Of = expected(sending, s.Bytes)
			}
		})
	}
}

// expected is how large the base of an instance is going to be of which so many bytes have come. The instance counts the keys that it has
// sent by thousands, once a second: while they are few, its memory tells, which is more than its data takes.
func expected(s redis.Sending, read int64) int64 {
	const few = 100 // of all
	if read > 0 && s.Keys > 0 && s.Keys <= s.Total && s.Keys >= s.Total/few {
		return max(read, int64(float64(read)*float64(s.Total)/float64(s.Keys)))
	}
	return max(read, s.UsedMemory)
}
