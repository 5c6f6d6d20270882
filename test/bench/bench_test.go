// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
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

// The outage that a kill was the cause of is the one in the slots of its shard that began before it and ended after it.
func TestKillsAreMatchedWithOutages(t *testing.T) {
	start := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	at := func(seconds float64) time.Time { return start.Add(time.Duration(seconds * float64(time.Second))) }
	k := killed{
		Kills: []kill{{At: at(10), From: 0, To: 5460}, {At: at(30), From: 5461, To: 10922}, {At: at(50), From: 0, To: 5460}},
		Plain: application.LoadResult{Outages: []application.Outage{{Sixteenth: 1, From: at(9.9), To: at(14)}}},
		Probe: application.LoadResult{Outages: []application.Outage{
			{Sixteenth: 0, From: at(9.9), To: at(12.5)}, {Sixteenth: 1, From: at(9.9), To: at(13)}, {Sixteenth: 2, From: at(9.9), To: at(13)},
			{Sixteenth: 3, From: at(10.05), To: at(13)}, {Sixteenth: 4, From: at(9.9), To: at(13)},
			{Sixteenth: 5, From: at(9.9), To: at(40)}, // two shards have part of it
			{Sixteenth: 6, From: at(29.9), To: at(33)}, {Sixteenth: 7, From: at(29.9), To: at(33)}, {Sixteenth: 8, From: at(29.9), To: at(33)},
			{Sixteenth: 9, From: at(29.9), To: at(33)},
		}},
	}
	k.match()
	var got [][2]float64
	for _, one := range k.Kills {
		got = append(got, [2]float64{one.Shard, one.Client})
	}
	if diff := cmp.Diff([][2]float64{{3, 4}, {3, 0}, {0, 0}}, got); diff != "" {
		t.Errorf("seconds without the shard, and of the client (-want +got):\n%s", diff)
	}
	// The last one made no outage: it says nothing of how long one lasts.
	if times, count := k.times(func(k kill) float64 { return k.Shard }), k.count(); len(times) != 2 || count != "3 (1 without an outage)" {
		t.Errorf("times %v of %s", times, count)
	}
}

func TestReportOfRolloutsAndKills(t *testing.T) {
	f := figures{Engine: engines[1],
		Rolls: []roll{{Seconds: 50, Load: application.LoadResult{Writes: 100, Reads: 100, LongestStallMS: 90, GapsMS: []float64{10, 120}}},
			{Seconds: 40, Load: application.LoadResult{Writes: 100, Failed: 1, LongestStallMS: 80, GapsMS: []float64{70, 60}}}},
		Kills: &killed{Kills: []kill{{Shard: 2.5, Client: 3}}, Plain: application.LoadResult{Writes: 7, Lost: 2},
			Replicated: application.LoadResult{Writes: 5}},
	}
	text := report{Engines: []figures{f}}.markdown()
	for _, want := range []string{
		"| Redis 8.0.6 | 2 | p50 50.0 s, p99 50.0 s, max 50.0 s | p50 120 ms, p99 120 ms, max 120 ms | p50 90 ms, p99 90 ms, max 90 ms | p50 0 ms, p99 0 ms, max 0 ms | 300 | 1 | 0 |",
		"| Redis 8.0.6 | 1 | p50 2.50 s, p99 2.50 s, max 2.50 s | p50 3.00 s, p99 3.00 s, max 3.00 s | the master | 7 | 0 | 2 |",
		"| all replicas (WAIT) | 5 | 0 | 0 |",
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
	if _, err := chooseMeasures("rollouts,naps"); err == nil || !strings.Contains(err.Error(), `"naps"`) {
		t.Errorf("error %v", err)
	}
}

func TestPeak(t *testing.T) {
	got, err := peak("Name:\tmanager\nVmPeak:\t  999999 kB\nVmHWM:\t    3000 kB\n")
	if err != nil || got != 3.072 {
		t.Errorf("%v MB (%v), want 3.072", got, err)
	}
	if _, err := peak("Name:\tmanager\n"); err == nil {
		t.Error("a status without memory is read without an error")
	}
}

// The huge neighbour is one that admission lets pass, or it would prove nothing.
func TestHugeIsAdmitted(t *testing.T) {
	cluster := huge("n")
	admission.Default(cluster)
	if problems := admission.Validate(cluster, admission.Options{}); len(problems) > 0 || len(cluster.Spec.Pod[0].Tolerations) < 10 {
		t.Errorf("%d tolerations; refused: %v", len(cluster.Spec.Pod[0].Tolerations), problems)
	}
}
