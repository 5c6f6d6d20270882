// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"

	"middleware.hc.cn/operator/test/live"
)

// Shards come and go under load: nothing fails, nothing is lost, and no
// more slots move than must.
func TestRedisClusterScales(t *testing.T) {
	parallel(t)
	for _, engine := range newest() { // the oldest changes its mind
		t.Run(engine.name, func(t *testing.T) {
			live.Scenario(t, func(t *testing.T, run *live.Run) {
				cluster := newCluster(live.NewNamespace(t), "cache")
				cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
				load := underLoad(t, cluster, 20000)
				var method v1alpha1.MigrationMethod
				for _, to := range []struct{ shards, instances int32 }{{4, 8}, {6, 12}, {3, 6}} {
					least := leastMoves(ownedByShard(cluster), int(to.shards))
					setSize(t, cluster, to.shards, to.instances)
					seen := followed(t, cluster)
					method = cmp.Or(seen.method, method)
					if !seen.phases[v1alpha1.PhaseScaling] {
						t.Errorf("to %d shards: the phase was never Scaling: %v", to.shards, seen.phases)
					}
					if seen.slotsTotal != least || seen.slotsPlanned != least {
						t.Errorf("to %d shards: %d slots were planned and %d to move, the least is %d", to.shards, seen.slotsPlanned, seen.slotsTotal, least)
					}
					wantHealthy(t, cluster, to.shards, to.instances)
					wantTables(t, cluster, balanced(int(to.shards)))
					wantClaims(t, cluster, int(to.instances))
				}
				run.WantUnnoticed(load, method)
			})
		})
	}
}

func setSize(t *testing.T, cluster *v1alpha1.RedisCluster, shards, instances int32) {
	t.Helper()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = ptr.To(shards), ptr.To(instances) })
}

// ownedByShard is how many slots each shard owns.
func ownedByShard(cluster *v1alpha1.RedisCluster) []int {
	var owned []int
	for _, node := range cluster.Status.Nodes {
		for len(owned) <= int(node.Shard) {
			owned = append(owned, 0)
		}
		if node.Type == "master" {
			owned[node.Shard] += countSlots(node.Slots)
		}
	}
	return owned
}

// countSlots counts the slots of ranges such as 0-5460,6000.
func countSlots(ranges string) int {
	n := 0
	for _, r := range splitList(ranges, ",") {
		var from, to int
		if _, err := fmt.Sscanf(r, "%d-%d", &from, &to); err != nil {
			to = from
		}
		n += to - from + 1
	}
	return n
}

// leastMoves is the smallest number of slots that have to move so that the first shards
// own all of them, as evenly as can be.
func leastMoves(owned []int, shards int) int {
	staying := slices.Clone(owned[:min(shards, len(owned))])
	slices.Sort(staying)
	slices.Reverse(staying)
	moves := 0
	for _, n := range owned[len(staying):] {
		moves += n
	}
	for i, n := range staying {
		target := 16384 / shards
		if i < 16384%shards {
			target++
		}
		moves += max(0, n-target)
	}
	return moves
}

// balanced is how many slots the masters own, most first, when no two differ by more than one.
func balanced(shards int) []int {
	counts := make([]int, shards)
	for i := range counts {
		counts[i] = 16384 / shards
		if i < 16384%shards {
			counts[i]++
		}
	}
	return counts
}

// progress is what the status told on the way.
type progress struct {
	phases       map[v1alpha1.Phase]bool
	slotsTotal   int // to move altogether, as the migration says
	slotsPlanned int // to move, as the plan said first
	method       v1alpha1.MigrationMethod
}

// followed waits until the cluster is Ready as asked for, and tells what it saw in every status since that was asked.
func followed(t *testing.T, cluster *v1alpha1.RedisCluster) progress {
	t.Helper()
	seen := progress{phases: map[v1alpha1.Phase]bool{}}
	changes, err := live.Kube.Watch(t.Context(), &v1alpha1.RedisClusterList{}, client.InNamespace(cluster.Namespace),
		&client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: cluster.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	var over sync.WaitGroup
	over.Go(func() {
		for event := range changes.ResultChan() {
			if changed, ok := event.Object.(*v1alpha1.RedisCluster); ok && changed.Name == cluster.Name {
				seen.add(changed.Status)
			}
		}
	})
	start := time.Now()
	live.Eventually(t, fmt.Sprintf("%d shards of %d instances in all are Ready", *cluster.Spec.Shards, *cluster.Spec.Replicas), func() error {
		return live.IsReady(t, cluster)
	})
	changes.Stop()
	over.Wait()
	t.Logf("to %d shards: %.1f s, %d slots, method %s", *cluster.Spec.Shards, time.Since(start).Seconds(), seen.slotsTotal, seen.method)
	return seen
}

func (p *progress) add(s v1alpha1.RedisClusterStatus) {
	p.phases[s.Phase] = true
	if s.Plan != nil {
		planned := 0
		for _, move := range s.Plan.Moves {
			planned += int(move.Count)
		}
		p.slotsPlanned = max(p.slotsPlanned, planned)
	}
	if m := s.Migration; m != nil {
		p.slotsTotal = max(p.slotsTotal, int(m.SlotsTotal))
		if m.Method != "" {
			p.method = m.Method
		}
	}
}
