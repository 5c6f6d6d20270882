// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"hash/fnv"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/crontab"
	recurring "middleware.hc.cn/operator/internal/times"
)

// times are the times of a schedule, in its time zone.
type times struct {
	recurring.Times
	jitter time.Duration
	uid    string
}

// refusal says why a spec cannot be followed: a reason of the condition Scheduled, and a sentence with the field and what to write.
type refusal struct{ reason, message string }

// timesOf reads the times of a spec. Exactly one of the results is not nil.
func timesOf(s *v1alpha1.RedisBackupSchedule) (*times, *refusal) {
	t, refused := read(s, s.Spec.Schedule, "spec.schedule")
	if refused != nil {
		return nil, refused
	}
	t.uid = string(s.UID)
	if j := s.Spec.Jitter; j != nil {
		t.jitter = j.Duration
	}
	return t, nil
}

// verificationTimesOf reads the times of spec.verify, which is set. Exactly one of the results is not nil.
func verificationTimesOf(s *v1alpha1.RedisBackupSchedule) (*times, *refusal) {
	return read(s, s.Spec.Verify.Schedule, "spec.verify.schedule")
}

// read reads a cron line of a field. A time that the clocks leave out is left out.
func read(s *v1alpha1.RedisBackupSchedule, line, field string) (*times, *refusal) {
	zone, zoneErr := crontab.ParseZone(s.Spec.TimeZone)
	read, err := recurring.Of(line, zone)
	switch {
	case err != nil:
		return nil, &refusal{v1alpha1.ScheduleInvalid, fmt.Sprintf("%s: %v", field, err)}
	case zoneErr != nil:
		return nil, &refusal{v1alpha1.ScheduleInvalidTimeZone, fmt.Sprintf("spec.timeZone: %q %v", s.Spec.TimeZone, zoneErr)}
	}
	return &times{Times: read}, nil
}

// start is when the backup of a time begins: later by a share of the jitter that is the same whoever asks, and before the next time.
func (t *times) start(at time.Time) time.Time {
	most := t.jitter
	if next := t.Next(at); !next.IsZero() {
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
	at := t.Latest(after, now)
	if at.IsZero() || !t.start(at).After(now) {
		return at
	}
	return t.Latest(after, at.Add(-time.Second))
}

// upcoming is when the next backup begins after now; zero: never.
func (t *times) upcoming(after, now time.Time) time.Time {
	if at := t.Latest(after, now); !at.IsZero() {
		if start := t.start(at); start.After(now) {
			return start
		}
	}
	next := t.Next(now)
	if next.IsZero() {
		return next
	}
	return t.start(next)
}
