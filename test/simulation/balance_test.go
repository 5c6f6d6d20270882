// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// skew is keys that all are of one shard, each of 32 MiB, as all keys are then.
func (s *simulation) skew(shard, keys int) (names []string) {
	s.t.Helper()
	s.world.SetKeyBytes(32 << 20)
	of := s.observe().Masters()[shard].Redis.Slots
	for i := 0; len(names) < keys; i++ {
		if name := fmt.Sprintf("hot:%d", i); of.Contains(slots.KeySlot(name)) {
			names = append(names, name)
		}
	}
	return names
}

// balance has slots follow the load.
func (s *simulation) balance(mode v1alpha1.BalanceMode, megabytes int32) {
	s.cluster.Spec.Balance = &v1alpha1.Balance{Mode: mode, MegabytesPerHour: megabytes}
	s.cluster.Generation++
}

// balanced is one shard with most of the keys, which gives some of them away.
func balanced(s *simulation) {
	for _, key := range s.skew(1, 40) {
		if answer := s.ask("SET", key, "v"); answer != "+OK" {
			s.fail("SET %s: %s", key, answer)
		}
	}
	s.balance(v1alpha1.BalanceMove, 1<<20)
	s.awaits = func() bool {
		is := s.cluster.Status.Balance
		return is != nil && len(is.Moved) > 0 && is.Measure == "" && s.cluster.Status.Migration == nil
	}
}

// keys are how many each shard has.
func (s *simulation) keys() (keys [3]int64) {
	for shard, master := range s.observe().Masters() {
		keys[shard] = master.Redis.Keys
	}
	return keys
}

// A shard with most of the data is relieved while an application writes, the cluster stays Ready, and comes to rest: nothing moves again,
// and nothing is written.
func TestBalances(t *testing.T) {
	eachSeed(t, 2, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		app := s.formWithKeys()
		for _, key := range s.skew(1, 60) {
			app.write(key)
		}
		before := s.keys()
		s.balance(v1alpha1.BalanceReport, 1<<20)
		s.live(15 * time.Minute)
		is := s.cluster.Status.Balance
		if is == nil || is.Measure != "Memory" || *is.HottestShard != 1 || is.Percent < 150 || is.Since == nil || len(is.Moved) > 0 ||
			s.keys() != before {
			s.fail("report: %+v, %v", is, s.keys())
		}
		s.balance(v1alpha1.BalanceMove, 1<<20)
		for range 4 {
			s.live(2 * time.Minute)
			app.writeAgain()
			if !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady) {
				s.fail("it is not Ready: %+v", s.cluster.Status)
			}
		}
		is = s.cluster.Status.Balance
		if after := s.keys(); is.Measure != "" || len(is.Moved) != 1 || is.Moved[0].Slots == 0 || after[1] > 46 || after[0] < 34 ||
			after[2] < 34 {
			s.fail("%+v, keys %v, before %v", is, after, before)
		}
		s.wantHealthy()
		app.wantAll()
		owners := s.outcome(false)
		s.live(2 * time.Minute)
		s.written = 0
		s.live(60 * time.Minute)
		if s.written > 1 || s.cluster.Status.Balance.Moved != nil || s.outcome(false) != owners { // once, when the hour is over
			s.fail("the status was written %d times: %+v", s.written, s.cluster.Status.Balance)
		}
		s.scale(4, 2) // by number, as ever
		s.converge()
		for shard, master := range s.observe().Masters() {
			if n := master.Redis.Slots.Len(); n != slots.Count/4 {
				s.fail("shard %d owns %d slots", shard, n)
			}
		}
		app.wantAll()
	})
}

// As much as may move in an hour does, and no more, also when the operator restarts.
func TestBalanceBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, true)
		app := s.formWithKeys()
		for _, key := range s.skew(1, 60) {
			app.write(key)
		}
		s.balance(v1alpha1.BalanceMove, 100)
		before := s.keys()
		for range 3 {
			s.live(16 * time.Minute)
			s.replaceOperator()
		}
		after := s.keys()
		if gone := before[1] - after[1]; gone < 4 || gone > 6 { // four of 32 MiB, and what is with the last in its slot
			s.fail("%d keys have moved: %+v", gone, s.cluster.Status.Balance)
		}
		s.live(40 * time.Minute)
		if gone := before[1] - s.keys()[1]; gone < 8 || gone > 12 {
			s.fail("%d keys have moved: %+v", gone, s.cluster.Status.Balance)
		}
		app.wantAll()
	})
}

// Who takes balance away when slots are about to move leaves them where they are.
func TestBalanceIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, false)
		app := s.formWithKeys()
		for _, key := range s.skew(1, 60) {
			app.write(key)
		}
		s.balance(v1alpha1.BalanceMove, 1<<20)
		for range 4000 {
			s.reconcile()
			s.world.Run(time.Second)
			if s.cluster.Status.Migration != nil {
				break
			}
		}
		if s.cluster.Status.Migration == nil {
			s.fail("nothing moves: %+v", s.cluster.Status.Balance)
		}
		s.cluster.Spec.Balance = nil
		s.cluster.Generation++
		s.converge()
		moved := s.keys()
		s.live(10 * time.Minute)
		if s.cluster.Status.Migration != nil || s.cluster.Status.Balance != nil || s.keys() != moved {
			s.fail("%+v", s.cluster.Status)
		}
		s.wantHealthy()
		app.wantAll()
	})
}
