// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// day is a load as it comes to a cluster in a day, in minutes: commands a second, for a time.
var day = []struct {
	what      string
	perSecond float64
	lasts     time.Duration
	shards    int // that there are to be after it
}{
	{"night", 1500, 5 * time.Minute, 3},
	{"growth", 2800, 5 * time.Minute, 3},
	{"more of it", 3700, 8 * time.Minute, 4},
	{"a spike", 9000, 30 * time.Second, 4},
	{"after it", 3700, 5 * time.Minute, 4},
	{"hot keys", 3700, 25 * time.Minute, 4},
	{"noon", 20000, 12 * time.Minute, 5},
	{"decline", 1000, 20 * time.Minute, 3},
}

// A day with autoscale and balance: the load grows, has a spike, gets hot keys, and declines. The number of shards follows without going to
// and fro, slots leave the hot shard, and an application that writes all of the time loses nothing and has no command fail.
func TestDayOfLoad(t *testing.T) {
	eachSeed(t, 1, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, true)
		app := s.formWithKeys()
		s.autoscale(3, 5)
		s.balance(v1alpha1.BalanceMove, 1<<20)
		moved := 0
		for _, part := range day {
			s.world.SetCommandsPerSecond(part.perSecond)
			if part.what == "hot keys" {
				for _, key := range s.skew(1, 40) {
					app.write(key)
				}
			}
			s.serve(app, part.lasts)
			is := s.cluster.Status
			if is.Autoscale == nil || int(is.Autoscale.Shards) != part.shards || is.Migration != nil {
				s.fail("after %s: %+v, %+v, want %d shards", part.what, is.Autoscale, is.Migration, part.shards)
			}
			if !meta.IsStatusConditionTrue(is.Conditions, v1alpha1.ConditionReady) {
				s.fail("after %s it is not Ready", part.what)
			}
			moved = max(moved, len(is.Balance.Moved))
		}
		s.wantHealthy()
		app.wantAll()
		if got := s.steps(); !slices.Equal(got, []int{3, 4, 5, 3}) || moved == 0 {
			s.fail("shards %v, and because of hot keys %d moves", got, moved)
		}
	})
}

// serve lets the operator look once in 20 seconds, and each second while it has something to do. An application writes a key each time, and
// every write is acknowledged.
func (s *simulation) serve(app *application, d time.Duration) {
	s.t.Helper()
	for end := s.world.Now().Add(d); s.world.Now().Before(end); {
		step := s.reconcile()
		if key := fmt.Sprintf("key:%d", app.writes%60); !app.write(key) {
			s.fail("a write of %s failed during %s", key, step.Name())
		}
		if plan.Is[plan.None](step) {
			s.world.Run(20 * time.Second)
		} else {
			s.world.Run(time.Second)
		}
	}
}
