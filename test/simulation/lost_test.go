// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

var everyShard = map[int]bool{0: true, 1: true, 2: true}

// Whoever loses its nodes.conf, at the same address or another one, alone or together with others: what it holds is not lost, be
// it the last copy of its shard or not.
func TestKeepsWhatForgetfulInstancesHold(t *testing.T) {
	eachSeed(t, 40, func(t *testing.T, seed uint64) {
		perShard := 1 + int(seed%2)
		s := newSimulationOf(t, seed, perShard, seed%4 > 1)
		s.converge()
		for generation := range 3 {
			s.write(generation)
			for shard := range 3 {
				if in := s.instances[shard*perShard+s.random.IntN(perShard)]; s.random.IntN(3) > 0 {
					s.restartForgetful(in, s.random.IntN(2) == 0)
				}
			}
			if s.random.IntN(2) == 0 {
				s.unreliable()
			}
			s.converge()
			s.wantHealthy()
			s.wantData(generation, everyShard)
		}
	})
}

// When every instance of a shard has lost its nodes.conf, nobody is chosen, and nothing is lost until a person does.
func TestPersonChoosesWhichCopyCounts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, personChoosesWhichCopyCounts)
}

func personChoosesWhichCopyCounts(t *testing.T) {
	s := newSimulation(t, 3, 2)
	s.converge()
	s.write(1)
	for _, in := range s.instances[:2] {
		s.restartForgetful(in, true)
	}
	s.stalls("AmbiguousOwner")
	s.restart(s.instances[1], false) // its claim and its pod are deleted
	s.converge()
	s.wantHealthy()
	s.wantData(1, everyShard)
}

// Slots whose volumes have come back empty stay without an owner until a person gives the data up; the operator is stopped
// in the middle of what follows.
func TestEmptyVolumesWaitForAPerson(t *testing.T) {
	for _, lost := range []int{1, 3} {
		t.Run(fmt.Sprint(lost), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { emptyVolumesWaitForAPerson(t, lost) })
		})
	}
}

func emptyVolumesWaitForAPerson(t *testing.T, lost int) {
	s := newSimulation(t, uint64(lost), 2)
	s.cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeNFS, PersistentVolumeClaimName: "shared"}
	s.converge()
	s.write(1)
	for _, in := range s.instances[:2*lost] {
		s.restart(in, false)
	}
	s.stalls("DataLost")
	reason := s.cluster.Status.Reason
	s.cluster.Annotations = map[string]string{v1alpha1.AnnotationGiveUpData: reason[len(reason)-8:]}
	if step := s.reconcile(); step.Name() != "GiveUp" {
		s.fail("%s: %s", step.Name(), step.Why())
	}
	s.unreliable()
	s.converge()
	s.wantHealthy()
	s.wantData(1, map[int]bool{0: lost < 1, 1: lost < 2, 2: lost < 3})
	for _, in := range s.instances[:2] { // the annotation is still there
		s.restart(in, false)
	}
	s.stalls("DataLost")
}

// stalls lets the operator work until it stalls for that cause, and asserts that it goes on doing so.
func (s *simulation) stalls(cause string) {
	s.t.Helper()
	last := 0
	for passes := range 120 {
		step := s.reconcile()
		s.world.Run(time.Second)
		if stall, ok := step.(plan.Stall); ok && stall.Cause == cause {
			last++
		} else {
			last = 0
		}
		if passes > 60 && last > 30 {
			return
		}
	}
	s.fail("it does not stall for %s; the last reason was %s", cause, s.cluster.Status.Reason)
}
