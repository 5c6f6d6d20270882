// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// damage kills and restarts instances at random. It returns the shards of which some
// instance kept its data, and whether the time for an election is needed.
func (s *simulation) damage() map[int]bool {
	kept := map[int]bool{}
	for i, in := range s.instances {
		shard := i / (len(s.instances) / 3)
		switch s.random.IntN(4) {
		case 0:
			s.restart(in, false)
		case 1:
			s.restart(in, true)
			kept[shard] = true
		default:
			kept[shard] = true
		}
	}
	return kept
}

// unreliable makes commands of the next reconciliations fail now and then, before or after they
// take effect.
func (s *simulation) unreliable() {
	commands := []string{"CLUSTER MEET", "CLUSTER ADDSLOTSRANGE", "CLUSTER REPLICATE", "CLUSTER FORGET", "CLUSTER FAILOVER", "CLUSTER MYID"}
	kinds := []redistest.FailureKind{redistest.ReplyError, redistest.DropBefore, redistest.DropAfter}
	for _, in := range s.instances {
		if s.random.IntN(2) == 0 {
			s.world.FailNext(in.node, commands[s.random.IntN(len(commands))],
				redistest.Failure{Kind: kinds[s.random.IntN(len(kinds))], Reply: "ERR made to fail"})
		}
	}
}

func TestFormsUnderFailingCommands(t *testing.T) {
	eachSeed(t, 20, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed, 1+int(seed%3))
		s.unreliable()
		s.converge()
		s.wantHealthy()
	})
}

// Whatever is damaged, the cluster comes back whole, and with the data of every shard of
// which one instance kept its disk.
func TestHealsAnyDamage(t *testing.T) {
	eachSeed(t, 60, func(t *testing.T, seed uint64) { healsAnyDamage(t, seed, nil) })
}

// healsAnyDamage does damage again and again. onStart is called before anything happens, if it is not nil.
func healsAnyDamage(t *testing.T, seed uint64, onStart func(*simulation)) *simulation {
	t.Helper()
	s := newSimulation(t, seed, 2+int(seed%2))
	if onStart != nil {
		onStart(s)
	}
	s.converge()
	for generation := range 3 {
		s.write(generation)
		kept := s.damage()
		if s.random.IntN(2) == 0 {
			s.unreliable()
		}
		s.converge()
		s.wantHealthy()
		s.wantData(generation, kept)
	}
	return s
}

// Nothing is forgotten, taken over or formed while an instance cannot be reached: it may
// hold the only copy.
func TestUnknownIsNotAbsent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, unknownIsNotAbsent)
}

func unknownIsNotAbsent(t *testing.T) {
	s := newSimulation(t, 7, 2)
	s.converge()
	s.write(1)
	first, second := s.named("c-0-0"), s.named("c-0-1")
	s.world.Partition(first.node, second.node)
	s.narrative = nil
	for range 30 {
		switch step := s.reconcile().(type) {
		case plan.Wait, plan.None:
		default:
			s.fail("%s while a whole shard cannot be reached: %s", step.Name(), step.Why())
		}
		s.world.Run(time.Second)
	}
	s.world.Heal()
	s.converge()
	s.wantHealthy()
	s.wantData(1, map[int]bool{0: true, 1: true, 2: true})
}
