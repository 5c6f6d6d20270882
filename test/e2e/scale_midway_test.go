// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"testing"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"

	"middleware.hc.cn/operator/test/live"
)

// gently is a limit under which moving slots takes several seconds, so that something can
// happen in the middle.
const gently = 600 // keys a second

// A scaling that meets another change of mind: the opposite order, a pause, kubectl scale.
// The load notices none of it.
func TestRedisClusterChangesItsMindWhileScaling(t *testing.T) {
	shownElsewhere(t, "TestLateWrites and the chains of the simulation, in which a change meets another")
	parallel(t)
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		cluster.Spec.UpdateStrategy.KeysPerSecond = gently
		load := underLoad(t, cluster, 12000)

		t.Run("reversed in the middle", func(t *testing.T) {
			setInstances(t, cluster, 12)
			midway(t, cluster)
			setInstances(t, cluster, 6)
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 3, 6)
			wantTables(t, cluster, balanced(3))
		})
		t.Run("paused in the middle", func(t *testing.T) {
			setInstances(t, cluster, 8)
			midway(t, cluster)
			live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
			live.Eventually(t, "it is paused", func() error { return inPhase(t, cluster, v1alpha1.PhasePaused) })
			before := slotsByNode(t, cluster)
			time.Sleep(2 * time.Second) // long enough for a thousand keys
			if after := slotsByNode(t, cluster); !maps.Equal(before, after) {
				t.Errorf("slots moved while it was paused: %v, then %v", before, after)
			}
			live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 4, 8)
			wantTables(t, cluster, balanced(4))
		})
		// Without a limit from here on.
		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.UpdateStrategy.KeysPerSecond = 0 })
		t.Run("by kubectl scale", func(t *testing.T) {
			out, err := exec.CommandContext(t.Context(), "kubectl", "scale", "rec/"+cluster.Name, "--namespace", cluster.Namespace,
				"--replicas=10").CombinedOutput()
			if err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 5, 10)
		})
		t.Run("by the scale subresource, as an autoscaler does", func(t *testing.T) {
			scale := &autoscalingv1.Scale{}
			if err := live.Kube.SubResource("scale").Get(t.Context(), cluster, scale); err != nil {
				t.Fatal(err)
			}
			if scale.Status.Replicas != 10 || scale.Status.Selector == "" {
				t.Errorf("the scale subresource tells %d replicas and the selector %q", scale.Status.Replicas, scale.Status.Selector)
			}
			err := retry.RetryOnConflict(retry.DefaultBackoff, func() error { // the operator writes the status of the same object
				if err := live.Kube.SubResource("scale").Get(t.Context(), cluster, scale); err != nil {
					return err
				}
				scale.Spec.Replicas = 6
				return live.Kube.SubResource("scale").Update(t.Context(), cluster, client.WithSubResourceBody(scale))
			})
			if err != nil {
				t.Fatal(err)
			}
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 3, 6)
			wantTables(t, cluster, balanced(3))
		})
		run.WantUnnoticed(load, v1alpha1.MigrationClassic)
	})
}

func setInstances(t *testing.T, cluster *v1alpha1.RedisCluster, instances int32) {
	t.Helper()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Replicas = ptr.To(instances) })
}

// midway waits until some of the slots have moved and some have not.
func midway(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	live.Eventually(t, "some slots have moved and some have not", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		m := cluster.Status.Migration
		if m == nil || m.SlotsTotal == 0 || m.SlotsLeft == m.SlotsTotal {
			return fmt.Errorf("the migration is %+v", m)
		}
		if m.SlotsLeft == 0 {
			t.Fatalf("all slots have moved already: %+v", m)
		}
		return nil
	})
}

func inPhase(t *testing.T, cluster *v1alpha1.RedisCluster, phase v1alpha1.Phase) error {
	if err := live.Get(t, cluster); err != nil || cluster.Status.Phase != phase {
		return errors.Join(err, fmt.Errorf("phase is %q: %s", cluster.Status.Phase, cluster.Status.Reason))
	}
	return nil
}

// slotsByNode asks one instance how many slots each node owns, and fails if one is open.
func slotsByNode(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]int {
	t.Helper()
	nodes, err := table(t, cluster, cluster.Status.Nodes[0].Name)
	if err != nil {
		t.Fatal(err)
	}
	owned := map[string]int{}
	for _, node := range nodes {
		owned[node.id] = node.slots
		if len(node.open) > 0 {
			t.Errorf("%s has open slots: %v", node.id, node.open)
		}
	}
	return owned
}
