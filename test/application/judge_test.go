// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func TestUnnoticed(t *testing.T) {
	const none, classic, atomic = v1alpha1.MigrationMethod(""), v1alpha1.MigrationClassic, v1alpha1.MigrationAtomic
	for name, tt := range map[string]struct {
		change func(*LoadResult)
		moved  v1alpha1.MigrationMethod
		failed string // what the only failure begins with; empty for none
		open   string
	}{
		"nothing happened":  {change: func(*LoadResult) {}},
		"it did nothing":    {change: func(r *LoadResult) { r.Pairs = 0 }, failed: "the load did nothing"},
		"a command failed":  {change: func(r *LoadResult) { r.Failed, r.FailedOtherwise = 1, 1 }, failed: "1 commands failed"},
		"an attempt failed": {change: func(r *LoadResult) { r.FailedAttempts = 1 }, failed: "0 commands failed (1 attempts)"},
		"a write was lost":  {change: func(r *LoadResult) { r.Lost = 1 }, failed: "1 acknowledged writes lost"},
		"a read was old":    {change: func(r *LoadResult) { r.Stale = 1 }, failed: "0 acknowledged writes lost, 1 stale"},
		"a value is nobody's": {change: func(r *LoadResult) { r.Corrupt = 1 },
			failed: "0 acknowledged writes lost, 0 stale reads, 1 corrupt"},
		"a pair was torn": {
			change: func(r *LoadResult) { r.Torn = 1 }, failed: "0 acknowledged writes lost, 0 stale reads, 0 corrupt, 1 torn"},
		"a key was not read back": {change: func(r *LoadResult) { r.Unread = 1 },
			failed: "0 acknowledged writes lost, 0 stale reads, 0 corrupt, 0 torn, 1 unread"},
		"few were stalled":  {change: func(r *LoadResult) { r.Stalled = 42 }},
		"many were stalled": {change: func(r *LoadResult) { r.Stalled = 43 }, open: "43 of 42000 commands timed out"},
		"it failed, and many were stalled": {change: func(r *LoadResult) { r.Stalled, r.Failed = 43, 1 }, failed: "1 commands failed",
			open: "43 of 42000"},
		"it timed out on a machine that ran": {change: func(r *LoadResult) { r.Failed, r.StallSeconds = 1, 10 }, failed: "1 commands failed"},
		"it timed out on a machine that stalled": {change: func(r *LoadResult) { r.Failed, r.FailedAttempts, r.StallSeconds = 1, 2, 10.1 },
			open: "1 commands timed out (2 attempts), and this machine stalled for 10.1 of 50.0 s"},
		"too many timed out on a machine that stalled": {change: func(r *LoadResult) { r.FailedAttempts, r.StallSeconds = 43, 20 },
			failed: "0 commands failed (43 attempts)"},
		"it was refused on a machine that stalled": {change: func(r *LoadResult) { r.Failed, r.FailedOtherwise, r.StallSeconds = 2, 1, 20 },
			failed: "2 commands failed"},
		"it stalled for a while": {change: func(r *LoadResult) { r.StallSeconds = 37.5 }},
		"it stalled for long": {change: func(r *LoadResult) { r.StallSeconds = 37.6 },
			open: "this machine stalled for 37.6 of 50.0 s"},
		"the client closed the connection a few times": {change: func(r *LoadResult) { r.ClosedByClient = 21 }},
		"the client closed the connection often": {change: func(r *LoadResult) { r.ClosedByClient = 22 },
			failed: "the client closed the connections of 22 of 42000"},
		"tried again, key by key": {change: func(r *LoadResult) { r.TryAgain, r.PairsTriedAgain = 20, 20 }, moved: classic},
		"too often tried again": {change: func(r *LoadResult) { r.TryAgain = 21 }, moved: classic,
			failed: "21 answers to 2000 commands"},
		"tried again, and slots moved at once": {change: func(r *LoadResult) { r.TryAgain = 1 }, moved: atomic,
			failed: "1 answers were TRYAGAIN although no slot moved"},
		"tried again, and slots stayed": {change: func(r *LoadResult) { r.TryAgain = 1 }, moved: none,
			failed: "1 answers were TRYAGAIN although no slot moved"},
		"stalled where slots moved key by key": {change: func(r *LoadResult) { r.Stalled = 43 }, moved: classic, open: "43 of 42000"},
		"nothing was done as all of it stalled": {change: func(r *LoadResult) { *r = LoadResult{Stalled: 9, Seconds: 50} },
			failed: "the load did nothing", open: "9 of 0"},
	} {
		t.Run(name, func(t *testing.T) {
			r := LoadResult{Seconds: 50, Writes: 20000, Reads: 20000, Pairs: 1000, Arrivals: 200}
			tt.change(&r)
			failures, open := r.Unnoticed(tt.moved)
			if (tt.failed != "") != (len(failures) == 1) || !strings.HasPrefix(strings.Join(failures, "; "), tt.failed) {
				t.Errorf("failures %q, want %q", failures, tt.failed)
			}
			if (tt.open != "") != (open != "") || !strings.HasPrefix(open, tt.open) {
				t.Errorf("open is %q, want %q", open, tt.open)
			}
		})
	}
}
