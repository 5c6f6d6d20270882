// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/fleet"
	"middleware.hc.cn/operator/internal/rediscluster"
)

// fleetOf is many clusters with one operator.
type fleetOf struct {
	t        *testing.T
	clusters []*simulation
	revision string
	// told is what was last told of them.
	told fleet.Verdict
}

// newFleet are clusters that an operator of revision r1 has formed.
func newFleet(t *testing.T, seed uint64, names ...string) *fleetOf {
	t.Helper()
	f := &fleetOf{t: t, revision: "r1"}
	schedule := newSchedule(t, seed)
	for i, namespace := range names {
		s := preparedOn(t, schedule, seed+uint64(i), 2, false)
		s.cluster.Namespace, s.cluster.UID = namespace, types.UID(namespace)
		s.bringsBack = true
		s.populate()
		f.clusters = append(f.clusters, s)
	}
	f.restart()
	for _, s := range f.clusters {
		s.converge()
	}
	return f
}

// restart begins a process of the operator, which knows of its clusters what they say.
func (f *fleetOf) restart() {
	of := &fleet.Fleet{Options: fleet.Options{Canaries: 1, Wave: 2, Pause: time.Minute, Stuck: 10 * time.Minute},
		Now: f.clusters[0].world.Now,
		Load: func() (members []fleet.Member, _ error) {
			for _, s := range f.clusters {
				members = append(members, rediscluster.MemberOf(s.cluster, f.revision))
			}
			return members, nil
		},
		Told: func(v fleet.Verdict) { f.told = v }}
	for _, s := range f.clusters {
		s.replaceOperator()
		s.loop.Waves = &rediscluster.Waves{Fleet: of, Revision: f.revision}
	}
}

// upgrade begins an operator that has another template for all.
func (f *fleetOf) upgrade(revision string) {
	f.revision = revision
	for _, s := range f.clusters {
		s.retemplate(revision)
	}
	f.restart()
}

// look has the operator look at each cluster once.
func (f *fleetOf) look() {
	for _, s := range f.clusters {
		s.reconcile()
		s.loop.Report(s.cluster)
		s.world.Run(time.Second)
	}
}

// count is how many clusters are done, and how many have begun and are not.
func (f *fleetOf) count() (done, begun int) {
	for _, s := range f.clusters {
		is := s.cluster.Status.Upgrade
		made, known := is.Made()
		switch {
		case known && made.Revision == f.revision:
			done++
		case is != nil && is.Target == f.revision:
			begun++
		}
	}
	return done, begun
}

// touched are the clusters of which an instance has a new template.
func (f *fleetOf) touched() (n int) {
	for _, s := range f.clusters {
		for _, in := range s.instances {
			if in.pod.Labels["controller-revision-hash"] == f.revision+s.ports {
				n++
				break
			}
		}
	}
	return n
}

// What is new in the operator reaches one cluster, then two at a time, also if the operator restarts at any time; those that wait serve.
func TestWaves(t *testing.T) {
	eachSeed(t, 2, func(t *testing.T, seed uint64) {
		f := newFleet(t, seed, "a", "b", "c", "d")
		f.upgrade("r2")
		for round := range 1500 {
			f.look()
			done, begun := f.count()
			if done == len(f.clusters) {
				break
			}
			if most := min(done+1, 2); begun > most {
				t.Fatalf("%d are upgraded at once, and %d have been", begun, done)
			}
			if touched := f.touched(); touched > done+begun {
				t.Fatalf("%d have new instances, and %d had their turn", touched, done+begun)
			}
			if round%40 == 39 {
				f.restart()
			}
		}
		for _, s := range f.clusters {
			s.wantHealthy()
		}
		if done, _ := f.count(); done != len(f.clusters) || f.touched() != done {
			t.Fatalf("%d of %d are upgraded: %s", done, len(f.clusters), f.told)
		}
	})
}

// One that fails stops the others, whoever restarts; who changes the spec goes all the same.
func TestBadWaveStops(t *testing.T) {
	eachSeed(t, 1, func(t *testing.T, seed uint64) {
		f := newFleet(t, seed, "a", "b", "c")
		for _, s := range f.clusters {
			s.bringsBack = false // no pod of the new template starts
		}
		f.upgrade("r2")
		failed := map[string]bool{}
		for round := range 2100 { // of a second: half an hour until two have failed, one ten minutes after the other
			f.look()
			for _, s := range f.clusters {
				if s.cluster.Status.Upgrade.Target == "r2" {
					failed[s.cluster.Namespace] = true
				}
			}
			if round%100 == 99 {
				f.restart()
			}
		}
		if len(failed) != 2 { // the canary, and one of another namespace ten minutes later
			t.Fatalf("%v had their turn: %s", failed, f.told)
		}
		if !f.told.Stopped {
			t.Errorf("it is told: %s", f.told)
		}
		for _, s := range f.clusters {
			if failed[s.cluster.Namespace] {
				continue
			}
			if s.cluster.Status.Phase != "Running" || s.cluster.Status.Upgrade.Target != "" {
				t.Errorf("who waits is %s: %s", s.cluster.Status.Phase, s.cluster.Status.Reason)
			}
			s.bringsBack = true
			s.cluster.Generation++
			for range 100 {
				f.look()
			}
			if made, _ := s.cluster.Status.Upgrade.Made(); made.Revision != "r2" || made.Generation != s.cluster.Generation {
				t.Errorf("who changed the spec is at %s: %s", made, s.cluster.Status.Reason)
			}
		}
	})
}
