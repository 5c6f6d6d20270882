// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package balance decides which slots move so that no shard bears much more than the others. It is pure: what it remembers from one look to
// the next is a value.
package balance

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Measure names something of which a shard bears much or little.
type Measure string

// The measures: bytes of keys, and processor time of commands.
const (
	Memory    Measure = "Memory"
	Processor Measure = "Processor"
)

var measures = [...]Measure{Memory, Processor}

const (
	// hot is what a shard bears at least, in means of all, to be relieved; it is relieved until it bears cool.
	hot, cool = 1.2, 1.05
	// holds is for how long without a break a shard has to be hot.
	holds = 10 * time.Minute
	// longestGap is how far looks may be apart that count as one stretch of time. A clock that jumps further, or back, begins a new one.
	longestGap = 5 * time.Minute
	// fits is how much of the memory of a shard may be taken, as it is foreseen, when it has received slots. takes is what the keys of a
	// slot are believed to take there, in bytes of now.
	fits, takes = 0.85, 1.1
	// mostSlots bounds how many slots move at a time.
	mostSlots = 2048
	// window is the time that the budget is for.
	window = time.Hour
)

// least is what a shard bears beyond the mean at least to be hot: bytes, or processors. Less is not worth a move.
var least = [...]float64{16 << 20, 0.05}

// Shard is the master of a shard.
type Shard struct {
	// Slots are those that it owns; at least one.
	Slots slots.Set
	// Used is the memory that it uses of Room, in bytes; Room is 0 when it has no limit.
	Used, Room float64
}

// Moved are slots that began to move.
type Moved struct {
	At    time.Time
	Bytes float64
}

// Track is since when shards have been hot. The zero value begins anew.
type Track struct {
	last   time.Time
	shards int
	since  map[place]time.Time
}

// place is a shard by one of the measures.
type place struct{ measure, shard int }

// Slot is a slot that bears much.
type Slot struct {
	Slot    uint16
	Shard   int
	Measure Measure
	// Percent is what it bears, in hundredths of what a shard bears on average.
	Percent int
	Bytes   float64
}

// Outcome is what a look came to.
type Outcome struct {
	// Known reports whether it is known what slots bear; the rest is not, else.
	Known bool
	// Measure is by which Shard is the hottest; empty while none is hot. Percent is what it bears, in hundredths of the mean.
	Measure        Measure
	Shard, Percent int
	// Since is since when it has been hot, and NotBefore when slots may move; zero while none is to.
	Since, NotBefore time.Time
	// Slots are the hottest, at most five.
	Slots []Slot
	// Goal is which shard is to own which slots from now on; nil: they stay. Count slots of so many Bytes move.
	Goal  []slots.Set
	Count int
	Bytes float64
	// Reason explains it in a sentence.
	Reason string
}

// Within are the moves of the last hour, as they count towards the budget.
func Within(past []Moved, now time.Time) []Moved {
	return slices.DeleteFunc(slices.Clone(past), func(m Moved) bool { return now.Sub(m.At).Abs() >= window })
}

// Decide says which slots are to move between shards, which own all slots together, and what to remember until the next look. budget is how
// many bytes may move in an hour; the last slot may be beyond it. What it says of Goal it says again until it is so.
func (t Track) Decide(now time.Time, budget float64, shards []Shard, weights *snapshot.SlotWeights, past []Moved) (Track, Outcome) {
	if weights == nil || len(shards) == 0 {
		return Track{}, Outcome{Reason: "what slots bear is known when all masters have been looked at for some minutes and no slot moves"}
	}
	if len(shards) == 1 {
		return Track{}, Outcome{Known: true, Reason: "one shard has all slots"}
	}
	if between := now.Sub(t.last); between < 0 || between > longestGap || t.shards != len(shards) {
		t = Track{}
	}
	l := loadsOf(shards, weights)
	since := map[place]time.Time{}
	var first *place
	for _, p := range l.hot() {
		since[p] = cmp.Or(t.since[p], now)
		if first == nil {
			first = &p
		}
	}
	t = Track{last: now, shards: len(shards), since: since}
	o := Outcome{Known: true, Slots: l.hottest(), Reason: "no shard bears much more than the others"}
	if first == nil {
		return t, o
	}
	o.Measure, o.Shard, o.Percent = measures[first.measure], first.shard, percent(l.ratio(*first))
	o.Since = since[*first]
	hottest := fmt.Sprintf("shard %d bears %d %% of what a shard bears on average (%s)", o.Shard, o.Percent, o.Measure)
	due := slices.DeleteFunc(l.hot(), func(p place) bool { return now.Before(since[p].Add(holds)) })
	o.Reason, o.NotBefore = hottest, since[*first].Add(holds)
	if len(due) == 0 {
		return t, o
	}
	left, again := leftOf(budget, past, now)
	if left <= 0 {
		o.NotBefore, o.Reason = again, hottest+", and as much as may move in an hour has moved"
		return t, o
	}
	moves := l.relieve(due, left)
	if len(moves) == 0 {
		o.NotBefore, o.Reason = time.Time{}, hottest+", and none of its slots would be better elsewhere"+l.alone(*first)
		return t, o
	}
	o.Goal, o.Count = make([]slots.Set, len(shards)), len(moves)
	for i, shard := range shards {
		o.Goal[i] = shard.Slots
	}
	for _, m := range moves {
		one := slots.Of(m.slot)
		o.Goal[m.from], o.Goal[m.to] = o.Goal[m.from].Subtract(one), o.Goal[m.to].Union(one)
		o.Bytes += weights.Bytes[m.slot]
	}
	return t, o
}

// leftOf is how many bytes may move now, and when more may if that is none.
func leftOf(budget float64, past []Moved, now time.Time) (left float64, again time.Time) {
	counts := Within(past, now)
	slices.SortFunc(counts, func(a, b Moved) int { return a.At.Compare(b.At) })
	left = budget
	for _, m := range counts {
		left -= m.Bytes
	}
	then := left
	for _, m := range counts {
		if then > 0 {
			break
		}
		then, again = then+m.Bytes, m.At.Add(window)
	}
	return left, again
}

// percent is a ratio in hundredths, in steps of five: a status is written for what changes.
func percent(ratio float64) int {
	const most = 1e6 // means of what masters say
	return 5 * int(min(ratio*20, most)+0.5)
}
