// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"

	"middleware.hc.cn/operator/test/live"
)

// Instances per shard come and go; a master that is to go hands its shard over first. Then
// a new master receives exactly what assignStrategies says.
func TestRedisClusterScalesInstances(t *testing.T) {
	shownElsewhere(t, "TestScales and TestAssigns of the simulation; TestRedisClusterScales")
	parallel(t)
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		cluster.Spec.Repository, cluster.Spec.Version = "docker.io/valkey/valkey", "9.1.2"
		cluster.Spec.Storage.Retain = v1alpha1.Retain
		cluster.Spec.SpreadMasters = ptr.To(false) // masters stay where this test makes them
		load := underLoad(t, cluster, 12000)

		t.Run("a replica more for each shard", func(t *testing.T) {
			setSize(t, cluster, 3, 9)
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 3, 9)
			wantTables(t, cluster, balanced(3))
		})
		t.Run("and a replica less, although one is the master by now", func(t *testing.T) {
			promoted := cluster.Name + "-1-2"
			if out, err := cli(t.Context(), cluster, promoted, "cluster", "failover"); err != nil || out != "OK" {
				t.Fatalf("%v: %s", err, out)
			}
			live.Eventually(t, promoted+" is the master", func() error {
				if err := live.Get(t, cluster); err != nil {
					return err
				}
				if got, found := masterOf(cluster, 1); !found || got.Name != promoted {
					return fmt.Errorf("it is %q", got.Name)
				}
				return nil
			})
			setSize(t, cluster, 3, 6)
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 3, 6)
			wantTables(t, cluster, balanced(3))
			wantClaims(t, cluster, 9) // they are retained
		})
		t.Run("AssignReceive refuses nodes that are not there", func(t *testing.T) {
			assign(t, cluster, v1alpha1.AssignStrategy{Slots: 300, FromReplicas: strings.Repeat("0", 40)})
			live.Eventually(t, "it says which field is wrong", func() error {
				if err := live.Get(t, cluster); err != nil {
					return err
				}
				stalled := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled)
				if stalled == nil || stalled.Status != "True" ||
					!strings.Contains(stalled.Message, "spec.updateStrategy.assignStrategies[0].fromReplicas") {
					return fmt.Errorf("stalled is %+v", stalled)
				}
				return nil
			})
		})
		t.Run("AssignReceive takes exactly what it is told to", func(t *testing.T) {
			first, third := master(t, cluster, 0), master(t, cluster, 2)
			before := ownedByShard(cluster)
			assign(t, cluster, v1alpha1.AssignStrategy{Slots: 300, FromReplicas: first.NodeID + "," + third.NodeID})
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 4, 8)
			after := ownedByShard(cluster)
			if before[0]-after[0] != 150 || before[1] != after[1] || before[2]-after[2] != 150 || after[3] != 300 {
				t.Errorf("slots by shard were %v and are %v; shards 0 and 2 should have given 150 each", before, after)
			}
		})
		t.Run("AssignReceive moves slots to a shard that exists", func(t *testing.T) {
			before, source := ownedByShard(cluster), master(t, cluster, 1).NodeID
			live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
				c.Spec.UpdateStrategy.AssignStrategies = []v1alpha1.AssignStrategy{{Slots: 1000, FromReplicas: source, ToShard: ptr.To[int32](3)}}
			})
			live.Ready(t, cluster)
			if after := ownedByShard(cluster); before[1]-after[1] != 700 || before[0] != after[0] || before[2] != after[2] || after[3] != 1000 {
				t.Errorf("slots by shard were %v and are %v; shard 1 should have given 700 to shard 3", before, after)
			}
		})
		t.Run("back to AutoReceive they are balanced", func(t *testing.T) {
			live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
				c.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AutoReceive}
			})
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 4, 8)
			wantTables(t, cluster, balanced(4))
		})
		run.WantUnnoticed(load, v1alpha1.MigrationAtomic)
	})
}

// assign asks for a fourth shard that receives what the strategy says.
func assign(t *testing.T, cluster *v1alpha1.RedisCluster, strategy v1alpha1.AssignStrategy) {
	t.Helper()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AssignReceive, AssignStrategies: []v1alpha1.AssignStrategy{strategy}}
		shards, instances := int32(4), int32(8)
		c.Spec.Shards, c.Spec.Replicas = &shards, &instances
	})
}

// Data that would not fit into the shards that stay is not moved, unless that is allowed.
func TestRedisClusterScaleInNeedsRoom(t *testing.T) {
	shownElsewhere(t, "TestCapacity of the planner")
	parallel(t)
	cluster := newCluster(live.NewNamespace(t), "small")
	four := int32(4)
	cluster.Spec.Shards, cluster.Spec.Replicas = &four, &four
	// A cache: it evicts rather than refuse.
	cluster.Spec.Config = map[string]string{"maxmemory": "12mb", "maxmemory-policy": "allkeys-lru"}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	load := live.NewLoad(t, cluster)
	// 10 MB a shard of four are more than 12 MB a shard of three.
	if out, err := load.Application.Do(t.Context(), "fill", "--keys", "33000", "--sizes", "1000"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	setSize(t, cluster, 3, 3)
	live.Eventually(t, "it refuses, with the numbers and the way out", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		if s := cluster.Status; s.ObservedGeneration != cluster.Generation ||
			!strings.Contains(s.Reason, "more than the 12.0 MiB of maxmemory") || !strings.Contains(s.Reason, v1alpha1.AnnotationOverCapacity) {
			return errors.New(s.Reason)
		}
		return nil
	})
	if owned := ownedByShard(cluster); len(owned) != 4 || owned[3] != 4096 {
		t.Errorf("slots by shard are %v although the scale-in was refused", owned)
	}
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Annotations = map[string]string{v1alpha1.AnnotationOverCapacity: "true"}
	})
	live.Eventually(t, "three shards are left", func() error {
		if err := live.IsReady(t, cluster); err != nil {
			return err
		}
		if len(ownedByShard(cluster)) != 3 {
			return errors.New("there are four")
		}
		return nil
	})
	wantHealthy(t, cluster, 3, 3)
	wantTables(t, cluster, balanced(3))
}
