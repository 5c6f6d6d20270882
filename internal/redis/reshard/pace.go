// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"sync"
	"time"
)

const (
	// blockTarget is how long one round trip of MIGRATE should keep the source from serving its clients.
	blockTarget = 10 * time.Millisecond
	// mostOpen is how long the keys of a group of slots may take to move. Until the group is closed, commands with several
	// keys of one slot may be answered with TRYAGAIN.
	mostOpen = 60 * time.Millisecond

	// batchBytes is the most that one MIGRATE carries, unless one key is larger.
	batchBytes = 1 << 20
	// A key costs as much as this many bytes, by the profile of both ends.
	bytesPerKey = 2 << 10

	firstGuess = 10 * time.Microsecond // per cost
)

// cost is the price of moving keys, in keys of no size.
func cost(keys int, bytes int64) float64 { return float64(keys) + float64(bytes)/bytesPerKey }

// pace learns how much may be moved at once within the targets. Each move has its own one, since the two ends, their
// machines and the sort of data decide it.
type pace struct {
	perCost float64       // nanoseconds
	marking time.Duration // what opening and closing groups took last
	slots   int           // in a group
}

func newPace() *pace { return &pace{perCost: float64(firstGuess), slots: 32} }

// budget is the cost that one round trip may have.
func (p *pace) budget() float64 { return float64(blockTarget) / p.perCost }

// groupBudget is the cost that a group may have: it is drained in one round trip where marks are quick, and in several
// where they are not (most engines write and fsync a file for each change), so that moving takes longer than marking.
func (p *pace) groupBudget() float64 {
	return float64(min(max(blockTarget, 2*p.marking), mostOpen)) / p.perCost
}

// moved learns from a round trip: slowing down counts at once, speeding up bit by bit.
func (p *pace) moved(cost float64, took time.Duration) {
	const weight = 0.2
	if cost < p.budget()/4 { // mostly the round trip itself
		return
	}
	measured := float64(took) / cost
	if measured > p.perCost {
		p.perCost = (p.perCost + measured) / 2
		return
	}
	p.perCost += weight * (measured - p.perCost)
}

// marked learns from the marks of a group of slots: as long as they are quick, more of them do no harm.
func (p *pace) marked(took time.Duration) {
	const most, target = 512, 20 * time.Millisecond
	p.marking = took
	switch {
	case took > 2*target:
		p.slots = max(16, p.slots/2)
	case took < target:
		p.slots = min(most, p.slots*2)
	}
}

// limiter keeps all moves together below a number of keys a second.
type limiter struct {
	now       func() time.Time
	perSecond int

	mu   sync.Mutex
	free time.Time // when what was promised so far is paid off
}

// wait takes n keys and returns when they may be moved, or with the error of the context.
func (l *limiter) wait(ctx context.Context, n int) error {
	if l.perSecond <= 0 {
		return ctx.Err()
	}
	l.mu.Lock()
	now := l.now()
	if l.free.Before(now) {
		l.free = now
	}
	pause := l.free.Sub(now)
	l.free = l.free.Add(time.Duration(n) * time.Second / time.Duration(l.perSecond))
	l.mu.Unlock()
	return sleep(ctx, pause)
}

// sleep returns after the time, or with the error of the context when that ends first.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
