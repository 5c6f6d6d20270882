// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func window(name, start string, d time.Duration, least, most int32) v1alpha1.AutoscaleWindow {
	w := v1alpha1.AutoscaleWindow{Name: name, Start: start, TimeZone: "Etc/UTC", Duration: metav1.Duration{Duration: d}}
	if least > 0 {
		w.MinShards = ptr.To(least)
	}
	if most > 0 {
		w.MaxShards = ptr.To(most)
	}
	return w
}

func moment(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// The spec allows 3 to 9 shards; the 26th of November 2026 is a Thursday.
func TestBoundsOf(t *testing.T) {
	day := window("day", "0 8 * * 1-5", 10*time.Hour, 6, 0)
	in := func(w v1alpha1.AutoscaleWindow, zone string) v1alpha1.AutoscaleWindow {
		w.TimeZone = zone
		return w
	}
	for name, tt := range map[string]struct {
		windows []v1alpha1.AutoscaleWindow
		now     string
		want    Bounds
		until   string // empty: they never change
	}{
		"no window":       {nil, "2026-11-26T12:00:00Z", Bounds{3, 9, ""}, ""},
		"before":          {[]v1alpha1.AutoscaleWindow{day}, "2026-11-26T07:59:59Z", Bounds{3, 9, ""}, "2026-11-26T08:00:00Z"},
		"it opens":        {[]v1alpha1.AutoscaleWindow{day}, "2026-11-26T08:00:00Z", Bounds{6, 9, "day"}, "2026-11-26T18:00:00Z"},
		"the last moment": {[]v1alpha1.AutoscaleWindow{day}, "2026-11-26T17:59:59.9Z", Bounds{6, 9, "day"}, "2026-11-26T18:00:00Z"},
		"it is over":      {[]v1alpha1.AutoscaleWindow{day}, "2026-11-26T18:00:00Z", Bounds{3, 9, ""}, "2026-11-27T08:00:00Z"},
		"a weekend":       {[]v1alpha1.AutoscaleWindow{day}, "2026-11-28T12:00:00Z", Bounds{3, 9, ""}, "2026-11-30T08:00:00Z"},
		"in Shanghai": {[]v1alpha1.AutoscaleWindow{in(day, "Asia/Shanghai")}, "2026-11-26T00:00:00Z", Bounds{6, 9, "day"},
			"2026-11-26T10:00:00Z"},
		"most only": {[]v1alpha1.AutoscaleWindow{window("night", "0 0 * * *", 6*time.Hour, 0, 4)}, "2026-11-26T01:00:00Z", Bounds{3,
			4, "night"}, "2026-11-26T06:00:00Z"},
		"least above the most": {[]v1alpha1.AutoscaleWindow{window("sale", "0 0 * * *", 6*time.Hour, 20, 0)}, "2026-11-26T01:00:00Z",
			Bounds{20, 20, "sale"}, "2026-11-26T06:00:00Z"},
		"fewer than the spec's": {[]v1alpha1.AutoscaleWindow{window("night", "0 0 * * *", 6*time.Hour, 3, 3)}, "2026-11-26T01:00:00Z",
			Bounds{3, 3, "night"},
			"2026-11-26T06:00:00Z"},
		"several": {[]v1alpha1.AutoscaleWindow{window("a", "0 0 * * *", 12*time.Hour, 4, 7), window("b", "0 1 * * *", 2*time.Hour, 5, 5),
			window("c", "30 1 * * *", time.Hour, 0, 12), window("d", "0 5 * * *", time.Hour, 8, 0)}, "2026-11-26T01:40:00Z", Bounds{5, 12, "b"},
			"2026-11-26T02:30:00Z"},
		"the largest least above the largest most": {[]v1alpha1.AutoscaleWindow{window("a", "0 0 * * *", 12*time.Hour, 3, 4),
			window("b", "0 0 * * *", 12*time.Hour, 8, 0)}, "2026-11-26T01:00:00Z", Bounds{8, 8, "b"}, "2026-11-26T12:00:00Z"},
		"every minute": {[]v1alpha1.AutoscaleWindow{window("always", "* * * * *", 7*24*time.Hour, 5, 0)}, "2026-11-26T01:00:30Z",
			Bounds{5, 9, "always"},
			"2026-11-26T01:01:00Z"},
		"it begins again before it is over": {[]v1alpha1.AutoscaleWindow{window("hourly", "0 * * * *", 90*time.Minute, 5, 0)},
			"2026-11-26T01:45:00Z",
			Bounds{5, 9, "hourly"}, "2026-11-26T02:30:00Z"},
		"a start that never comes": {[]v1alpha1.AutoscaleWindow{window("never", "0 0 30 2 *", time.Hour, 5, 0), day}, "2026-11-26T12:00:00Z",
			Bounds{6, 9, "day"}, "2026-11-26T18:00:00Z"},
		"no time zone": {[]v1alpha1.AutoscaleWindow{in(day, "Mars/Olympus")}, "2026-11-26T12:00:00Z", Bounds{3, 9, ""}, ""},
		"a leap day": {[]v1alpha1.AutoscaleWindow{window("leap", "0 0 29 2 *", time.Hour, 5, 0)}, "2026-11-26T12:00:00Z", Bounds{3, 9,
			""}, "2028-02-29T00:00:00Z"},
		"a start that the clocks leave out": {[]v1alpha1.AutoscaleWindow{in(window("early", "30 2 * * *", time.Hour, 5, 0), "Europe/Berlin")},
			"2026-03-29T01:00:00Z", Bounds{5, 9, "early"}, "2026-03-29T02:00:00Z"},
		"a start that comes twice, the first time": {[]v1alpha1.AutoscaleWindow{in(window("early", "30 2 * * *", 30*time.Minute, 5,
			0), "Europe/Berlin")},
			"2026-10-25T00:45:00Z", Bounds{5, 9, "early"}, "2026-10-25T01:00:00Z"},
		"the second time": {[]v1alpha1.AutoscaleWindow{in(window("early", "30 2 * * *", 30*time.Minute, 5, 0), "Europe/Berlin")},
			"2026-10-25T01:45:00Z", Bounds{3, 9, ""}, "2026-10-26T01:30:00Z"},
		"a window over a change of the clocks is as long as ever": {
			[]v1alpha1.AutoscaleWindow{in(window("night", "0 22 * * *", 8*time.Hour, 5, 0), "Europe/Berlin")}, "2026-03-29T04:59:00Z",
			Bounds{5, 9, "night"}, "2026-03-29T05:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			a := &v1alpha1.Autoscale{MinShards: 3, MaxShards: 9, Windows: tt.windows}
			var want time.Time
			if tt.until != "" {
				want = moment(t, tt.until)
			}
			if got, until := BoundsOf(a, moment(t, tt.now)); got != tt.want || !until.Equal(want) {
				t.Errorf("%+v until %s, want %+v until %s", got, until.UTC(), tt.want, want)
			}
		})
	}
}

// Whatever the windows are, bounds do not change before the time that is told, and what is at most is never below what is at least.
func TestBoundsChangeWhenTheySay(t *testing.T) {
	starts := []string{"*/5 * * * *", "0 8 * * 1-5", "30 2 * * *", "15,45 22 * * 6", "0 0 1 * *"}
	zones := []string{"Etc/UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe"}
	for seed := range 40 {
		a := &v1alpha1.Autoscale{MinShards: 4, MaxShards: 9}
		for i := range seed % 4 {
			w := window("w", starts[(seed+i)%len(starts)], time.Duration(10+37*((seed+3*i)%40))*time.Minute, int32(3+(seed+5*i)%9), 0)
			if w.TimeZone = zones[(seed+i)%len(zones)]; (seed+i)%3 == 0 {
				w.MaxShards = ptr.To(*w.MinShards + 1)
			}
			a.Windows = append(a.Windows, w)
		}
		now := time.Date(2026, 3, 27, seed, 7, 0, 0, time.UTC)
		bounds, until := BoundsOf(a, now)
		for range 3 * 24 * 6 {
			now = now.Add(10 * time.Minute)
			next, then := BoundsOf(a, now)
			if next.Most < next.Least || !then.IsZero() && !then.After(now) {
				t.Fatalf("seed %d, %s: %+v until %s", seed, now, next, then)
			}
			if next != bounds && (until.IsZero() || now.Before(until)) {
				t.Fatalf("seed %d: %+v became %+v at %s, not before %s", seed, bounds, next, now, until)
			}
			bounds, until = next, then
		}
	}
}

// More shards than are allowed go as they do when the load asks for fewer: after the stabilization, no more than half at a time, and only
// as far as their data fits.
func TestMoreThanAllowed(t *testing.T) {
	for name, tt := range map[string]struct {
		memory, rate float64
		most         int
		after        time.Duration
		want         int
	}{
		"not at once":       {2, 9000, 6, 29 * time.Minute, 12},
		"after a time":      {2, 9000, 6, 32 * time.Minute, 6},
		"half of them stay": {2, 9000, 4, 32 * time.Minute, 6},
		"and go later":      {2, 9000, 4, 64 * time.Minute, 4},
		"data has to fit":   {7.6, 100, 6, 5 * time.Hour, 9},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 12, config(map[Measure]float64{Operations: 1000}))
			w.even(tt.memory, tt.rate)
			w.run(time.Minute)
			w.c.Most = 12 // the helper checks against what is allowed for a step
			w.over(tt.most, tt.after)
			if w.shards != tt.want {
				t.Errorf("%d shards, want %d: %v, %+v", w.shards, tt.want, w.history, w.last)
			}
		})
	}
}

// over looks for a time at a cluster that may have so many shards from now on.
func (w *world) over(most int, d time.Duration) {
	w.t.Helper()
	allowed := w.c
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(time.Minute)
		allowed.Most = most
		w.track, w.last = w.track.Decide(w.now, allowed, w.loads(), w.shards, true, w.past)
		if to := w.last.To; to != 0 {
			if to >= w.shards || 2*to < w.shards {
				w.t.Fatalf("from %d to %d shards", w.shards, to)
			}
			w.past.ScaledAt = w.now
			w.move(to)
			w.history = append(w.history, to)
		}
	}
}

// In a dry run fewer shards than there are to be at least are told, with the reason.
func TestFewerThanAllowed(t *testing.T) {
	w := newWorld(t, 3, Config{Least: 5, Most: 9, Targets: map[Measure]float64{Operations: 1000}, Out: time.Minute})
	w.even(0.1, 100)
	_, o := Track{}.Decide(w.now, w.c, w.loads(), 3, true, Past{})
	if !o.Known || o.Wanted != 5 || o.Limited || o.Reason != "there are to be 5 shards at least" {
		t.Errorf("%+v", o)
	}
}

func BenchmarkBoundsOf(b *testing.B) {
	a := &v1alpha1.Autoscale{MinShards: 3, MaxShards: 9}
	for range 16 {
		w := window("w", "30 2 * * 1-5", 7*24*time.Hour, 5, 0)
		w.TimeZone = "Europe/Berlin"
		a.Windows = append(a.Windows, w)
	}
	now := time.Date(2026, 3, 29, 1, 15, 0, 0, time.UTC)
	for b.Loop() {
		BoundsOf(a, now)
	}
}
