// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"
)

// result is what a run prints. load's --help tells what the counts mean.
type result struct {
	Started time.Time `json:"started"`
	Seconds float64   `json:"seconds"`

	Writes int64 `json:"writes"`
	Reads  int64 `json:"reads"`
	Pairs  int64 `json:"pairs"`
	// Arrivals are the new clients that came and went.
	Arrivals int64 `json:"arrivals"`

	Failed int64 `json:"failed"`
	// FailedOtherwise counts what failed, and did not time out: of commands and new clients, and of attempts.
	FailedOtherwise int64 `json:"failedOtherwise"`

	Lost    int64 `json:"lost"`
	Stale   int64 `json:"stale"`
	Corrupt int64 `json:"corrupt"`
	Torn    int64 `json:"torn"`   // pairs written together that were read apart
	Unread  int   `json:"unread"` // keys that could not be read back

	FailedAttempts  int64        `json:"failedAttempts"`
	TryAgain        int64        `json:"tryAgain"`        // attempts
	PairsTriedAgain int64        `json:"pairsTriedAgain"` // commands that ended with it
	ClosedByClient  int64        `json:"closedByClient"`  // attempts
	Stalled         int64        `json:"stalled"`         // attempts
	Redirected      int64        `json:"redirected"`
	Topology        int64        `json:"topologyErrors"` // of commands that the client sends for itself
	Errors          []errorCount `json:"errors,omitempty"`
	Samples         []sample     `json:"samples,omitempty"`
	Wrong           []string     `json:"wrong,omitempty"`

	LongestStallMS float64 `json:"longestStallMS"`
	LongestPairMS  float64 `json:"longestPairMS"`
	ClientStallMS  float64 `json:"clientStallMS"`
	// StallSeconds is how long that processor stalled altogether that did so the longest.
	StallSeconds float64 `json:"stallSeconds"`

	P50MS   float64   `json:"p50MS"`
	P99MS   float64   `json:"p99MS"`
	P999MS  float64   `json:"p999MS"`
	Slowest []slow    `json:"slowest"`
	GapsMS  []float64 `json:"gapsMS"` // by sixteenth of the slots
	Outages []outage  `json:"outages,omitempty"`
}

func (s *session) result(started time.Time, seconds float64, single, paired latencies, unread int) result {
	b := s.attempts
	b.mu.Lock()
	defer b.mu.Unlock()
	return result{
		Started: started.UTC(), Seconds: seconds,
		Writes: s.written.Load(), Reads: s.read.Load(), Pairs: s.pairsDone.Load(), Arrivals: s.arrived.Load(),
		Failed: s.failed.Load(), Lost: s.lost.Load(), Stale: s.stale.Load(), Corrupt: s.corrupt.Load(), Torn: s.torn.Load(), Unread: unread,
		FailedOtherwise: s.otherwise.Load() + b.otherwise,
		FailedAttempts:  b.failed, TryAgain: b.tryAgain, PairsTriedAgain: s.pairsTriedAgain.Load(), ClosedByClient: b.closedByClient,
		Stalled:    b.stalled,
		Redirected: b.redirected, Topology: b.administrative,
		Errors: b.errors(), Samples: b.samples, Wrong: s.wrongs,
		LongestStallMS: single.quantile(1), LongestPairMS: paired.quantile(1), ClientStallMS: milliseconds(b.still.longest()),
		StallSeconds: b.still.during(started, started.Add(time.Duration(seconds*float64(time.Second)))).Seconds(),
		P50MS:        single.quantile(0.5), P99MS: single.quantile(0.99), P999MS: single.quantile(0.999),
		Slowest: single.slowest, GapsMS: s.gaps.milliseconds(), Outages: s.gaps.outages,
	}
}

// report prints a line a second until ctx ends.
func (s *session) report(ctx context.Context) {
	every := time.NewTicker(time.Second)
	defer every.Stop()
	var writes, reads int64
	for {
		select {
		case <-ctx.Done():
			return
		case at := <-every.C:
			w, r := s.written.Load(), s.read.Load()
			// A progress line that cannot be printed is no reason to end the load.
			_ = s.progress.Encode(map[string]any{"at": at.UTC().Format(time.RFC3339), "writes": w - writes, "reads": r - reads,
				"failed": s.failed.Load(), "lost": s.lost.Load(), "stale": s.stale.Load()})
			writes, reads = w, r
		}
	}
}

// readBack reads every key that was written, counts lost writes, and removes the keys.
// It tries again until ctx ends, and returns how many keys could not be read.
func (s *session) readBack(ctx context.Context) (unread int) {
	var keys []int
	for key := range s.keys {
		if s.single.attempted(key) > 0 {
			keys = append(keys, key)
		}
	}
	for from := 0; from < len(keys); from += pipelineItems {
		batch := keys[from:min(len(keys), from+pipelineItems)]
		for {
			err := s.readBackBatch(ctx, batch)
			if err == nil {
				break
			}
			select {
			case <-time.After(100 * time.Millisecond):
				continue
			case <-ctx.Done():
			}
			s.wrong("read back %d keys: %v", len(batch), err)
			unread += len(batch)
			break
		}
	}
	if unread > 0 {
		return unread
	}
	for {
		_, err := s.remove(ctx, keys)
		if err == nil {
			return s.removeLate(ctx, keys)
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			s.wrong("remove the keys of this run: %v", err)
			return len(keys)
		}
	}
}

func (s *session) readBackBatch(ctx context.Context, keys []int) error {
	pipe := s.client.Pipeline()
	got, left := make([]*redis.StringCmd, len(keys)), make([]*redis.DurationCmd, len(keys))
	for i, key := range keys {
		name, _ := s.values.key(key)
		got[i], left[i] = pipe.Get(ctx, name), pipe.PTTL(ctx, name)
	}
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return err
	}
	for i := range keys { // Exec returns the first error only
		if err := got[i].Err(); err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := left[i].Err(); err != nil {
			return err
		}
	}
	for i, key := range keys {
		name, _ := s.values.key(key)
		found := got[i].Err() == nil
		s.judge(name, key, got[i].Val(), found, s.single.acknowledged(key), s.single.attempted(key), &s.lost, "in the end there is")
		if lives := left[i].Val() > 0; found && lives != s.values.expires(key) {
			s.corrupt.Add(1)
			s.wrong("%s has %v to live, it was written with a lifetime: %t", name, left[i].Val(), s.values.expires(key))
		}
	}
	return nil
}

// remove leaves nothing behind, so that the number of keys tells whether one is there twice. It returns those of keys that were there.
func (s *session) remove(ctx context.Context, keys []int) (removed []int, err error) {
	pipe := s.client.Pipeline()
	gone := make([]*redis.IntCmd, len(keys))
	for i, key := range keys {
		name, _ := s.values.key(key)
		gone[i] = pipe.Unlink(ctx, name)
	}
	for pair := range s.workers {
		a, b, _ := s.values.pair(pair)
		pipe.Unlink(ctx, a, b)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, err
	}
	for i, key := range keys {
		if gone[i].Val() > 0 {
			removed = append(removed, key)
		}
	}
	return removed, nil
}

// removeLate removes once more, a moment later, what a command brought that was given up and came late. A key whose last write was
// acknowledged does not come back that way: its removal, which was acknowledged too, was lost.
func (s *session) removeLate(ctx context.Context, keys []int) (unread int) {
	select {
	case <-time.After(500 * time.Millisecond):
	case <-ctx.Done():
		return 0
	}
	again, err := s.remove(ctx, keys)
	if err != nil {
		s.wrong("remove the keys of this run once more: %v", err)
		return len(keys)
	}
	for _, key := range again {
		name, _ := s.values.key(key)
		attempted, acknowledged := s.single.attempted(key), s.single.acknowledged(key)
		if attempted == acknowledged {
			s.lost.Add(1)
		}
		s.wrong("%s was there again after it was removed: %d writes were attempted, the last acknowledged is %d", name, attempted, acknowledged)
	}
	return 0
}
