// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// Instances whose data is in directories of nodes stay with their nodes, also when another one would take them, and start elsewhere
// when their node is given up.
func TestRedisClusterOnHostPath(t *testing.T) {
	if !live.Local() {
		t.Skip("changes how the operator is installed")
	}
	allowHostPath(t)
	namespace := live.NewNamespace(t)
	live.Change(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		n.Labels["pod-security.kubernetes.io/enforce"] = "privileged"
	})
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Storage = nil
	cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeHostPath}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	const keys = 200
	write(t, cluster, keys)
	before := nodesOf(t, cluster)
	if live.Ready(t, cluster); !maps.Equal(before, cluster.Status.PlacedOn) {
		t.Errorf("pods run on %v, and the status says on %v", before, cluster.Status.PlacedOn)
	}

	settled(t, cluster, killPods(t, cluster, names(cluster)...))
	if after := nodesOf(t, cluster); !maps.Equal(before, after) {
		t.Errorf("pods run on %v, and their data is on %v", after, before)
	}
	wantKeys(t, cluster, keys)

	moved := ofRole(t, cluster, 1, "master")
	cordon(t, moved.Hostname, true)
	uncordoned := false
	defer func() {
		if !uncordoned {
			cordon(t, moved.Hostname, false)
		}
	}()
	killed := killPods(t, cluster, moved.Name)
	live.Eventually(t, "it waits for its node, and the others serve", func() error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: moved.Name}}
		if err := live.Get(t, pod); err != nil || killed[string(pod.UID)] || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.NodeName != "" {
			return errors.Join(err, fmt.Errorf("gates %v, node %s", pod.Spec.SchedulingGates, pod.Spec.NodeName))
		}
		if err := live.Get(t, cluster); err != nil || cluster.Status.Slots != 16384 {
			return errors.Join(err, fmt.Errorf("%d slots", cluster.Status.Slots))
		}
		return nil
	})
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationGiveUpNode, moved.Hostname)
	})
	maps.Copy(killed, killPods(t, cluster, moved.Name))
	settled(t, cluster, killed)
	if now := nodesOf(t, cluster)[moved.Name]; now == moved.Hostname {
		t.Errorf("%s is on %s, which was given up", moved.Name, now)
	}
	cordon(t, moved.Hostname, false)
	uncordoned = true
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
}

// nodesOf is the node of each pod.
func nodesOf(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]string {
	t.Helper()
	nodes := map[string]string{}
	for _, pod := range podsOf(t, cluster) {
		nodes[pod.Name] = pod.Spec.NodeName
	}
	return nodes
}

// allowHostPath installs the operator as config/components/host-path does, until the test ends.
func allowHostPath(t *testing.T) {
	t.Helper()
	role := filepath.Join("..", "..", "config", "components", "host-path", "role.yaml")
	if out, err := exec.CommandContext(t.Context(), "kubectl", "apply", "--server-side", "-f", role).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.CommandContext(context.Background(), "kubectl", "delete", "-f", role).Run() })
	restartOperator(t, "--allow-host-path")
}
