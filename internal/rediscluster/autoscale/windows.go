// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"cmp"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/admission/crontab"
	"middleware.hc.cn/operator/internal/times"
)

// Bounds are how many shards there may be at a time.
type Bounds struct {
	Least, Most int32
	// Window is the name of the window that they are of, the most telling one of several; empty: they are those of the spec.
	Window string
}

// BoundsOf are the bounds at a time, by a spec that admission has checked, and a time before which they do not change; zero: they never do.
// Nothing is remembered: whatever the clock did before, they are the same.
func BoundsOf(a *v1alpha1.Autoscale, now time.Time) (b Bounds, until time.Time) {
	var least, most Bounds
	for i := range a.Windows {
		w := &a.Windows[i]
		open, changes, known := stateOf(w, now)
		if !known {
			continue
		}
		if until.IsZero() || !changes.IsZero() && changes.Before(until) {
			until = changes
		}
		if n := w.MinShards; open && n != nil && *n > least.Least {
			least = Bounds{Least: *n, Window: w.Name}
		}
		if n := w.MaxShards; open && n != nil && *n > most.Most {
			most = Bounds{Most: *n, Window: w.Name}
		}
	}
	b = Bounds{Least: cmp.Or(least.Least, a.MinShards), Most: cmp.Or(most.Most, a.MaxShards), Window: cmp.Or(least.Window, most.Window)}
	b.Most = max(b.Most, b.Least)
	return b, until
}

// stateOf reports whether a window is open, and a time before which that does not change; zero: it never does. One that has begun several
// times without an end is looked at again when the first of those would end. known is false of one that admission refuses.
func stateOf(w *v1alpha1.AutoscaleWindow, now time.Time) (open bool, changes time.Time, known bool) {
	zone, err := crontab.ParseZone(w.TimeZone)
	if err != nil {
		return false, time.Time{}, false
	}
	starts, err := times.Of(w.Start, zone)
	if err != nil {
		return false, time.Time{}, false
	}
	duration := w.Duration.Duration
	switch start := starts.Keeping().Next(now.Add(-duration)); {
	case start.IsZero():
		return false, time.Time{}, true
	case start.After(now):
		return false, start, true
	default:
		return true, start.Add(duration), true
	}
}
