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
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// gently is a limit under which moving slots takes several seconds, so that something can
// happen in the middle.
const gently = 600 // keys a second

// A scaling that meets another change of mind: the opposite order, a pause, kubectl scale.
// The load notices none of it.
func TestRedisClusterChangesItsMindWhileScaling(t *testing.T) {
	cluster := newCluster(newNamespace(t), "cache")
	cluster.Spec.UpdateStrategy.KeysPerSecond = gently
	create(t, cluster)
	ready(t, cluster)
	load := newLoad(t, cluster)
	load.fill(12000)
	load.start()

	t.Run("reversed in the middle", func(t *testing.T) {
		setInstances(t, cluster, 12)
		midway(t, cluster)
		setInstances(t, cluster, 6)
		ready(t, cluster)
		wantWhole(t, cluster, 3, 6)
		wantTables(t, cluster, balanced(3))
	})
	t.Run("paused in the middle", func(t *testing.T) {
		setInstances(t, cluster, 8)
		midway(t, cluster)
		change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
		eventually(t, "it is paused", func() error { return inPhase(t, cluster, v1alpha1.PhasePaused) })
		before := slotsByNode(t, cluster)
		time.Sleep(2 * time.Second) // long enough for a thousand keys
		if after := slotsByNode(t, cluster); !maps.Equal(before, after) {
			t.Errorf("slots moved while it was paused: %v, then %v", before, after)
		}
		change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
		ready(t, cluster)
		wantWhole(t, cluster, 4, 8)
		wantTables(t, cluster, balanced(4))
	})
	// Without a limit from here on.
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.UpdateStrategy.KeysPerSecond = 0 })
	t.Run("by kubectl scale", func(t *testing.T) {
		out, err := exec.CommandContext(t.Context(), "kubectl", "scale", "rec/"+cluster.Name, "--namespace", cluster.Namespace, "--replicas=10").CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		ready(t, cluster)
		wantWhole(t, cluster, 5, 10)
	})
	t.Run("by the scale subresource, as an autoscaler does", func(t *testing.T) {
		scale := &autoscalingv1.Scale{}
		if err := kube.SubResource("scale").Get(t.Context(), cluster, scale); err != nil {
			t.Fatal(err)
		}
		if scale.Status.Replicas != 10 || scale.Status.Selector == "" {
			t.Errorf("the scale subresource tells %d replicas and the selector %q", scale.Status.Replicas, scale.Status.Selector)
		}
		scale.Spec.Replicas = 6
		if err := kube.SubResource("scale").Update(t.Context(), cluster, client.WithSubResourceBody(scale)); err != nil {
			t.Fatal(err)
		}
		ready(t, cluster)
		wantWhole(t, cluster, 3, 6)
		wantTables(t, cluster, balanced(3))
	})
	wantUnnoticed(t, load.stop())
	load.wantData()
}

func setInstances(t *testing.T, cluster *v1alpha1.RedisCluster, instances int32) {
	t.Helper()
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Replicas = ptr.To(instances) })
}

// midway waits until some of the slots have moved and some have not.
func midway(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	eventually(t, "some slots have moved and some have not", func() error {
		if err := get(t, cluster); err != nil {
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
	if err := get(t, cluster); err != nil || cluster.Status.Phase != phase {
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
