// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Whatever the load does, what is told of it changes once in five minutes at most; what is to be done is never held back by that.
func TestTold(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 76))
	var told Told
	before, changes := Outcome{}, 0
	for minute := range 60 {
		o := Outcome{Known: true, Wanted: 3 + random.IntN(5), Measure: Memory, Shard: random.IntN(9), To: minute,
			Outgrown: &Outgrown{Shards: minute}}
		var got Outcome
		told, got = told.Tell(began.Add(time.Duration(minute)*time.Minute), o, 3)
		if got.To != minute || got.Outgrown.Shards != minute {
			t.Fatalf("%+v", got)
		}
		if got.To, got.Outgrown = 0, nil; got != before {
			before, changes = got, changes+1
		}
	}
	if changes < 6 || changes > 12 {
		t.Errorf("%d changes in an hour", changes)
	}
}

func TestToldAtOnce(t *testing.T) {
	for name, tt := range map[string]struct {
		after  time.Duration
		o      Outcome
		shards int
		told   bool
	}{
		"what wobbles":              {time.Minute, Outcome{Known: true, Wanted: 5}, 3, false},
		"what has not for long":     {5 * time.Minute, Outcome{Known: true, Wanted: 5}, 3, true},
		"a clock that was set back": {-time.Minute, Outcome{Known: true, Wanted: 5}, 3, true},
		"another number of shards":  {time.Minute, Outcome{Known: true, Wanted: 5}, 4, true},
		"what is not known":         {time.Minute, Outcome{Reason: "why"}, 3, true},
	} {
		t.Run(name, func(t *testing.T) {
			told, _ := Told{}.Tell(began, Outcome{Known: true, Wanted: 4}, 3)
			if _, got := told.Tell(began.Add(tt.after), tt.o, tt.shards); (got == tt.o) != tt.told {
				t.Errorf("%+v", got)
			}
		})
	}
}
