// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"errors"
	"slices"
	"sync"
	"syscall"
	"time"

	"middleware.hc.cn/operator/internal/archive/report"
)

// Watch is how others see how far an archive is. The zero value knows of none.
type Watch struct {
	mu     sync.Mutex
	said   report.Archive
	asOf   time.Time // all that was written before is in the store; zero: not known of this process
	chains []*chain
	known  *seeds
	began  time.Time
	full   bool // the store had no room for what was written last
}

// Report is how far it is now, for those who allow it to be behind so far.
func (w *Watch) Report(objective time.Duration) report.Archive {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.said
	r.Objective, r.Behind = objective.Seconds(), -1
	if w.full && r.Waits != "" {
		r.Waits = report.WaitRoom
	}
	if !w.asOf.IsZero() {
		r.Behind = max(0, time.Since(w.asOf).Seconds())
	}
	for _, c := range w.chains {
		c.mu.Lock()
		r.Waiting += int64(len(c.waiting))
		c.mu.Unlock()
	}
	return r
}

// Silent is for how long no instance has answered; 0 while the store is waited for, and none is asked.
func (w *Watch) Silent() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.known == nil || w.said.Waits == report.WaitStore {
		return 0
	}
	w.known.mu.Lock()
	defer w.known.mu.Unlock()
	return min(time.Since(w.began), time.Since(w.known.at))
}

// begin tells of a process that begins.
func (w *Watch) begin(known *seeds) {
	w.change(func(r *report.Archive) { w.known, w.began, r.Waits = known, time.Now(), report.WaitStore })
}

// failed tells of something that was not written. Only a file system says that it is full.
func (w *Watch) failed(err error) {
	w.change(func(*report.Archive) { w.full = errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) })
}

// waits tells what is waited for from now on.
func (w *Watch) waits(what report.Wait) {
	w.change(func(r *report.Archive) { r.Waits = what })
}

func (w *Watch) change(what func(*report.Archive)) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	what(&w.said)
}

// follow tells which chains there are.
func (w *Watch) follow(chains []*chain) {
	w.change(func(*report.Archive) { w.chains = slices.Clone(chains) })
}

// reached tells that all that was written before a moment is in the store. A mark delayed writes.
func (w *Watch) reached(at cut) {
	w.change(func(r *report.Archive) {
		w.asOf, w.full, r.Waits = at.at, false, ""
		if at.paused > 0 {
			r.Marks++
			r.Paused += at.paused.Seconds()
		}
	})
}

// recorded tells of a record that was written, and of the first moment, unless that is zero and the one of before.
func (w *Watch) recorded(is *Record, first time.Time) {
	w.change(func(r *report.Archive) {
		if r.Last = is.Marked; w.asOf.IsZero() { // of the process before
			w.asOf = is.Marked
		}
		if !first.IsZero() {
			r.First = first
		}
		if r.First.IsZero() || r.First.After(r.Last) {
			r.First = r.Last
		}
		if is.Consistent {
			r.Consistent = is.Marked
		}
		for _, shard := range is.Shards {
			if shard.Base != nil {
				r.Bases++
				r.Bytes += shard.Base.Size
			}
			r.Segments += int64(len(shard.Segments))
			for _, piece := range shard.Segments {
				r.Bytes += piece.Size
			}
		}
	})
}
