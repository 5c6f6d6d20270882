// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A pause of writes is an outage of its sixteenth of the slots alone, and only when the pace does not explain it.
func TestOutages(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(ms int) time.Time { return start.Add(time.Duration(ms) * time.Millisecond) }
	var g gaps
	for _, write := range []struct{ slot, ms int }{{0, 0}, {5000, 10}, {0, 200}, {5000, 400}, {0, 2500}, {5000, 600}, {0, 2400}} {
		g.acknowledged(write.slot, at(write.ms))
	}
	want := []outage{{From: at(10), To: at(400), Sixteenth: 4}, {From: at(200), To: at(2500), Sixteenth: 0}}
	if diff := cmp.Diff(want, g.outages); diff != "" {
		t.Errorf("outages (-want +got):\n%s", diff)
	}
	if g.most[0] != 2300*time.Millisecond || g.most[4] != 390*time.Millisecond {
		t.Errorf("longest gaps %v and %v", g.most[0], g.most[4])
	}
}
