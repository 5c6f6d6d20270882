// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package times

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"middleware.hc.cn/operator/internal/admission/crontab"
)

func of(t *testing.T, line, name string) Times {
	t.Helper()
	zone, err := crontab.ParseZone(name)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Of(line, zone)
	if err != nil {
		t.Fatal(err)
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
		"in UTC":             {"30 2 * * *", "Etc/UTC", "2026-03-28T03:00:00Z", []string{"2026-03-29T02:30:00Z", "2026-03-30T02:30:00Z"}},
		"without a zone":     {"30 2 * * *", "", "2026-03-28T03:00:00Z", []string{"2026-03-29T02:30:00Z"}},
		"in a zone":          {"30 2 * * *", "Asia/Shanghai", "2026-03-28T03:00:00Z", []string{"2026-03-28T18:30:00Z"}},
		"by a name":          {"@daily", "Europe/Berlin", "2026-03-28T03:00:00Z", []string{"2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"}},
		"a time is left out": {"30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", []string{"2026-03-30T00:30:00Z"}},
		"a time comes twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T03:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
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
			times, moment := of(t, tt.schedule, tt.zone), at(t, tt.from)
			for i, want := range tt.want {
				if moment = times.Next(moment); !moment.Equal(at(t, want)) {
					t.Fatalf("time %d is %s, want %s", i, moment.UTC().Format(time.RFC3339), want)
				}
			}
		})
	}
}

// A time that the clocks leave out can be kept: it is when they are set forward. Nothing else is another time by that.
func TestKeeping(t *testing.T) {
	for what, tt := range map[string]struct {
		schedule, zone, from string
		want                 []string
	}{
		"a time is left out": {"30 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z", []string{"2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"}},
		"several are": {"*/20 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-30T00:20:00Z"}},
		"the first moment that is": {"0 2 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z"}},
		"the first moment after": {"0 3 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2026-03-30T01:00:00Z"}},
		"the last moment before": {"59 1 * * *", "Europe/Berlin", "2026-03-28T03:00:00Z",
			[]string{"2026-03-29T00:59:00Z", "2026-03-29T23:59:00Z"}},
		"only ever one that is": {"30 2 29 3 *", "Europe/Berlin", "2026-01-01T00:00:00Z",
			[]string{"2026-03-29T01:00:00Z", "2027-03-29T00:30:00Z"}},
		"every hour": {"30 * * * *", "Europe/Berlin", "2026-03-29T00:00:00Z",
			[]string{"2026-03-29T00:30:00Z", "2026-03-29T01:30:00Z"}},
		"a time comes twice": {"30 2 * * *", "Europe/Berlin", "2026-10-24T03:00:00Z",
			[]string{"2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"}},
		"midnight is left out": {"0 0 * * *", "Africa/Cairo", "2026-04-23T03:00:00Z",
			[]string{"2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"}},
		"a leap day, and no clocks": {"0 0 29 2 *", "Etc/UTC", "2026-03-01T00:00:00Z", []string{"2028-02-29T00:00:00Z"}},
	} {
		t.Run(what, func(t *testing.T) {
			times, moment := of(t, tt.schedule, tt.zone).Keeping(), at(t, tt.from)
			for i, want := range tt.want {
				if moment = times.Next(moment); !moment.Equal(at(t, want)) {
					t.Fatalf("time %d is %s, want %s", i, moment.UTC().Format(time.RFC3339), want)
				}
			}
		})
	}
}

// The latest time is the last of those that come one after the other.
func TestLatest(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 7))
	zones := []string{"Etc/UTC", "Europe/Berlin", "America/Sao_Paulo", "Africa/Cairo", "Asia/Beirut", "Australia/Lord_Howe"}
	lines := []string{"* * * * *", "@daily", "*/7 2-3 * * *", "59 23 31 * *", "30 0,2 * * 0"}
	for range 300 {
		line, zone := lines[random.IntN(len(lines))], zones[random.IntN(len(zones))]
		times := of(t, line, zone)
		if random.IntN(2) == 0 {
			times = times.Keeping()
		}
		after := time.Unix(1735689600+random.Int64N(63e6), 0)
		want, now := time.Time{}, after
		for steps := random.IntN(20); steps > 0; steps-- {
			next := times.Next(now)
			if !next.After(now) {
				t.Fatalf("%q in %s: after %s comes %s", line, zone, now, next)
			}
			want, now = next, next
		}
		if got := times.Latest(after, now); !got.Equal(want) {
			t.Fatalf("%q in %s: after %s, the latest until %s is %s, want %s", line, zone, after, now, got, want)
		}
	}
}

// What came in years is found in no time.
func TestManyTimes(t *testing.T) {
	now := at(t, "2026-11-23T10:00:30Z")
	times := of(t, "* * * * *", "Europe/Berlin")
	asked := &counted{Schedule: times.cron}
	times.cron = asked
	if got := times.Latest(now.AddDate(-30, 0, 0), now); !got.Equal(now.Truncate(time.Minute)) || asked.times > 100 {
		t.Errorf("%s, after %d times", got, asked.times)
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
