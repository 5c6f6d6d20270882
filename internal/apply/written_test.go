// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"
	"time"
)

// A cache that lags behind our own write is told by the version, for a while only, and is looked at less and less often.
func TestBehind(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	written := Written{Version: "100", At: start}
	for _, tc := range []struct {
		version string
		after   time.Duration
		behind  bool
		again   time.Duration
	}{
		{"99", 0, true, soonest},
		{"99", time.Second, true, time.Second / 5},
		{"99", Lag - 1, true, (Lag - 1) / 5},
		{"99", Lag, false, 0}, // etcd was restored
		{"100", 0, false, 0},
		{"101", 0, false, 0},
		{"not a number", 0, false, 0},
	} {
		if again, behind := written.Behind(tc.version, start.Add(tc.after)); behind != tc.behind || again != tc.again {
			t.Errorf("version %s after %s: behind %v, again in %s; want %v, %s", tc.version, tc.after, behind, again, tc.behind, tc.again)
		}
	}
	if _, behind := (Written{}).Behind("99", start); behind {
		t.Error("behind before anything was written")
	}
	looks := 0
	for at := start; ; looks++ {
		again, behind := written.Behind("99", at)
		if !behind {
			break
		}
		at = at.Add(again)
	}
	if looks > 40 {
		t.Errorf("it is looked at %d times until the API server's word counts", looks)
	}
}
