// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package autoscale decides how many shards a load asks for, and when. It is pure: what it remembers from one look to the next is a value.
package autoscale

import (
	"cmp"
	"fmt"
	"math"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// Measure names something of which a master bears much or little.
type Measure string

// The measures.
const (
	Memory     Measure = "Memory"
	Operations Measure = "Operations"
	Network    Measure = "Network"
)

const (
	// slack is what a master is to bear at most of each target, as it is foreseen, when shards are removed: between slack and 1 the number
	// of shards stays.
	slack = 0.8
	// fits is how much of the memory of a shard may be taken, as it is foreseen, when shards are removed, whatever the targets are.
	fits = 0.85
	// longestGap is how far looks may be apart that count as one stretch of time. A clock that jumps further, or back, begins a new one.
	longestGap = 5 * time.Minute
)

// Config is what a spec asks for, defaults filled in.
type Config struct {
	// Least and Most bound the number of shards; Least is at least 1. There may be more than Most: those go as they do because of the load.
	Least, Most int
	// Targets are what a master is to bear at most, by measure: a part of its room for Memory, else a number for each second.
	Targets map[Measure]float64
	// Out, In and CoolDown are the times to wait.
	Out, In, CoolDown time.Duration
}

// ConfigOf reads a spec that admission has checked, with the bounds in force.
func ConfigOf(a *v1alpha1.Autoscale, b Bounds) Config {
	c := Config{Least: int(b.Least), Most: int(b.Most), Targets: map[Measure]float64{}}
	c.Out, c.In, c.CoolDown = a.Waits()
	targets := a.Asked()
	if targets.MemoryPercent != nil {
		c.Targets[Memory] = float64(*targets.MemoryPercent) / 100
	}
	if targets.OperationsPerSecond != nil {
		c.Targets[Operations] = float64(*targets.OperationsPerSecond)
	}
	if targets.NetworkBytesPerSecond != nil {
		c.Targets[Network] = float64(*targets.NetworkBytesPerSecond)
	}
	return c
}

// Past is what was written down of the scalings before.
type Past struct {
	// ScaledAt is when the last one began; zero when there was none.
	ScaledAt time.Time
	// Outgrown is what was too much for how many shards when shards were last added; nil: they never were.
	Outgrown *Outgrown
}

// Outgrown is a load that was too much for a number of shards.
type Outgrown struct {
	Shards  int
	Measure Measure
	// Demand is what all masters bore together, in targets of one.
	Demand float64
}

// Track is since when the load asks for another number of shards. The zero value begins anew: every stretch of time that counts is one
// that was seen from its beginning to its end.
type Track struct {
	last    time.Time
	shards  int
	out, in stretch
}

// stretch is a time without a break in which the load asked for more shards, or for fewer. shards is the number that it asked for all of
// the time: the least of more, the most of fewer.
type stretch struct {
	since  time.Time
	shards int
}

// Outcome is what a look came to.
type Outcome struct {
	// Known reports whether what the load asks for is known; the rest is not, else.
	Known bool
	// Wanted is how many shards the load asks for now, within the bounds; Limited reports whether it asks for more than that.
	Wanted  int
	Limited bool
	// Measure asks for it, of which Shard bears most; empty while nothing asks for another number than there is.
	Measure Measure
	Shard   int
	// Since is since when it has asked for more, or for fewer, and NotBefore when the number may change; zero while it does not.
	Since, NotBefore time.Time
	// To is how many shards there are to be from now on; 0: the number stays.
	To int
	// Outgrown is what to write down with To; nil: what was there stays.
	Outgrown *Outgrown
	// Reason explains it in a sentence.
	Reason string
}

// Decide says what the loads of all masters, which own all slots, ask for, when there are so many shards, and what to remember until the
// next look. calm reports whether nothing but the load is at work: what a rollout, healing or a backup adds to it asks for no more shards.
// What it says of To it says again until there are so many.
func (t Track) Decide(now time.Time, c Config, loads []Load, shards int, calm bool, past Past) (Track, Outcome) {
	if why := incomplete(c, loads, shards); why != "" {
		return Track{}, Outcome{Reason: why}
	}
	if between := now.Sub(t.last); between < 0 || between > longestGap || t.shards != shards {
		t = Track{}
	}
	t.last, t.shards = now, shards
	asks := c.asks(loads, shards, past)
	wanted, bound := c.within(asks.shards, shards, loads)
	o := Outcome{Known: true, Wanted: wanted, Limited: asks.shards > c.Most, Measure: asks.measure, Shard: asks.shard,
		Reason: cmp.Or(bound, asks.why)}
	var running stretch
	var wait time.Duration
	switch {
	case wanted > shards && !calm:
		t.out, t.in = stretch{}, stretch{}
		return t, o
	case wanted > shards:
		t.out, t.in = t.out.with(now, wanted, func(a, b int) int { return min(a, b) }), stretch{}
		running, wait = t.out, c.Out
	case wanted < shards:
		t.in, t.out = t.in.with(now, wanted, func(a, b int) int { return max(a, b) }), stretch{}
		running, wait = t.in, c.In
	default:
		t.out, t.in = stretch{}, stretch{}
		if !o.Limited {
			o.Measure, o.Shard, o.Reason = "", 0, within
		}
		return t, o
	}
	o.Since, o.NotBefore = running.since, running.since.Add(wait)
	// A time to come was written by another clock: it holds nothing up, since the load is waited for all the same.
	if cool := past.ScaledAt.Add(c.CoolDown); !past.ScaledAt.IsZero() && !past.ScaledAt.After(now) && cool.After(o.NotBefore) {
		o.NotBefore = cool
	}
	if now.Before(o.NotBefore) {
		return t, o
	}
	o.To = min(max(running.shards, c.Least), max(c.Most, shards)) // bounds may be others than they were
	if o.To == shards {
		o.To = 0
		return t, o
	}
	if o.To > shards {
		o.Outgrown = &Outgrown{Shards: shards, Measure: asks.measure, Demand: c.demand(asks.measure, loads)}
	}
	return t, o
}

func (s stretch) with(now time.Time, shards int, of func(a, b int) int) stretch {
	if s.since.IsZero() {
		return stretch{since: now, shards: shards}
	}
	return stretch{since: s.since, shards: of(s.shards, shards)}
}

// incomplete says why nothing can be decided; empty: it can.
func incomplete(c Config, loads []Load, shards int) string {
	if len(loads) != shards {
		return "the load is known when every instance answers and every shard owns slots"
	}
	for measure := range c.Targets {
		for _, load := range loads {
			switch {
			case measure == Memory && load.Room <= 0:
				return fmt.Sprintf("shard %d has neither maxmemory nor a memory limit to have a part of: set one, or another target than memoryPercent",
					load.Shard)
			case load.of(measure) < 0:
				return "rates are known when the masters have been looked at twice"
			}
		}
	}
	return ""
}

// of is how much of a measure a master bears; negative when it is not known. Of Memory it is the part of its room.
func (l Load) of(measure Measure) float64 {
	switch measure {
	case Memory:
		return l.Memory / l.Room
	case Operations:
		return l.Operations
	case Network:
		return l.Network
	}
	return unknown
}

// within: there are as many shards as the load asks for, or no fewer than are allowed.
const within = "the load is within the targets"

// asked is how many shards a load asks for, not bounded, and by what.
type asked struct {
	shards  int
	measure Measure
	shard   int
	why     string
}

// asks is how many shards the loads ask for: more when the busiest master bears more than a target, fewer when the same load on fewer would
// leave every master below slack of all targets.
func (c Config) asks(loads []Load, shards int, past Past) asked {
	out, in := asked{}, asked{shards: -1} // a load of nothing asks for none, and that is a reason, too
	for _, measure := range []Measure{Memory, Operations, Network} {
		target, wanted := c.Targets[measure]
		if !wanted {
			continue
		}
		most, dense := 0.0, 0.0
		var busiest int
		for _, load := range loads {
			part := load.of(measure) / target
			if part > most {
				most, busiest = part, load.Shard
			}
			dense = max(dense, part*float64(slots.Count)/float64(load.Slots))
		}
		if n := ceil(float64(shards) * most); most > 1 && n > out.shards {
			out = asked{shards: min(max(n, shards+1), 2*shards), measure: measure, shard: busiest,
				why: fmt.Sprintf("shard %d bears more than the target of %s", busiest, measure)}
		}
		if n := c.kept(measure, loads, past, ceil(dense/slack)); n > in.shards {
			in = asked{shards: n, measure: measure, shard: busiest,
				why: fmt.Sprintf("fewer shards would bear less than %.0f %% of each target, of %s most", 100*slack, measure)}
		}
	}
	if out.shards > shards {
		return out
	}
	in.shards = max(in.shards, needed(loads), (shards+1)/2)
	if in.shards < shards {
		return in
	}
	return asked{shards: shards, why: within}
}

// within is how many shards there may be of those that are asked for, and why not those; empty: there are no more, and no fewer, than may
// be. Where there are more than Most already, their data has to fit, and half of them stay.
func (c Config) within(asked, shards int, loads []Load) (wanted int, why string) {
	switch wanted = max(min(asked, c.Most), c.Least); {
	case wanted < shards && asked > c.Most:
		wanted = min(max(wanted, needed(loads), (shards+1)/2), shards)
		return wanted, fmt.Sprintf("there may be %d shards at most", c.Most)
	case wanted > shards && asked < c.Least:
		return wanted, fmt.Sprintf("there are to be %d shards at least", c.Least)
	}
	return wanted, ""
}

// kept is a number of shards, or one more than were outgrown as long as the load is about what it was then. A load that is not spread
// evenly may look smaller on more shards than on fewer.
func (c Config) kept(measure Measure, loads []Load, past Past, shards int) int {
	if o := past.Outgrown; o != nil && o.Measure == measure && shards <= o.Shards && c.demand(measure, loads) >= slack*o.Demand {
		return o.Shards + 1
	}
	return shards
}

// demand is what all masters bear together, in targets of one.
func (c Config) demand(measure Measure, loads []Load) float64 {
	sum := 0.0
	for _, load := range loads {
		sum += load.of(measure) / c.Targets[measure]
	}
	return sum
}

// needed is how many shards the data needs, so that it takes fits of the memory of each at most.
func needed(loads []Load) int {
	dense, least := 0.0, math.Inf(1)
	for _, load := range loads {
		if load.Room <= 0 {
			continue
		}
		dense, least = max(dense, load.Memory*float64(slots.Count)/float64(load.Slots)), min(least, load.Room)
	}
	return ceil(dense / (fits * least))
}

// ceil is the next whole number, from 0 to the most shards that a cluster can have and one more.
func ceil(n float64) int {
	return int(min(math.Ceil(n), float64(v1alpha1.MaxShards)+1))
}
