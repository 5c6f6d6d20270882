// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// Two of three masters die at the same moment, and there is no place for their pods. Nobody is left to elect; their replicas, which
// have all that they had, take over on the operator's word, and what is written then is there when the masters come back.
func TestRedisClusterLosesMostMasters(t *testing.T) {
	if !live.Local() {
		t.Skip("only the local cluster's processes can be killed")
	}
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
	cluster.Spec.SpreadMasters = ptr.To(false)
	live.Create(t, cluster)
	live.Ready(t, cluster)
	keys := 200
	write(t, cluster, keys)
	lost := []v1alpha1.NodeStatus{ofRole(t, cluster, 0, "master"), ofRole(t, cluster, 1, "master")}
	heirs := []string{ofRole(t, cluster, 0, "slave").Name, ofRole(t, cluster, 1, "slave").Name}
	survivor := ofRole(t, cluster, 2, "master").Name

	cordonAll(t, true)
	uncordoned := false
	defer func() {
		if !uncordoned {
			cordonAll(t, false)
		}
	}()
	uids := podUIDs(t, cluster)
	for _, node := range lost {
		if n := live.Signal(t, syscall.SIGKILL, "redis-server", uids[node.Name]); n != 1 {
			t.Fatalf("%d processes of %s were killed", n, node.Name)
		}
	}
	start := time.Now()
	killed := killPods(t, cluster, lost[0].Name, lost[1].Name)
	live.Eventually(t, "their replicas serve", func() error {
		for _, heir := range heirs {
			if line, err := itself(t, cluster, heir); err != nil || !strings.Contains(line, "myself,master") {
				return errors.Join(err, fmt.Errorf("%s says of itself: %s", heir, line))
			}
		}
		if info, err := cli(t.Context(), cluster, survivor, "cluster", "info"); err != nil || !strings.Contains(info, "cluster_state:ok") {
			return errors.Join(err, fmt.Errorf("%s: %s", survivor, info))
		}
		return nil
	})
	t.Logf("all slots are served %.1f s after most masters died, without them", time.Since(start).Seconds())
	wantKeysFrom(t, cluster, survivor, keys)
	command(t, cluster, survivor, "-c", "set", "written-meanwhile", "1")
	if err := live.IsReady(t, cluster); err == nil {
		t.Error("the cluster says that it is Ready, and two instances have no place to run")
	}

	start = time.Now()
	cordonAll(t, false)
	uncordoned = true
	settled(t, cluster, killed)
	t.Logf("Ready %.1f s after there was a place for them", time.Since(start).Seconds())
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
	if got, err := cli(t.Context(), cluster, survivor, "-c", "get", "written-meanwhile"); err != nil || got != "1" {
		t.Errorf("what was written while the masters were away is %q (%v)", got, err)
	}
	for _, node := range lost {
		for _, now := range cluster.Status.Nodes {
			if now.NodeID == node.NodeID && now.Type == "master" {
				t.Errorf("%s came back and is a master of shard %d", now.Name, now.Shard)
			}
		}
	}
}

// A node that has two of three masters is lost. They may run behind a broken network and win every vote, so nobody takes over, until
// Kubernetes is told that the node is out of service.
func TestRedisClusterLosesANodeOfMostMasters(t *testing.T) {
	if !live.Local() || os.Getenv("E2E") != "all" {
		t.Skip("takes minutes: with E2E=all, on the local cluster, whose nodes can be switched off")
	}
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
	cluster.Spec.SpreadMasters = ptr.To(false)
	live.Create(t, cluster)
	live.Ready(t, cluster)
	keys := 200
	write(t, cluster, keys)
	lost := gatherMasters(t, cluster)
	var survivor string
	for _, n := range cluster.Status.Nodes {
		if n.Hostname != lost {
			survivor = n.Name
		}
	}

	node(t, "stop", lost)
	start := time.Now()
	defer func() {
		outOfService(t, lost, false)
		node(t, "start", lost)
		live.Eventually(t, "it is Ready with the node", func() error { return errors.Join(live.IsReady(t, cluster), everyPodServes(t, cluster)) })
		wantKeys(t, cluster, keys)
		wantHealthy(t, cluster, 3, 6)
	}()
	live.Eventually(t, "its pods are to go", func() error {
		for _, pod := range podsOf(t, cluster) {
			if pod.Spec.NodeName == lost && pod.DeletionTimestamp == nil {
				return fmt.Errorf("%s is not", pod.Name)
			}
		}
		return nil
	})
	time.Sleep(electionTimeout)
	if err := live.Get(t, cluster); err != nil || cluster.Status.Slots == 16384 {
		t.Errorf("%d slots are served while two masters may run (%v)", cluster.Status.Slots, err)
	}
	outOfService(t, lost, true)
	told := time.Now()
	live.Eventually(t, "all slots are served", func() error {
		if err := live.Get(t, cluster); err != nil || cluster.Status.Slots != 16384 {
			return errors.Join(err, fmt.Errorf("%d slots", cluster.Status.Slots))
		}
		return nil
	})
	t.Logf("all slots are served %.1f s after the node was lost, %.1f s after Kubernetes was told so", time.Since(start).Seconds(),
		time.Since(told).Seconds())
	wantKeysFrom(t, cluster, survivor, keys)
}

// Masters that were concentrated on one node spread by themselves, and clients notice nothing.
func TestRedisClusterPartsItsMasters(t *testing.T) {
	shownElsewhere(t, "TestMastersPartBeforeTheNextNodeIsLost of the simulation")
	parallel(t)
	if !live.Local() {
		t.Skip("needs instances on three nodes")
	}
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		cluster.Spec.SpreadMasters = ptr.To(false)
		live.Create(t, cluster)
		live.Ready(t, cluster)
		crowded := gatherMasters(t, cluster)
		live.Eventually(t, "it says so", func() error { return wantSpread(t, cluster, "Disabled", "node "+crowded+" runs 2 of 3 masters") })
		load := live.NewLoad(t, cluster)
		load.Fill(1000)
		load.Start()
		live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.SpreadMasters = nil })
		start := time.Now()
		live.Eventually(t, "masters are apart",
			func() error { return errors.Join(wantSpread(t, cluster, "Spread", ""), live.IsReady(t, cluster)) })
		t.Logf("apart %.1f s after they may be", time.Since(start).Seconds())
		on := map[string]int{}
		for _, n := range cluster.Status.Nodes {
			if n.Type == "master" {
				on[n.Hostname]++
			}
		}
		if len(on) != 3 {
			t.Errorf("masters are on %v", on)
		}
		run.WantUnnoticed(load, live.NothingMoved)
	})
}

// wantSpread is nil when the condition MastersSpread has a reason, and its message begins with some words.
func wantSpread(t *testing.T, cluster *v1alpha1.RedisCluster, reason, message string) error {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		return err
	}
	c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionMastersSpread)
	if c == nil || c.Reason != reason || !strings.HasPrefix(c.Message, message) {
		return fmt.Errorf("MastersSpread is %+v, want %s: %s", c, reason, message)
	}
	return nil
}

// electionTimeout is how long the operator leaves an election to Redis.
const electionTimeout = 30 * time.Second

// gatherMasters makes two masters run on one node, by hand, and returns the node.
func gatherMasters(t *testing.T, cluster *v1alpha1.RedisCluster) string {
	t.Helper()
	on := map[string][]v1alpha1.NodeStatus{}
	for _, n := range cluster.Status.Nodes {
		on[n.Hostname] = append(on[n.Hostname], n)
	}
	for name, instances := range on {
		if len(instances) != 2 || instances[0].Shard == instances[1].Shard {
			continue
		}
		for _, instance := range instances {
			if instance.Type != "master" {
				command(t, cluster, instance.Name, "cluster", "failover")
			}
			live.Eventually(t, instance.Name+" is a master", func() error {
				line, err := itself(t, cluster, instance.Name)
				if err != nil || !strings.Contains(line, "myself,master") {
					return errors.Join(err, errors.New(line))
				}
				return nil
			})
		}
		live.Eventually(t, "it is Ready", func() error { return live.IsReady(t, cluster) })
		return name
	}
	t.Fatalf("no node has instances of two shards: %+v", cluster.Status.Nodes)
	return ""
}

// outOfService tells Kubernetes that a node is switched off, or takes that back.
func outOfService(t *testing.T, name string, out bool) {
	t.Helper()
	taint := corev1.Taint{Key: corev1.TaintNodeOutOfService, Value: "nodeshutdown", Effect: corev1.TaintEffectNoExecute}
	live.Change(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, func(n *corev1.Node) {
		n.Spec.Taints = slices.DeleteFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.MatchTaint(&taint) })
		if out {
			n.Spec.Taints = append(n.Spec.Taints, taint)
		}
	})
}

// cordonAll keeps new pods off all nodes, or lets them come again.
func cordonAll(t *testing.T, cordoned bool) {
	t.Helper()
	var nodes corev1.NodeList
	if err := live.Kube.List(t.Context(), &nodes); err != nil {
		t.Fatal(err)
	}
	for i := range nodes.Items {
		cordon(t, nodes.Items[i].Name, cordoned)
	}
}
