// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/test/application"
)

func TestSlotsOfAndRanges(t *testing.T) {
	const table = `e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 10.0.0.1:6379@16379 myself,master - 0 0 1 connected 0-3 7 9-10 [93-<-67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1]
67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 10.0.0.2:6379@16379 master - 0 1426238316232 2 connected 4-6
`
	list := slotsOf(table, "e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca")
	if diff := cmp.Diff([]int{0, 1, 2, 3, 7, 9, 10}, list); diff != "" {
		t.Errorf("slots (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"0", "3", "7", "7", "9", "10"}, ranges(list)); diff != "" {
		t.Errorf("ranges (-want +got):\n%s", diff)
	}
}

func TestReportComparesLikeWithLike(t *testing.T) {
	loaded := &application.LoadResult{LongestStallMS: 42, ClientStallMS: 7, Writes: 4000, Reads: 1000, Seconds: 5}
	f := figures{Engine: engines[1], EmptyOut: []float64{9, 7, 8}, Moves: []moved{
		{Way: "operator", To: 4, Slots: 4096, Keys: 3000, Migration: 1, Whole: 5},
		{Way: "redis-cli", To: 3, Slots: 4096, Keys: 3000, Migration: 10},
		{Way: "redis-cli", To: 4, Slots: 4096, Keys: 3000, Migration: 4},
		{Way: "operator", To: 4, Slots: 4096, Keys: 3000, Migration: 2, Load: loaded},
	}}
	text := report{Engines: []figures{f}}.markdown()
	for _, want := range []string{
		"| Redis 8.0.6 | median of 3 runs (longest) | 8.0 s (9.0 s) | – |",
		"| Redis 8.0.6 | 3 → 4 | operator | 4096 | 3000 | 1.00 s | 4096 | 3000 | 5.0 s | 4.00 × | no load | – | – | – |",
		"| 1500 | 0.0 s | – | 42 ms (7 ms) | 1000 | 0 | 0 |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
}

func TestChooseRefusesUnknownEngines(t *testing.T) {
	if _, err := choose("redis-8.0,redis-9"); err == nil || !strings.Contains(err.Error(), `"redis-9"`) {
		t.Errorf("error %v", err)
	}
}
