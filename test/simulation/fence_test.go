// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// fence asks for an instance to be left alone, or no more, and awaits that it is a replica which is not elected.
func (s *simulation) fence(name string) {
	s.say("--- fence %q", name)
	s.cluster.Annotations = map[string]string{v1alpha1.AnnotationFenced: name}
	if name == "" {
		s.cluster.Annotations = nil
	}
	s.awaits = func() bool {
		if s.cluster.Annotations == nil {
			return meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionFenced) == nil
		}
		return s.master(0) != name && meta.IsStatusConditionTrue(s.cluster.Status.Conditions, v1alpha1.ConditionFenced)
	}
}

// A master that is to be left alone hands over without a lost write. It ends, and comes back: nothing is done to it, while all others are
// healed. When it is fenced no more it is a replica like any other.
func TestWhatIsFencedIsLeftAlone(t *testing.T) {
	eachSeed(t, 8, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2+int(seed%2), seed%4 > 1)
		app := s.formWithKeys()
		name := s.master(0)
		in := s.named(name)
		s.fence(name)
		lives := func(touches bool) {
			for range 40 {
				for key := range 6 {
					app.write(fmt.Sprintf("key:%d", key))
				}
				if step := s.reconcile(); !touches && slices.Contains(plan.Pods(step), name) {
					s.fail("%s: %s", step.Name(), step.Why())
				}
				s.world.Run(time.Second)
			}
		}
		lives(true)
		if s.master(0) == name || in.node.Setting("cluster-replica-no-failover") != "yes" || !s.awaits() {
			s.fail("%s is the master of shard 0, or may be elected: %+v", s.master(0), s.cluster.Status.Conditions)
		}
		s.world.Kill(in.node)
		s.tells(in, false)
		s.say("--- %s ends", name)
		lives(false)
		s.say("--- a replica of another shard begins anew, and a master crashes")
		s.restart(s.named(s.replica(1)), false)
		s.converge()
		s.restart(s.named(s.master(2)), true)
		lives(false)
		if s.find(name) != in || s.cluster.Status.Phase != v1alpha1.PhaseRunning {
			s.fail("another pod is in the place of %s, or the cluster is not served: %s", name, s.cluster.Status.Phase)
		}
		s.tells(in, true)
		s.world.Restart(in.node, in.pod.Status.PodIP, true)
		s.say("--- %s runs again", name)
		s.converge()
		s.fence("")
		s.converge()
		s.wantHealthy()
		app.wantAll()
		if in.node.Setting("cluster-replica-no-failover") == "yes" || !s.awaits() {
			s.fail("%s is still not to be elected: %+v", name, s.cluster.Status.Conditions)
		}
	})
}

// Two instances are fenced and a new template comes: nothing is restarted, and when they are fenced no more all are, although a budget of
// disruptions lets one be not ready at a time.
func TestRolloutsWaitForFences(t *testing.T) {
	eachSeed(t, 4, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		s.bringsBack = true
		app := s.formWithKeys()
		fences := s.master(0) + "," + s.replica(1)
		s.cluster.Annotations = map[string]string{v1alpha1.AnnotationFenced: fences}
		s.converge()
		s.retemplate("v2")
		for range 60 {
			if step := s.reconcile(); plan.Is[plan.Restart](step) || plan.Is[plan.RemoveFromEndpoints](step) {
				s.fail("%s: %s", step.Name(), step.Why())
			}
			app.write("key:1")
			s.world.Run(time.Second)
		}
		s.cluster.Annotations = nil
		s.converge()
		for _, in := range s.instances {
			if revision := in.pod.Labels[appsv1.StatefulSetRevisionLabel]; revision != "v2" {
				s.fail("%s has template %s", in.pod.Name, revision)
			}
		}
		s.wantHealthy()
		app.wantAll()
	})
}

// replica is an instance of a shard that is no master.
func (s *simulation) replica(shard int) string {
	s.t.Helper()
	for _, in := range s.observe().Reachable() {
		if in.Shard == shard && !in.Redis.Master {
			return in.Name
		}
	}
	s.fail("shard %d has no replica", shard)
	return ""
}
