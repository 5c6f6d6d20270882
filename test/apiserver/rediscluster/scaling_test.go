// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
)

// scaleTo is what kubectl scale and a HorizontalPodAutoscaler do.
func scaleTo(t *testing.T, cluster *v1alpha1.RedisCluster, replicas int32) {
	t.Helper()
	eventually(t, "the scale is written", func() string { // the operator may write in between
		scale := &autoscalingv1.Scale{}
		check(t, api.SubResource("scale").Get(t.Context(), cluster, scale))
		scale.Spec.Replicas = replicas
		if err := api.SubResource("scale").Update(t.Context(), cluster, client.WithSubResourceBody(scale)); err != nil {
			return err.Error()
		}
		return ""
	})
	get(t, cluster)
}

// slotsOf are how many slots each shard's master owns.
func slotsOf(t *testing.T, cluster *v1alpha1.RedisCluster) map[int32]int {
	t.Helper()
	owned := map[int32]int{}
	for _, node := range cluster.Status.Nodes {
		if node.Type == "master" {
			owned[node.Shard] = countSlots(t, node.Slots)
		}
	}
	return owned
}

func countSlots(t *testing.T, text string) int {
	t.Helper()
	n := 0
	for part := range strings.SplitSeq(text, ",") {
		var first, last int
		if _, err := fmt.Sscanf(part, "%d-%d", &first, &last); err != nil {
			last = first
		}
		n += last - first + 1
	}
	return n
}

// Through the scale subresource: what is to move is shown while the cluster is paused, and
// then moves; a shard that is not asked for any more goes, and nothing of it stays.
func TestScale(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Shards = nil })
	scaleTo(t, cluster, 8)
	awaitWhole(t, cluster)
	if diff := cmp.Diff(map[int32]int{0: 4096, 1: 4096, 2: 4096, 3: 4096}, slotsOf(t, cluster)); diff != "" {
		t.Errorf("slots by shard (-want +got):\n%s", diff)
	}
	if cluster.Status.Migration != nil || len(cluster.Status.Plan.Moves) > 0 {
		t.Errorf("after all slots have moved: %+v, %+v", cluster.Status.Migration, cluster.Status.Plan)
	}
	eventually(t, "what happened is told", func() string {
		if told := said(t, cluster); told["Normal RecordGoal"] != 1 || told["Normal MoveSlots"] == 0 {
			return fmt.Sprint(told)
		}
		return ""
	})

	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
	awaitPhase(t, cluster, v1alpha1.PhasePaused, "")
	scaleTo(t, cluster, 6)
	eventually(t, "the plan is shown", func() string {
		get(t, cluster)
		total := int32(0)
		for _, move := range cluster.Status.Plan.Moves {
			total += move.Count
			if !strings.HasPrefix(move.From, "cache-3-") {
				return fmt.Sprintf("%+v", move)
			}
		}
		if total != 4096 || cluster.Status.Migration != nil {
			return fmt.Sprintf("%d slots are to move, migration %+v, plan %+v", total, cluster.Status.Migration, cluster.Status.Plan)
		}
		return ""
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = false })
	awaitWhole(t, cluster)
	for _, set := range statefulSets(t, cluster) {
		if strings.Contains(set, "cache-3") {
			t.Errorf("StatefulSet %s is still there", set)
		}
	}
	if len(cluster.Status.Nodes) != 6 {
		t.Errorf("nodes are %+v", cluster.Status.Nodes)
	}
}

// An operator that starts anew in the middle goes on with the goal that was recorded.
func TestScalingGoesOnAfterRestart(t *testing.T) {
	t.Parallel()
	cluster, op, k := running(t)
	masters := map[int32]string{}
	for _, node := range cluster.Status.Nodes {
		if node.Type == "master" {
			masters[node.Shard] = node.NodeID
		}
	}
	// The operator stops at one of the commands that move slots.
	reached, release := make(chan struct{}), make(chan struct{})
	var commands atomic.Int64
	k.world.OnCommand(func(_ *redistest.Node, args []string) {
		if len(args) > 1 && strings.EqualFold(args[1], "SETSLOT") && commands.Add(1) == 1000 {
			close(reached)
			<-release
		}
	})
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Replicas, c.Spec.Shards = new(int32(8)), new(int32(4))
		c.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AssignReceive,
			AssignStrategies: []v1alpha1.AssignStrategy{{Slots: 3001, FromReplicas: masters[0] + "," + masters[1]}}}
	})
	<-reached
	op.stop()
	close(release)
	get(t, cluster)
	if m := cluster.Status.Migration; m == nil || m.SlotsTotal != 3001 {
		t.Errorf("the goal was not recorded before slots moved: %+v", m)
	}
	startOperator(t, cluster.Namespace, k.world)
	awaitWhole(t, cluster)
	if diff := cmp.Diff(map[int32]int{0: 3961, 1: 3961, 2: 5461, 3: 3001}, slotsOf(t, cluster)); diff != "" {
		t.Errorf("slots by shard (-want +got):\n%s", diff)
	}
}

// A cluster begins with one shard, becomes one of three, and one of one again. Fewer than three instances are for those who say how
// many masters there are.
func TestBeginsWithOneShard(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Replicas = new(int32(2))
	unsaid := cluster.DeepCopy()
	unsaid.Name = "unsaid"
	create(t, unsaid)
	awaitStalled(t, unsaid, "InvalidSpec", "or set shards to 1")
	cluster.Spec.Shards = new(int32(1))
	create(t, cluster)
	awaitWhole(t, cluster)
	for _, shards := range []int32{1, 3, 1} {
		change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = new(shards), new(2*shards) })
		awaitWhole(t, cluster)
		if owned := slotsOf(t, cluster); len(owned) != int(shards) || cluster.Status.Slots != 16384 ||
			len(cluster.Status.Nodes) != int(2*shards) {
			t.Errorf("slots by shard %v of %d instances, want %d shards", owned, len(cluster.Status.Nodes), shards)
		}
	}
}
