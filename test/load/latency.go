// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// slow is a command that took long.
type slow struct {
	At      time.Time `json:"at"` // when it was sent
	MS      float64   `json:"ms"`
	Command string    `json:"command"`
	Slot    int       `json:"slot"`
}

const slowKept = 5

// latencies are the times of one worker's commands. Not safe for concurrent use.
type latencies struct {
	micros  []uint32
	slowest []slow // longest first
}

// add takes down a command. name is asked for only if the command is among the slowest.
func (l *latencies) add(sent time.Time, took time.Duration, slot int, name func() string) {
	l.micros = append(l.micros, uint32(min(took.Microseconds(), 1<<32-1))) //nolint:gosec // bounded
	ms := milliseconds(took)
	if len(l.slowest) == slowKept && ms <= l.slowest[slowKept-1].MS {
		return
	}
	l.slowest = longest(append(l.slowest, slow{At: sent.UTC(), MS: ms, Command: name(), Slot: slot}))
}

func longest(list []slow) []slow {
	slices.SortStableFunc(list, func(a, b slow) int { return cmp.Compare(b.MS, a.MS) })
	return list[:min(len(list), slowKept)]
}

// merge makes one of many.
func merge(all []*latencies) latencies {
	var whole latencies
	for _, l := range all {
		whole.micros = append(whole.micros, l.micros...)
		whole.slowest = append(whole.slowest, l.slowest...)
	}
	slices.Sort(whole.micros)
	whole.slowest = longest(whole.slowest)
	return whole
}

// quantile is the time in milliseconds that a part of the commands stayed within; the
// list must be sorted. 1 is the longest.
func (l *latencies) quantile(part float64) float64 {
	if len(l.micros) == 0 {
		return 0
	}
	i := min(int(part*float64(len(l.micros))), len(l.micros)-1)
	return float64(l.micros[i]) / 1000
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// slotRanges is how many equal ranges of slots gaps are kept for.
const slotRanges = 16

// gaps are the longest times between two acknowledged writes into the same range of
// slots. At low rates they are mostly the pace of the writers.
type gaps struct {
	mu      sync.Mutex
	last    [slotRanges]time.Time
	most    [slotRanges]time.Duration
	outages []outage
}

// outage is a gap that is longer than the pace of the writers explains.
type outage struct {
	From      time.Time `json:"from"` // the last acknowledged write before it
	To        time.Time `json:"to"`   // and the first one after it
	Sixteenth int       `json:"sixteenth"`
}

const (
	outageAfter = 300 * time.Millisecond
	outagesKept = 20_000
)

func (g *gaps) acknowledged(slot int, at time.Time) {
	i := slot * slotRanges / 16384
	g.mu.Lock()
	defer g.mu.Unlock()
	if at.Before(g.last[i]) { // two writers' acknowledgements may be taken down in the wrong order
		return
	}
	if !g.last[i].IsZero() {
		gap := at.Sub(g.last[i])
		g.most[i] = max(g.most[i], gap)
		if gap >= outageAfter && len(g.outages) < outagesKept {
			g.outages = append(g.outages, outage{g.last[i].UTC(), at.UTC(), i})
		}
	}
	g.last[i] = at
}

func (g *gaps) milliseconds() []float64 {
	list := make([]float64, slotRanges)
	for i, gap := range g.most {
		list[i] = milliseconds(gap)
	}
	return list
}
