// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

// mostOnOneNode is how many masters are where most of them are.
func (s *simulation) mostOnOneNode() int {
	on, most := map[string]int{}, 0
	for pod, master := range s.masters() {
		if node := s.named(pod).pod.Spec.NodeName; master {
			on[node]++
			most = max(most, on[node])
		}
	}
	return most
}

// elapse lets time go by, with a reconciliation every two seconds.
func (s *simulation) elapse(d time.Duration) {
	for end := s.world.Now().Add(d); s.world.Now().Before(end); s.world.Run(2 * time.Second) {
		s.reconcile()
	}
}

// Nodes are lost one after the other, for 40 seconds each. A minute after each was back, the loss of no other takes two of three
// masters.
func TestMastersPartBeforeTheNextNodeIsLost(t *testing.T) {
	eachSeed(t, 2, func(t *testing.T, seed uint64) {
		s := newSimulation(t, seed, 2+int(seed%2))
		s.cluster.Spec.SpreadMasters = ptr.To(true)
		s.converge()
		app, concentrated := newApplication(s), false
		for round := range 4 {
			if n := s.mostOnOneNode(); n != 1 {
				s.fail("round %d: %d masters are on one node", round, n)
			}
			lost := fmt.Sprintf("node%d", round%3)
			s.say("--- %s is cut off", lost)
			var isolated []*redistest.Node
			for _, in := range s.instances {
				if in.pod.Spec.NodeName == lost {
					isolated = append(isolated, in.node)
				}
			}
			s.world.Partition(isolated...)
			s.elapse(40 * time.Second)
			concentrated = concentrated || s.mostOnOneNode() > 1
			s.say("--- %s is back", lost)
			s.world.Heal()
			s.elapse(time.Minute)
			for key := range 6 {
				if name := fmt.Sprintf("key:%d", key); !app.write(name) {
					s.fail("round %d: writing %s failed", round, name)
				}
			}
		}
		app.wantAll()
		if c := meta.FindStatusCondition(s.cluster.Status.Conditions, v1alpha1.ConditionMastersSpread); c == nil || c.Reason != "Spread" ||
			!concentrated {
			s.fail("MastersSpread is %+v; masters were concentrated on the way: %t", c, concentrated)
		}
	})
}
