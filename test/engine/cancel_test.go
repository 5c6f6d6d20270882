// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/act"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// A migration that is cancelled at any moment loses no write, also when the destination takes the slots over in that very moment: where
// the source is told, its clients wait until it knows.
func TestCancelledMigrationLosesNothing(t *testing.T) {
	rounds := 40
	if os.Getenv("E2E") == "all" {
		rounds = 400
	}
	forEachEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 1, 1)
		one, other := o.master(0), o.master(1)
		if o.view(one).Atomic != slots.AtomicSource {
			t.Skip("the source is not told")
		}
		target := func(p *operatedPod) plan.Target {
			return plan.Target{Pod: p.pod.Name, IP: p.pod.Status.PodIP, NodeID: mustIdentify(t, o.node(p))}
		}
		load := startLoadBy(t, o.client(), "load")
		set := slots.Range(0, 4095)
		moved := 0
		for range rounds {
			if !set.Subtract(o.view(one).Slots).IsEmpty() {
				one, other = other, one
			}
			from, to := target(one), target(other)
			must(t, o.node(one).MigrateSlots(t.Context(), set, to.NodeID))
			time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
			_, err := o.loop.Actor.Do(t.Context(), act.Subject{Cluster: o.cluster},
				plan.CancelJobs{On: []plan.Target{from}, Takers: []plan.Target{to}})
			must(t, err)
			eventually(t, func() error {
				a, b := o.view(one), o.view(other)
				return want(len(a.SlotMigrations)+len(b.SlotMigrations) == 0 && a.Slots.Intersect(b.Slots).IsEmpty() &&
					a.Slots.Union(b.Slots).Equal(slots.All()), "%v and %v, jobs %v %v", a.Slots, b.Slots, a.SlotMigrations, b.SlotMigrations)
			})
			if !set.Subtract(o.view(one).Slots).IsEmpty() {
				moved++
			}
		}
		load.end()
		t.Logf("%d of %d came too late", moved, rounds)
		if jobs, err := o.node(one).SlotMigrations(t.Context(), slots.AtomicSource); err != nil || len(jobs) == 0 ||
			jobs[0].Outcome == redis.SlotMigrationUnderWay {
			t.Errorf("%+v, %v", jobs, err)
		}
	})
}
