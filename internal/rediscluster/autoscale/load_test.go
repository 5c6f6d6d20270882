// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"fmt"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// seen is a cluster of three masters that have counted so many commands; the process of each has run for that long.
func seen(counted, ran float64) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Formed: true}
	for shard, part := range slots.All().Split(3) {
		var values stats.Values
		for i := range values {
			values[i] = stats.Unknown
		}
		values[uptime], values[commands], values[traffic[0]], values[traffic[1]] = ran, counted*float64(shard+1), counted, 9*counted
		values[replicated[0]], values[replicated[1]] = 0, 7*counted // which clients do not see
		s.Instances = append(s.Instances, snapshot.Instance{Name: fmt.Sprint("c-", shard, "-0"), Shard: shard, MemoryLimit: 4000,
			Redis: &snapshot.Redis{NodeID: fmt.Sprint(shard), Master: true, Slots: part, UsedMemory: 1500, Stats: values}})
	}
	return s
}

// Rates are known from the second look on, and only of a process that was seen at the first.
func TestMeter(t *testing.T) {
	with := func(change func(*snapshot.Snapshot)) *snapshot.Snapshot {
		s := seen(700, 160)
		change(s)
		return s
	}
	silent := with(func(s *snapshot.Snapshot) { s.Instances[2].Redis.Stats = stats.Read(nil) })
	for name, tt := range map[string]struct {
		second *snapshot.Snapshot
		after  time.Duration
		rates  bool
		loads  int
	}{
		"a minute later":                 {seen(700, 160), time.Minute, true, 3},
		"another process":                {seen(700, 60), time.Minute, false, 3},
		"another one that ran longer":    {seen(700, 130), time.Minute, false, 3},
		"a counter that was reset":       {seen(50, 160), time.Minute, false, 3},
		"too long ago":                   {seen(700, 160), time.Hour, false, 3},
		"a clock that was set back":      {seen(700, 160), -time.Minute, false, 3},
		"at once: nothing is known yet":  {seen(700, 101), time.Second, false, 3},
		"an instance that is not known":  {with(func(s *snapshot.Snapshot) { s.Instances[1].Redis = nil }), time.Minute, false, 0},
		"slots are moving":               {with(func(s *snapshot.Snapshot) { s.Goal = &snapshot.Goal{} }), time.Minute, false, 0},
		"a cluster that has not formed":  {with(func(s *snapshot.Snapshot) { s.Formed = false }), time.Minute, false, 0},
		"a server that tells no figures": {silent, time.Minute, false, 3},
	} {
		t.Run(name, func(t *testing.T) {
			var m Meter
			first := m.Read(seen(100, 100), began)
			if len(first) != 3 || first[1].Operations >= 0 || first[0].Memory != 1500 || first[0].Room != 3000 {
				t.Fatalf("first: %+v", first)
			}
			loads := m.Read(tt.second, began.Add(tt.after))
			if len(loads) != tt.loads {
				t.Fatalf("%+v", loads)
			}
			if tt.loads == 0 {
				return
			}
			if known := loads[2].Operations >= 0; known != tt.rates || known && (loads[2].Operations != 30 || loads[2].Network != 30) {
				t.Errorf("%+v", loads[2])
			}
			if again := m.Read(tt.second, began.Add(tt.after+time.Second)); tt.rates && again[2] != loads[2] {
				t.Errorf("a second later: %+v", again[2])
			}
		})
	}
}
