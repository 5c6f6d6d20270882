// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
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

// Clocks are set forward on 29 March 2026 and back on 25 October 2026 in Berlin.
func TestTimes(t *testing.T) {
	for what, tt := range map[string]struct {
		schedule, zone, from string
		want                 []string
	}{
		"in UTC":              {"30 2 * * *", "Etc/UTC", "2026-03-28T03:00:00Z", []string{"2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z"}},
		"without a zone":      {"30 2 * * *", "", "2026-03-28T03:00:00Z", []string{"2026-03-29T02:30:00Z"}},
		"in a zone":           {"30 2 * * *", "Asia/Shanghai", "2026-03-28T03:00:00Z", []string{"2026-03-28T18:30:00Z"}},
		"by a name":           {"@daily", "Europe/Berlin", "2026-03-28T03:00:00Z", []string{"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}},
		"a time is left out":  {"30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", []string{"2026-03-30T00:30:00Z"}},
		"a time comes twice":  {"30 2 * * *", "Europe/Berlin", "2026-10-24T03:00:00Z", []string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"an hour is left out": {"0 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z"}},
		"an hour comes twice": {"0 * * * *", "Europe/Berlin", "2026-10-24T23:59:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T01:00:00Z", "2026-10-25T02:00:00Z"}},
		"some hours, one of which comes twice": {"0 */2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z",
			[]string{"2026-10-25T00:00:00Z", "2026-10-25T03:00:00Z"}},
		"the last moment of an hour that comes twice": {"59 2 * * *", "Europe/Berlin", "2026-10-24T22:00:00Z",
			[]string{"2026-10-25T00:59:00Z", "2026-10-26T01:59:00Z"}},
		"the first moment after an hour that came twice": {"0 3 * * *", "Europe/Berlin", "2026-10-24T03:00:00Z",
			[]string{"2026-10-25T02:00:00Z"}},
		"half an hour comes twice": {"45 1 * * *", "Australia/Lord_Howe", "2026-04-04T00:00:00Z",
			[]string{"2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"}},
		"a leap day": {"0 0 29 2 *", "Etc/UTC", "2026-03-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(what, func(t *testing.T) {
			times, moment := times1(t, tt.schedule, tt.zone, 0), at(t, tt.from)
			for i, want := range tt.want {
				if moment = times.next(moment); !moment.Equal(at(t, want)) {
					t.Fatalf("time %d is %s, want %s", i, moment.UTC().Format(time.RFC3339), want)
				}
			}
		})
	}
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
			next := times.next(now)
			if !next.After(now) || times.start(next).Before(next) || !times.start(next).Before(times.next(next)) {
				t.Fatalf("%s: %s, then %s, which begins at %s", what, now, next, times.start(next))
			}
			want, now = next, next
		}
		now = now.Add(time.Duration(random.IntN(60)) * time.Second)
		if last := times.next(want); !want.IsZero() && !last.After(now) {
			want = last
		}
		if got := times.latest(after, now); !got.Equal(want) {
			t.Fatalf("%s: after %s, the latest until %s is %s, want %s", what, after, now, got, want)
		}
		due, upcoming := times.due(after, now), times.upcoming(after, now)
		if !upcoming.After(now) || !due.IsZero() && (times.start(due).After(now) || !due.After(after)) {
			t.Errorf("%s: at %s, due is %s, which begins at %s; the next at %s", what, now, due, times.start(due), upcoming)
		}
		first := now
		for first = times.next(first.Add(-2 * time.Hour)); !first.After(after) || !times.start(first).After(now); {
			first = times.next(first)
		}
		if !upcoming.Equal(times.start(first)) {
			t.Errorf("%s: at %s, the next begins at %s, and %s at %s", what, now, upcoming, first, times.start(first))
		}
		if between := times.latest(due, now); !due.IsZero() && !between.IsZero() && !times.start(between).After(now) {
			t.Errorf("%s: at %s, due is %s, and not %s", what, now, due, between)
		}
	}
}

// What was missed in years is found in no time, and the share of the jitter is the same for whoever asks.
func TestManyWereMissed(t *testing.T) {
	now := at(t, "2026-11-23T10:00:30Z")
	times := times1(t, "* * * * *", "Europe/Berlin", time.Hour)
	asked := &counted{Schedule: times.cron}
	times.cron = asked
	minute := now.Truncate(time.Minute)
	if due := times.due(now.AddDate(-30, 0, 0), now); !due.Equal(minute) && !due.Equal(minute.Add(-time.Minute)) {
		t.Errorf("due is %s", due)
	}
	if asked.times > 200 {
		t.Errorf("%d times were looked at", asked.times)
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

// counted counts how often it is asked.
type counted struct {
	cron.Schedule
	times int
}

func (c *counted) Next(after time.Time) time.Time {
	c.times++
	return c.Schedule.Next(after)
}
