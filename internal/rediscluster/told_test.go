// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/autoscale"
	"middleware.hc.cn/operator/internal/rediscluster/balance"
	"middleware.hc.cn/operator/internal/rediscluster/status"
)

var toldFirst = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// Whatever the load does, what is told of it changes once in five minutes at most; what is to be done is never held back by that.
func TestTold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 76))
	var scaling told[status.Autoscaling]
	var balancing told[balance.Outcome]
	wasScaling, wasBalance := status.Autoscaling{}, balance.Outcome{}
	scalings, balances := 0, 0
	for minute := range 60 {
		now := toldFirst.Add(time.Duration(minute) * time.Minute)
		a := tellScaling(&scaling, now, status.Autoscaling{Shards: 3, Outcome: autoscale.Outcome{Known: true, Wanted: 3 + random.IntN(5),
			Measure: autoscale.Memory, Shard: random.IntN(9), To: minute, Outgrown: &autoscale.Outgrown{Shards: minute}}})
		b := tellBalance(&balancing, now, balance.Outcome{Known: true, Percent: random.IntN(1000), Goal: make([]slots.Set, minute), Count: minute,
			Bytes: float64(minute)})
		if a.Outcome.To != minute || a.Outcome.Outgrown.Shards != minute || len(b.Goal) != minute || b.Count != minute ||
			b.Bytes != float64(minute) {
			t.Fatalf("%+v, %+v", a, b)
		}
		a.Outcome.To, a.Outcome.Outgrown, b.Goal, b.Count, b.Bytes = 0, nil, nil, 0, 0
		if a != wasScaling {
			wasScaling, scalings = a, scalings+1
		}
		if !cmp.Equal(b, wasBalance) {
			wasBalance, balances = b, balances+1
		}
	}
	if scalings < 6 || scalings > 12 || balances < 6 || balances > 12 {
		t.Errorf("%d and %d changes in an hour", scalings, balances)
	}
}

func TestToldAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		after  time.Duration
		o      autoscale.Outcome
		shards int
		told   bool
	}{
		"what wobbles":              {time.Minute, autoscale.Outcome{Known: true, Wanted: 5}, 3, false},
		"what has not for long":     {5 * time.Minute, autoscale.Outcome{Known: true, Wanted: 5}, 3, true},
		"a clock that was set back": {-time.Minute, autoscale.Outcome{Known: true, Wanted: 5}, 3, true},
		"another number of shards":  {time.Minute, autoscale.Outcome{Known: true, Wanted: 5}, 4, true},
		"what is not known":         {time.Minute, autoscale.Outcome{Reason: "why"}, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			var was told[status.Autoscaling]
			tellScaling(&was, toldFirst, status.Autoscaling{Shards: 3, Outcome: autoscale.Outcome{Known: true, Wanted: 4}})
			got := tellScaling(&was, toldFirst.Add(tt.after), status.Autoscaling{Shards: tt.shards, Outcome: tt.o})
			if (got.Outcome == tt.o) != tt.told {
				t.Errorf("%+v", got)
			}
		})
	}
	var before told[status.Autoscaling]
	tellScaling(&before, toldFirst, status.Autoscaling{Shards: 3})
	opened := status.Autoscaling{Shards: 3, Bounds: autoscale.Bounds{Least: 3, Most: 9, Window: "peak"}}
	if got := tellScaling(&before, toldFirst.Add(time.Second), opened); got != opened {
		t.Errorf("a window that opens: %+v", got)
	}
	var was told[balance.Outcome]
	tellBalance(&was, toldFirst, balance.Outcome{Known: true})
	if got := tellBalance(&was, toldFirst.Add(time.Second), balance.Outcome{Reason: "why"}); got.Known || got.Reason != "why" {
		t.Errorf("what slots bear is not known: %+v", got)
	}
}
