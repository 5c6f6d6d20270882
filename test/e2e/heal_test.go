// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// A claim that is lost, and files that cannot be read any more, cost the instance its copy and nobody a key.
func TestRedisClusterLosesFiles(t *testing.T) {
	t.Parallel()
	for _, engine := range oldest() {
		t.Run(engine.name, func(t *testing.T) {
			parallel(t)
			cluster := newCluster(live.NewNamespace(t), "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			live.Create(t, cluster)
			live.Ready(t, cluster)
			keys := 200
			write(t, cluster, keys)
			for _, role := range []string{"master", "slave"} {
				t.Run("the claim of a "+role, func(t *testing.T) { losesClaim(t, cluster, ofRole(t, cluster, 1, role), keys) })
				t.Run("nodes.conf of a "+role, func(t *testing.T) { losesNodesConf(t, cluster, ofRole(t, cluster, 2, role), keys) })
			}
		})
	}
}

func losesClaim(t *testing.T, cluster *v1alpha1.RedisCluster, node v1alpha1.NodeStatus, keys int) {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "data-" + node.Name}}
	if err := live.Kube.Delete(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	wantRecreated(t, cluster, node, keys, killPods(t, cluster, node.Name))
}

// losesNodesConf hangs the server first and kills it then: it writes the file whenever something changes, also when it stops.
func losesNodesConf(t *testing.T, cluster *v1alpha1.RedisCluster, node v1alpha1.NodeStatus, keys int) {
	if !live.Local() {
		t.Skip("only the local cluster's processes can be killed")
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: node.Name}}
	if err := live.Get(t, pod); err != nil {
		t.Fatal(err)
	}
	if n := live.Signal(t, syscall.SIGSTOP, "redis-server", string(pod.UID)); n != 1 {
		t.Fatalf("%d servers were stopped", n)
	}
	if out, err := live.Execute(t.Context(), cluster.Namespace, node.Name, "redis", "sh", "-c", "echo damaged > /data/nodes.conf"); err !=
		nil {
		t.Fatalf("%v: %s", err, out)
	}
	live.Signal(t, syscall.SIGKILL, "redis-server", string(pod.UID))
	wantRecreated(t, cluster, node, keys, map[string]bool{string(pod.UID): true})
}

// wantRecreated waits until pods are replaced, an instance is back with another node ID, and all keys are there.
func wantRecreated(t *testing.T, cluster *v1alpha1.RedisCluster, node v1alpha1.NodeStatus, keys int, replaced map[string]bool) {
	t.Helper()
	start := time.Now()
	settled(t, cluster, replaced)
	t.Logf("%s, a %s, renewed after %.1f s", node.Name, node.Type, time.Since(start).Seconds())
	for _, now := range cluster.Status.Nodes {
		if now.Name == node.Name && now.NodeID == node.NodeID {
			t.Errorf("%s still has node ID %s: its files were not lost", node.Name, node.NodeID)
		}
	}
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
}

// ofRole is an instance of a shard that is its master or its replica now.
func ofRole(t *testing.T, cluster *v1alpha1.RedisCluster, shard int32, role string) v1alpha1.NodeStatus {
	t.Helper()
	if err := live.Get(t, cluster); err != nil {
		t.Fatal(err)
	}
	for _, node := range cluster.Status.Nodes {
		if node.Shard == shard && node.Type == role {
			return node
		}
	}
	t.Fatalf("shard %d has no %s: %+v", shard, role, cluster.Status.Nodes)
	return v1alpha1.NodeStatus{}
}

// A node whose power is cut takes its instances with it. Those that keep their data in their pod start elsewhere, although nobody
// says that they have stopped; when the node is back, nothing of the past joins.
func TestRedisClusterLosesANode(t *testing.T) {
	if !live.Local() {
		t.Skip("only the local cluster's nodes can be switched off")
	}
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Storage = nil
	cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	keys := 200
	write(t, cluster, keys)

	lost := master(t, cluster, 0).Hostname
	start := time.Now()
	node(t, "stop", lost)
	back := false
	defer func() {
		if !back {
			node(t, "start", lost)
		}
	}()
	live.Eventually(t, "every instance serves on another node", func() error {
		if err := live.IsReady(t, cluster); err != nil {
			return err
		}
		for _, n := range cluster.Status.Nodes {
			if n.Hostname == lost {
				return fmt.Errorf("%s is on the lost node", n.Name)
			}
		}
		return everyPodServes(t, cluster)
	})
	t.Logf("whole again %.1f s after the node was lost", time.Since(start).Seconds())
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)

	node(t, "start", lost)
	back = true
	live.Eventually(t, "the node is back", func() error {
		var n corev1.Node
		n.Name = lost
		if err := live.Get(t, &n); err != nil {
			return err
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue {
				return nil
			}
		}
		return fmt.Errorf("%s is not ready", lost)
	})
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
}

// node switches a node of the local cluster off or on.
func node(t *testing.T, verb, name string) {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), filepath.Join("..", "..", "hack", "cluster.sh"), "node", verb, name).CombinedOutput()
	if err != nil {
		t.Fatalf("node %s %s: %v: %s", verb, name, err, out)
	}
}

// All instances of a shard are killed at once, and come back with its data.
func TestRedisClusterLosesAShard(t *testing.T) {
	parallel(t)
	cluster := newCluster(live.NewNamespace(t), "cache")
	live.Create(t, cluster)
	live.Ready(t, cluster)
	keys := 200
	write(t, cluster, keys)
	start := time.Now()
	settled(t, cluster, killPods(t, cluster, ofRole(t, cluster, 1, "master").Name, ofRole(t, cluster, 1, "slave").Name))
	t.Logf("whole again after %.1f s", time.Since(start).Seconds())
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
}

// While the API server does not answer, a master is killed, which its kubelet starts again, and another hangs, whose replica Redis
// elects. When the API server is back, so is the operator, and it does nothing that Redis has not done already.
func TestRedisClusterWithoutAPIServer(t *testing.T) {
	if !live.Local() {
		t.Skip("only the local cluster's API server can be stopped")
	}
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
	cluster.Spec.SpreadMasters = ptr.To(false) // masters stay where this test makes them
	live.Create(t, cluster)
	live.Ready(t, cluster)
	keys := 200
	write(t, cluster, keys)
	killed, hung := ofRole(t, cluster, 1, "master"), ofRole(t, cluster, 0, "master")
	before := podUIDs(t, cluster)
	away := 25 * time.Second // the operator's lease ends after fifteen
	if os.Getenv("E2E") == "all" {
		away = 150 * time.Second
	}
	const apiServer, controlPlane = "kube-apiserver", "/control-plane/"

	start := time.Now()
	if n := live.Signal(t, syscall.SIGSTOP, apiServer, controlPlane); n != 1 {
		t.Fatalf("%d API servers were stopped", n)
	}
	defer live.Signal(t, syscall.SIGCONT, apiServer, controlPlane)
	if n := live.Signal(t, syscall.SIGKILL, "redis-server", before[killed.Name]); n != 1 {
		t.Fatalf("%d masters were killed", n)
	}
	time.Sleep(8 * time.Second) // the kubelet looks every second
	if n := live.Signal(t, syscall.SIGSTOP, "redis-server", before[hung.Name]); n != 1 {
		t.Fatalf("%d masters were stopped", n)
	}
	time.Sleep(12 * time.Second) // an election takes three
	live.Signal(t, syscall.SIGCONT, "redis-server", before[hung.Name])
	time.Sleep(away - time.Since(start))
	live.Signal(t, syscall.SIGCONT, apiServer, controlPlane)

	live.Eventually(t, "the operator sees who was elected", func() error {
		if err := live.IsReady(t, cluster); err != nil {
			return err
		}
		for _, node := range cluster.Status.Nodes {
			if node.Name == hung.Name && node.Type == "master" {
				return fmt.Errorf("%s is the master still", hung.Name)
			}
		}
		return nil
	})
	t.Logf("the API server was stopped for %.0f s; Ready %.1f s after that", away.Seconds(), (time.Since(start) - away).Seconds())
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
	wantRestarted(t, cluster, killed.Name)
	if after := podUIDs(t, cluster); !maps.Equal(before, after) {
		t.Errorf("pods were replaced: %v, before %v", after, before)
	}
	events, err := live.Clientset.CoreV1().Events(cluster.Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if slices.Contains([]string{"Promote", "Forget", "ForceDelete", "Recreate", "Switchover", "Restart"}, e.Reason) {
			t.Errorf("the operator did %s: %s", e.Reason, e.Message)
		}
	}
}

// wantRestarted checks that the kubelet has started the Redis of a pod again.
func wantRestarted(t *testing.T, cluster *v1alpha1.RedisCluster, name string) {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name}}
	if err := live.Get(t, pod); err != nil {
		t.Fatal(err)
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == "redis" && c.RestartCount != 1 {
			t.Errorf("the Redis of %s was started again %d times, want once", name, c.RestartCount)
		}
	}
}
