// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"hash/fnv"
	"time"
	_ "time/tzdata" // time zones must be known wherever the operator runs

	"github.com/robfig/cron/v3"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/crontab"
)

// times are the times of a schedule, in its time zone.
type times struct {
	cron cron.Schedule
	zone *time.Location
	// hourly: every hour is one, as it passes. Else a time that clocks show twice counts once.
	hourly bool
	jitter time.Duration
	uid    string
}

// refusal says why a spec cannot be followed: a reason of the condition Scheduled, and a sentence with the field and what to write.
type refusal struct{ reason, message string }

// timesOf reads the times of a spec. Exactly one of the results is not nil.
func timesOf(s *v1alpha1.RedisBackupSchedule) (*times, *refusal) {
	parsed, err := crontab.ParseSchedule(s.Spec.Schedule)
	if err != nil {
		return nil, &refusal{v1alpha1.ScheduleInvalid, fmt.Sprintf("spec.schedule: %v", err)}
	}
	t := &times{cron: parsed, uid: string(s.UID)}
	if t.zone, err = time.LoadLocation(s.Spec.TimeZone); err != nil || s.Spec.TimeZone == "Local" {
		return nil, &refusal{v1alpha1.ScheduleInvalidTimeZone,
			fmt.Sprintf("spec.timeZone: %q is not a time zone; write an IANA name, such as Asia/Shanghai or Etc/UTC", s.Spec.TimeZone)}
	}
	t.hourly = hourly(parsed)
	if j := s.Spec.Jitter; j != nil {
		t.jitter = j.Duration
	}
	return t, nil
}

// verificationTimesOf reads the times of spec.verify, which is set. Exactly one of the results is not nil.
func verificationTimesOf(s *v1alpha1.RedisBackupSchedule) (*times, *refusal) {
	zone, err := time.LoadLocation(s.Spec.TimeZone)
	if err != nil || s.Spec.TimeZone == "Local" {
		return nil, &refusal{v1alpha1.ScheduleInvalid, fmt.Sprintf("spec.timeZone: %q is not a time zone", s.Spec.TimeZone)}
	}
	parsed, err := crontab.ParseSchedule(s.Spec.Verify.Schedule)
	if err != nil {
		return nil, &refusal{v1alpha1.ScheduleInvalid, fmt.Sprintf("spec.verify.schedule: %v", err)}
	}
	return &times{cron: parsed, zone: zone, hourly: hourly(parsed)}, nil
}

// hourly reports whether a cron line has a * for the hour.
func hourly(parsed cron.Schedule) bool {
	const star = 1 << 63 // as the library marks a field that is *
	fields, ok := parsed.(*cron.SpecSchedule)
	return ok && fields.Hour&star != 0
}

// next is the first time after another one; zero: there is none. A time that the clocks leave out is left out.
func (t *times) next(after time.Time) time.Time {
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

// latest is the last time after one moment and not after another; zero: there is none. It takes some dozens of steps, however many times
// there are in between.
func (t *times) latest(after, until time.Time) time.Time {
	reached := func(from time.Time) bool {
		next := t.next(from)
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
	return t.next(after)
}

// start is when the backup of a time begins: later by a share of the jitter that is the same whoever asks, and before the next time.
func (t *times) start(at time.Time) time.Time {
	most := t.jitter
	if next := t.next(at); !next.IsZero() {
		most = min(most, next.Sub(at))
	}
	if most < time.Second {
		return at
	}
	hash := fnv.New64a()
	_, _ = fmt.Fprintf(hash, "%s/%d", t.uid, at.Unix())             // which never fails
	share := time.Duration(hash.Sum64() % uint64(most/time.Second)) //nolint:gosec // it is below most, which is an hour
	return at.Add(share * time.Second)
}

// due is the last time after one moment whose backup should have begun by now; zero: there is none.
func (t *times) due(after, now time.Time) time.Time {
	at := t.latest(after, now)
	if at.IsZero() || !t.start(at).After(now) {
		return at
	}
	return t.latest(after, at.Add(-time.Second))
}

// upcoming is when the next backup begins after now; zero: never.
func (t *times) upcoming(after, now time.Time) time.Time {
	if at := t.latest(after, now); !at.IsZero() {
		if start := t.start(at); start.After(now) {
			return start
		}
	}
	next := t.next(now)
	if next.IsZero() {
		return next
	}
	return t.start(next)
}
