// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package times has the times of a cron line in a time zone. It is pure.
package times

import (
	"time"

	"github.com/robfig/cron/v3"

	"middleware.hc.cn/operator/internal/admission/crontab"
)

// Times are the times of a cron line, in a time zone.
type Times struct {
	cron cron.Schedule
	zone *time.Location
	// hourly: every hour is one, as it passes. Else a time that clocks show twice counts once.
	hourly bool
	// keeps: a time that the clocks leave out is when they are set forward. Else it is left out.
	keeps bool
}

// Of reads a cron line.
func Of(line string, zone *time.Location) (Times, error) {
	parsed, err := crontab.ParseSchedule(line)
	if err != nil {
		return Times{}, err
	}
	return Times{cron: parsed, zone: zone, hourly: hourly(parsed)}, nil
}

// Keeping has a time that the clocks leave out be the moment at which they are set forward.
func (t Times) Keeping() Times {
	t.keeps = true
	return t
}

// hourly reports whether a cron line has a * for the hour.
func hourly(parsed cron.Schedule) bool {
	const star = 1 << 63 // as the library marks a field that is *
	fields, ok := parsed.(*cron.SpecSchedule)
	return ok && fields.Hour&star != 0
}

// Next is the first time after another one; zero: there is none.
func (t Times) Next(after time.Time) time.Time {
	next := t.shown(after)
	if t.keeps && !t.hourly {
		if skipped := t.skipped(after, next); !skipped.IsZero() {
			return skipped
		}
	}
	return next
}

// shown is the first time after another one that clocks show.
func (t Times) shown(after time.Time) time.Time {
	for at := t.cron.Next(after.In(t.zone)); ; at = t.cron.Next(at) {
		if at.IsZero() || t.hourly || !again(at) {
			return at
		}
	}
}

// again reports whether clocks that were set back show a time for the second time.
func again(at time.Time) bool {
	begin, _ := at.ZoneBounds()
	_, now := at.Zone()
	_, before := begin.Add(-time.Second).Zone()
	return at.Sub(begin) < time.Duration(before-now)*time.Second
}

// farthest is how far the library looks ahead for a time.
const farthest = 5 * 366 * 24 * time.Hour

// skipped is when clocks are first set forward over a time, between two moments, of which the latter may be zero, without end; zero: they
// are not.
func (t Times) skipped(after, before time.Time) time.Time {
	for at := after.In(t.zone); at.Sub(after) < farthest; {
		_, forward := at.ZoneBounds()
		if forward.IsZero() || !before.IsZero() && !forward.Before(before) {
			return time.Time{}
		}
		_, was := at.Zone()
		_, is := forward.Zone()
		// The first time that clocks would show which were not set forward, and until when they would show what is left out.
		first := t.cron.Next(forward.Add(-time.Second).In(time.FixedZone("", was)))
		until := forward.Add(time.Duration(is-was) * time.Second)
		if !first.IsZero() && first.Before(until) {
			return forward
		}
		at = forward
	}
	return time.Time{}
}

// Latest is the last time after one moment and not after another; zero: there is none. It takes some dozens of steps, however many times
// there are in between.
func (t Times) Latest(after, until time.Time) time.Time {
	reached := func(from time.Time) bool {
		next := t.Next(from)
		return !next.IsZero() && !next.After(until)
	}
	if !reached(after) {
		return time.Time{}
	}
	for last := until; last.Sub(after) > time.Second; {
		if middle := after.Add(last.Sub(after) / 2); reached(middle) { //nolint:mnd // the middle
			after = middle
		} else {
			last = middle
		}
	}
	return t.Next(after)
}
