// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// autoscale has the number of shards follow the load: a thousand commands a second each.
func (s *simulation) autoscale(least, most int32) {
	s.cluster.Spec.Shards, s.cluster.Spec.Replicas = nil, nil
	s.cluster.Spec.Autoscale = &v1alpha1.Autoscale{MinShards: least, MaxShards: most, InstancesPerShard: 2,
		Targets: v1alpha1.AutoscaleTargets{OperationsPerSecond: ptr.To[int64](1000)},
		ScaleIn: v1alpha1.AutoscaleRule{Stabilization: &metav1.Duration{Duration: 3 * time.Minute}}}
	s.cluster.Generation++
}

// autoscaled is a load that asks for so many shards, which are awaited.
func autoscaled(shards int32, perSecond float64) func(*simulation) {
	return func(s *simulation) {
		s.world.SetCommandsPerSecond(perSecond)
		s.autoscale(3, 5)
		s.cluster.Spec.Autoscale.ScaleIn.Stabilization.Duration = time.Minute
		s.awaits = func() bool {
			is := s.cluster.Status.Autoscale
			return is != nil && is.Shards == shards && is.Wanted != nil
		}
	}
}

// windowed is a window that is open, with more shards than there are, which are awaited.
func windowed(s *simulation) {
	s.world.SetCommandsPerSecond(100)
	s.autoscale(3, 5)
	s.window(s.world.Now().Add(-time.Minute), 24*time.Hour, 4)
	s.awaits = func() bool {
		is := s.cluster.Status.Autoscale
		return is != nil && is.Shards == 4 && is.Window == "peak" && is.Wanted != nil
	}
}

// window has at least so many shards from a time on, every day.
func (s *simulation) window(opens time.Time, d time.Duration, least int32) {
	s.cluster.Spec.Autoscale.Windows = []v1alpha1.AutoscaleWindow{{Name: "peak", Start: opens.UTC().Format("4 15 * * *"), TimeZone: "Etc/UTC",
		Duration: metav1.Duration{Duration: d}, MinShards: ptr.To(least)}}
	s.cluster.Generation++
}

// live lets the operator look once in ten seconds, and more often while it has something to do.
func (s *simulation) live(d time.Duration) {
	s.t.Helper()
	for end := s.world.Now().Add(d); s.world.Now().Before(end); {
		s.converge()
		s.world.Run(10 * time.Second)
	}
}

// steps are the numbers of shards that the status had, one after the other, since the last time.
func (s *simulation) steps() []int {
	had := s.inForce
	s.inForce = nil
	return had
}

// A day in minutes: the load grows, has a peak, stays high and declines. The shards follow without going to and fro, the operator restarts
// now and then, and keys survive.
func TestAutoscales(t *testing.T) {
	eachSeed(t, 4, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		app := s.formWithKeys()
		s.autoscale(3, 5)
		want := func(shards int) {
			t.Helper()
			if is := s.cluster.Status.Autoscale; is == nil || int(is.Shards) != shards {
				s.fail("status.autoscale is %+v, want %d shards", is, shards)
			}
			s.wantHealthy()
			if len(s.instances) != 2*shards {
				s.fail("%d instances of %d shards", len(s.instances), shards)
			}
		}
		s.world.SetCommandsPerSecond(2500)
		s.live(10 * time.Minute)
		want(3)
		s.world.SetCommandsPerSecond(9000) // a peak
		s.live(30 * time.Second)
		s.world.SetCommandsPerSecond(2500)
		s.live(10 * time.Minute)
		want(3)
		s.world.SetCommandsPerSecond(3800)
		s.live(5 * time.Minute)
		want(4)
		s.world.SetCommandsPerSecond(20000)
		s.live(10 * time.Minute)
		want(5)
		if !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionAutoscalingLimited) {
			s.fail("it is not told that there may be no more: %+v", s.cluster.Status.Conditions)
		}
		app.writeAgain()
		s.world.SetCommandsPerSecond(1000)
		s.live(2 * time.Minute)
		s.replaceOperator()
		s.live(2 * time.Minute)
		want(5) // it waits for all of the time again
		s.live(20 * time.Minute)
		want(3)
		app.wantAll()
		if got := s.steps(); !slices.Equal(got, []int{3, 4, 5, 3}) {
			s.fail("the number of shards went to and fro: %v", got)
		}
	})
}

// A window opens: the shards that it asks for are there without a wait, while an application writes. It ends, and they go when the load has
// been low for the stabilization since then. The operator restarts in it; no write is lost.
func TestAutoscaleWindow(t *testing.T) {
	eachSeed(t, 2, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		app := s.formWithKeys()
		s.autoscale(3, 4)
		s.world.SetCommandsPerSecond(500)
		opens := s.world.Now().Add(12 * time.Minute).Truncate(time.Minute)
		s.window(opens, 30*time.Minute, 5)
		want := func(shards int, window string, least, most int32) {
			t.Helper()
			is := s.cluster.Status.Autoscale
			if is == nil || int(is.Shards) != shards || is.Window != window || is.MinShards != least || is.MaxShards != most {
				s.fail("status.autoscale is %+v, want %d shards in the window %q", is, shards, window)
			}
		}
		s.live(opens.Sub(s.world.Now()) - time.Minute)
		want(3, "", 0, 0)
		s.world.Run(opens.Sub(s.world.Now()))
		for s.shards() != 5 || s.cluster.Status.Migration != nil || len(s.observe().Masters()) < 5 {
			s.reconcile()
			app.writeAgain()
			s.world.Run(time.Second)
			if s.world.Now().Sub(opens) > 10*time.Minute {
				s.fail("the window has no effect: %+v", s.cluster.Status.Autoscale)
			}
		}
		s.live(2 * time.Minute)
		want(5, "peak", 5, 5)
		s.wantHealthy()
		s.replaceOperator()
		s.live(opens.Add(29 * time.Minute).Sub(s.world.Now()))
		want(5, "peak", 5, 5)
		s.live(opens.Add(31 * time.Minute).Sub(s.world.Now()))
		want(5, "", 0, 0) // which is one more than the spec allows
		app.writeAgain()
		s.live(15 * time.Minute)
		want(3, "", 0, 0)
		s.wantHealthy()
		app.wantAll()
		if got := s.steps(); !slices.Equal(got, []int{3, 5, 3}) {
			s.fail("the number of shards went to and fro: %v", got)
		}
	})
}

// A window that is over before anything was done leaves nothing behind.
func TestAutoscaleWindowWhilePaused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, true)
		s.converge()
		s.autoscale(3, 5)
		s.live(time.Minute)
		s.cluster.Spec.Pause = true
		s.window(s.world.Now().Add(time.Minute), 10*time.Minute, 5)
		s.world.Run(3 * time.Minute)
		s.reconcile()
		if is := s.cluster.Status; is.Autoscale.Window != "peak" || is.Autoscale.Shards != 3 || is.Plan.Step == "None" {
			s.fail("%+v, %+v", is.Autoscale, is.Plan)
		}
		s.world.Run(10 * time.Minute)
		s.cluster.Spec.Pause = false
		s.live(time.Minute)
		if is := s.cluster.Status.Autoscale; is.Shards != 3 || is.Window != "" || len(s.instances) != 6 {
			s.fail("%+v", is)
		}
		s.wantHealthy()
	})
}

// The status of a cluster at rest is not written for the load, and about once in five minutes at most when the load goes to and fro
// about a target.
func TestAutoscaleWritesLittle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, true)
		s.converge()
		s.autoscale(3, 5)
		s.world.SetCommandsPerSecond(2700)
		s.live(3 * time.Minute)
		s.written = 0
		s.live(30 * time.Minute)
		if s.written > 0 {
			s.fail("the status was written %d times while nothing happened", s.written)
		}
		for range 60 {
			s.world.SetCommandsPerSecond(2100)
			s.live(15 * time.Second)
			s.world.SetCommandsPerSecond(3600)
			s.live(15 * time.Second)
		}
		if s.written > 8 || len(s.steps()) > 1 {
			s.fail("the status was written %d times, shards %v", s.written, s.inForce)
		}
	})
}

// Where there is no room for the instances of more shards, no more are asked for, whatever the load does; bounds take them back.
func TestAutoscaleWithoutRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, true)
		s.converge()
		s.autoscale(3, 9)
		s.noRoom = true
		s.world.SetCommandsPerSecond(3800)
		look := func(d time.Duration) {
			for end := s.world.Now().Add(d); s.world.Now().Before(end); {
				s.reconcile()
				s.world.Run(5 * time.Second)
			}
		}
		look(10 * time.Minute)
		s.world.SetCommandsPerSecond(20000)
		look(30 * time.Minute)
		if is := s.cluster.Status.Autoscale; is.Shards != 4 || is.Wanted != nil || len(s.observe().Masters()) != 3 {
			s.fail("%+v", is)
		}
		s.cluster.Spec.Autoscale.MaxShards = 3
		s.cluster.Generation++
		s.live(5 * time.Minute)
		if s.shards() != 3 || !meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionReady) {
			s.fail("%+v", s.cluster.Status)
		}
		s.wantHealthy()
	})
}

// The status is lost, and the cluster keeps its shards. With autoscale removed, nothing changes until the spec says how many there are.
func TestAutoscaleStatusIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, true)
		s.converge()
		s.world.SetCommandsPerSecond(3800)
		s.autoscale(3, 5)
		s.live(5 * time.Minute)
		s.cluster.Status.Autoscale = nil
		s.world.SetCommandsPerSecond(0)
		s.live(time.Minute)
		if n := s.shards(); n != 4 {
			s.fail("%d shards after the status was lost", n)
		}
		s.wantHealthy()
		s.cluster.Spec.Autoscale = nil
		s.cluster.Generation++
		for range 60 {
			s.reconcile()
			s.world.Run(time.Second)
		}
		if len(s.observe().Masters()) != 4 || s.cluster.Status.Autoscale == nil ||
			!meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionStalled) {
			s.fail("the number is not kept: %+v", s.cluster.Status)
		}
		s.scale(4, 2)
		s.converge()
		if s.cluster.Status.Autoscale != nil {
			s.fail("%+v", s.cluster.Status.Autoscale)
		}
		s.wantHealthy()
	})
}

// A dry run says what it would do, and a paused cluster what it will.
func TestAutoscaleDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulationOf(t, 1, 2, true)
		s.converge()
		s.world.SetCommandsPerSecond(4500)
		s.autoscale(4, 9) // more than there are
		s.cluster.Spec.Autoscale.Mode = v1alpha1.AutoscaleDryRun
		s.live(5 * time.Minute)
		is := s.cluster.Status.Autoscale
		if is.Shards != 3 || is.Wanted == nil || *is.Wanted != 5 || is.Measure != "Operations" || is.Since == nil || is.NotBefore == nil {
			s.fail("%+v", is)
		}
		s.cluster.Spec.Autoscale.MinShards = 3
		s.cluster.Spec.Autoscale.Mode, s.cluster.Spec.Pause = v1alpha1.AutoscaleAuto, true
		s.reconcile()
		if status := s.cluster.Status; status.Plan.Step != "SetShards" || status.Autoscale.Shards != 3 {
			s.fail("%+v", status.Plan)
		}
		s.cluster.Spec.Pause = false
		s.live(5 * time.Minute)
		if s.shards() != 5 {
			s.fail("%+v", s.cluster.Status.Autoscale)
		}
		s.wantHealthy()
	})
}
