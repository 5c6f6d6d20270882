// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
)

// settings are what users of clusters that are changed set, and, at the end, what engines refuse.
var settings = []map[string]string{
	nil,
	{"cluster-node-timeout": "5000", "hz": "20"},
	{"maxmemory-policy": "allkeys-lru"},
	{"maxmemory": "64mb", "maxmemory-policy": "volatile-lru", "hz": "50"},
	{"maxmemory-policy": "least-loved"},
	{"no-such-setting": "1"},
}

// TestChains: a cluster whose spec was changed again and again, in the midst of what the change before it asked for, is what a new
// cluster of its last spec is, but for which slots each shard has; no acknowledged write is lost on the way. Among the changes are
// mistakes: what an engine refuses, fewer instances than shards.
func TestChains(t *testing.T) {
	first := environment(t, "SIMULATION_FIRST", 0)
	for seed := range environment(t, "SIMULATION_SEEDS", 3) {
		seed += first
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			var spec v1alpha1.RedisClusterSpec
			var want, got, story string
			synctest.Test(t, func(t *testing.T) { spec, got, story = chain(t, seed) })
			synctest.Test(t, func(t *testing.T) {
				fresh := newSimulationOf(t, seed, 1, seed%2 == 1)
				fresh.cluster.Spec = spec
				want = fresh.finally()
			})
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("not what a new cluster is (-new +changed):\n%s\n%s", diff, story)
			}
		})
	}
}

// chain changes a cluster again and again.
func chain(t *testing.T, seed uint64) (last v1alpha1.RedisClusterSpec, outcome, story string) {
	t.Helper()
	s := newSimulationOf(t, seed, 2, seed%2 == 1)
	s.converge()
	app := newApplication(s)
	for key := range 24 {
		app.write(fmt.Sprintf("key:%d", key))
	}
	s.world.Run(2 * time.Second)
	for range 2 + s.random.IntN(3) {
		s.change()
		for range s.random.IntN(40) { // often less than it takes
			s.reconcile()
			s.world.Run(time.Second)
		}
	}
	s.cluster.Spec.Pause = false
	outcome = s.finally()
	s.wantHealthy()
	app.wantAll()
	return *s.cluster.Spec.DeepCopy(), outcome, strings.Join(s.narrative, "\n")
}

// remembered is what engines refused: it stays in the status when nobody asks for it any more, so that it is not tried again.
var remembered = regexp.MustCompile(`, refused \[.*\], data `)

// finally is what comes of a cluster.
func (s *simulation) finally() string {
	s.rest()
	s.reconcile() // that the cluster has formed is read from the status
	return remembered.ReplaceAllString(s.outcome(true), ", data ")
}

// change changes the spec, if admission takes the change.
func (s *simulation) change() {
	before := s.cluster.DeepCopy()
	spec := &s.cluster.Spec
	switch s.random.IntN(6) {
	case 0, 1:
		shards := int32(3 + s.random.IntN(3))
		spec.Shards, spec.Replicas = &shards, ptr.To(shards*int32(1+s.random.IntN(3)))
	case 2:
		spec.Replicas = ptr.To(int32(2 + s.random.IntN(12)))
	case 3, 4:
		spec.Config = maps.Clone(settings[s.random.IntN(len(settings))])
	case 5:
		spec.Pause = !spec.Pause
		spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AutoReceive, Pipeline: "7", KeysPerSecond: 1000}
	}
	after := s.cluster.DeepCopy()
	admission.Default(after)
	refused := append(admission.Validate(after, admission.Options{}), admission.ValidateUpdate(before, after, admission.Options{})...)
	s.say("--- %d shards of %d instances, %v, paused %t: refused %v", spec.ShardCount(), spec.InstanceCount(), spec.Config, spec.Pause,
		refused)
	if len(refused) > 0 {
		s.cluster.Spec = before.Spec
		return
	}
	s.cluster.Generation++
}
