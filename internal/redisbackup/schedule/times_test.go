// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func times1(t *testing.T, schedule, zone string, jitter time.Duration) *times {
	t.Helper()
	s := &v1alpha1.RedisBackupSchedule{ObjectMeta: metav1.ObjectMeta{UID: "s"}, Spec: v1alpha1.RedisBackupScheduleSpec{
		Schedule: schedule, TimeZone: zone, Jitter: &metav1.Duration{Duration: jitter}}}
	got, refused := timesOf(s)
	if refused != nil {
		t.Fatalf("%s: %+v", schedule, refused)
	}
	return got
}

func at(t *testing.T, text string) time.Time {
	t.Helper()
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func TestRefusals(t *testing.T) {
	for what, tt := range map[string]struct{ schedule, zone, reason, message string }{
		"a day that never comes": {"30 2 31 2 *", "", v1alpha1.ScheduleInvalid, `spec.schedule: position 6: day of month "31" never comes`},
		"a minute too many":      {"99 * * * *", "", v1alpha1.ScheduleInvalid, `spec.schedule: position 1: minute "99": `},
		"seconds":                {"0 0 2 * * *", "", v1alpha1.ScheduleInvalid, "there are no seconds"},
		"every":                  {"@every 1h", "", v1alpha1.ScheduleInvalid, "@every has no fixed times"},
		"a zone within":          {"TZ=UTC 0 0 * * *", "", v1alpha1.ScheduleInvalid, "write it into spec.timeZone"},
		"another zone within":    {"CRON_TZ=UTC 0 0 * * *", "", v1alpha1.ScheduleInvalid, "write it into spec.timeZone"},
		"nothing":                {"", "", v1alpha1.ScheduleInvalid, "spec.schedule: "},
		"no zone":                {"@daily", "Mars/Olympus", v1alpha1.ScheduleInvalidTimeZone, `spec.timeZone: "Mars/Olympus" is not a`},
		"whoever's zone":         {"@daily", "Local", v1alpha1.ScheduleInvalidTimeZone, "write an IANA name"},
		"a path":                 {"@daily", "../../etc/passwd", v1alpha1.ScheduleInvalidTimeZone, "write an IANA name"},
	} {
		s := &v1alpha1.RedisBackupSchedule{Spec: v1alpha1.RedisBackupScheduleSpec{Schedule: tt.schedule, TimeZone: tt.zone}}
		if _, refused := timesOf(s); refused == nil || refused.reason != tt.reason || !strings.Contains(refused.message, tt.message) {
			t.Errorf("%s: %+v", what, refused)
		}
	}
}

// Whatever the times and the jitter are: what is due is the last one that should have begun, what is upcoming comes after now, and each
// begins before the next is due.
func TestDueIsTheLatest(t *testing.T) {
	const seed = 7
	random := rand.New(rand.NewPCG(seed, seed))
	zones := []string{"Etc/UTC", "Europe/Berlin", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe",
		"America/Santiago"}
	schedules := []string{"* * * * *", "@hourly", "@daily", "@weekly", "@monthly", "*/7 3-5 * * *", "0 0 * * 6", "59 23 31 * *",
		"30 0,12 * * 0"}
	for range 300 {
		schedule, zone := schedules[random.IntN(len(schedules))], zones[random.IntN(len(zones))]
		what := fmt.Sprintf("%q in %s", schedule, zone)
		times := times1(t, schedule, zone, time.Duration(random.IntN(3600))*time.Second)
		after := time.Unix(1735689600+random.Int64N(63e6), 0)
		want, now := time.Time{}, after
		for steps := random.IntN(20); steps > 0; steps-- { // one by one
			next := times.Next(now)
			if !next.After(now) || times.start(next).Before(next) || !times.start(next).Before(times.Next(next)) {
				t.Fatalf("%s: %s, then %s, which begins at %s", what, now, next, times.start(next))
			}
			want, now = next, next
		}
		now = now.Add(time.Duration(random.IntN(60)) * time.Second)
		if last := times.Next(want); !want.IsZero() && !last.After(now) {
			want = last
		}
		if got := times.Latest(after, now); !got.Equal(want) {
			t.Fatalf("%s: after %s, the latest until %s is %s, want %s", what, after, now, got, want)
		}
		due, upcoming := times.due(after, now), times.upcoming(after, now)
		if !upcoming.After(now) || !due.IsZero() && (times.start(due).After(now) || !due.After(after)) {
			t.Errorf("%s: at %s, due is %s, which begins at %s; the next at %s", what, now, due, times.start(due), upcoming)
		}
		first := now
		for first = times.Next(first.Add(-2 * time.Hour)); !first.After(after) || !times.start(first).After(now); {
			first = times.Next(first)
		}
		if !upcoming.Equal(times.start(first)) {
			t.Errorf("%s: at %s, the next begins at %s, and %s at %s", what, now, upcoming, first, times.start(first))
		}
		if between := times.Latest(due, now); !due.IsZero() && !between.IsZero() && !times.start(between).After(now) {
			t.Errorf("%s: at %s, due is %s, and not %s", what, now, due, between)
		}
	}
}

// What was missed in years is found in no time, and the share of the jitter is the same for whoever asks.
func TestManyWereMissed(t *testing.T) {
	now := at(t, "2026-11-23T10:00:30Z")
	times := times1(t, "* * * * *", "Europe/Berlin", time.Hour)
	minute := now.Truncate(time.Minute)
	if due := times.due(now.AddDate(-30, 0, 0), now); !due.Equal(minute) && !due.Equal(minute.Add(-time.Minute)) {
		t.Errorf("due is %s", due)
	}
	daily := times1(t, "@daily", "Etc/UTC", time.Hour)
	seen := map[time.Duration]bool{}
	for day := range 20 {
		moment := at(t, "2026-11-01T00:00:00Z").AddDate(0, 0, day)
		share := daily.start(moment).Sub(moment)
		if again := times1(t, "@daily", "Etc/UTC", time.Hour).start(moment).Sub(moment); again != share || share < 0 || share >= time.Hour {
			t.Errorf("%s, then %s", share, again)
		}
		seen[share] = true
	}
	other := *daily
	if other.uid = "t"; len(seen) < 10 || other.start(now).Equal(daily.start(now)) {
		t.Errorf("the shares are %v", seen)
	}
}
