// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// Addresses of pods are used again. All pods of two clusters are killed, and each comes back where a pod of the other cluster was;
// what each has on disk still says otherwise. There is no password that would keep them apart.
func TestRedisClusterPodsSwapAddresses(t *testing.T) {
	if !live.Local() {
		t.Skip("only on the local cluster is it known how addresses are given away")
	}
	namespace := live.NewNamespace(t)
	clusters := []*v1alpha1.RedisCluster{newCluster(namespace, "one"), newCluster(namespace, "other")}
	for _, cluster := range clusters {
		cluster.Spec.Auth.Enabled = new(false)
		cluster.Spec.Config = map[string]string{"cluster-node-timeout": "2000"}
		live.Create(t, cluster)
	}
	of := map[string]string{} // the cluster that a node ID is of
	counts := map[string]int{"one": 150, "other": 70}
	for _, cluster := range clusters {
		live.Ready(t, cluster)
		write(t, cluster, counts[cluster.Name])
		for _, node := range cluster.Status.Nodes {
			of[node.NodeID] = cluster.Name
		}
	}

	start := time.Now()
	swapped := swapAddresses(t, clusters[0], clusters[1])
	t.Logf("%d pairs of pods have swapped their addresses after %.1f s", swapped, time.Since(start).Seconds())
	start = time.Now()
	for _, cluster := range clusters {
		settled(t, cluster, nil)
		t.Logf("%s is Ready %.1f s after the last pod had its address", cluster.Name, time.Since(start).Seconds())
	}
	for _, cluster := range clusters {
		wantKeys(t, cluster, counts[cluster.Name])
		wantHealthy(t, cluster, 3, 6)
		wantOnly(t, cluster, of, counts[cluster.Name])
	}
}

// wantOnly asks every instance: it knows the six nodes that its cluster had and no others, and the masters have this many keys.
func wantOnly(t *testing.T, cluster *v1alpha1.RedisCluster, of map[string]string, keys int) {
	t.Helper()
	answers, err := askAll(t, cluster, "cluster", "nodes")
	if err != nil {
		t.Fatal(err)
	}
	for name, table := range answers {
		if n := strings.Count(table+"\n", "\n"); n != 6 {
			t.Errorf("%s knows %d nodes:\n%s", name, n, table)
		}
		for line := range strings.Lines(table) {
			if id, _, _ := strings.Cut(line, " "); of[id] != cluster.Name {
				t.Errorf("%s of cluster %s knows a node of cluster %q: %s", name, cluster.Name, of[id], line)
			}
		}
	}
	total := 0
	for shard := range int32(3) {
		out, err := cli(t.Context(), cluster, ofRole(t, cluster, shard, "master").Name, "dbsize")
		var n int
		if _, scanned := fmt.Sscan(strings.TrimPrefix(out, "(integer) "), &n); err != nil || scanned != nil {
			t.Fatalf("dbsize: %v: %s", err, out)
		}
		total += n
	}
	if total != keys {
		t.Errorf("the masters of %s hold %d keys, want %d", cluster.Name, total, keys)
	}
}

// swapAddresses kills all pods of two clusters and lets them come back on their nodes, where their claims are, so that pairs of them
// have each other's address. It returns how many pairs there are.
func swapAddresses(t *testing.T, one, other *v1alpha1.RedisCluster) int {
	t.Helper()
	before := append(podsOf(t, one), podsOf(t, other)...)
	want, pairs := exchange(before)
	if pairs < 3 {
		t.Fatalf("only %d pairs of pods share a node", pairs)
	}
	cordonAll(t, true)
	defer cordonAll(t, false)
	killPods(t, one, names(one)...)
	killPods(t, other, names(other)...)
	for _, pod := range before {
		live.Eventually(t, pod.Status.PodIP+" is free", func() error {
			if _, err := os.Stat(filepath.Join(leases(t, pod.Spec.NodeName), pod.Status.PodIP)); !os.IsNotExist(err) {
				return errors.Join(err, fmt.Errorf("%s has it still", pod.Name))
			}
			return nil
		})
	}
	for _, pod := range before {
		putAt(t, pod, want[pod.Name])
	}
	return pairs
}

// exchange gives each pod the address of a pod of the other cluster on its node, by name. Pods without one keep theirs.
func exchange(pods []corev1.Pod) (want map[string]string, pairs int) {
	want = map[string]string{}
	for _, a := range pods {
		for _, b := range pods {
			sameNode := a.Spec.NodeName == b.Spec.NodeName && a.Labels[v1alpha1.LabelCluster] < b.Labels[v1alpha1.LabelCluster]
			if sameNode && want[a.Name] == "" && want[b.Name] == "" {
				want[a.Name], want[b.Name] = b.Status.PodIP, a.Status.PodIP
				pairs++
			}
		}
	}
	for _, pod := range pods {
		if want[pod.Name] == "" {
			want[pod.Name] = pod.Status.PodIP
		}
	}
	return want, pairs
}

// putAt starts a pod that waits for a node on the one where its predecessor was, at an address that is free: the next that the node's
// address plugin (host-local) gives away.
func putAt(t *testing.T, before corev1.Pod, address string) {
	t.Helper()
	previous := netip.MustParseAddr(address).Prev().String()
	if err := os.WriteFile(filepath.Join(leases(t, before.Spec.NodeName), "last_reserved_ip.0"), []byte(previous), 0o600); err != nil {
		t.Fatal(err)
	}
	binding := &corev1.Binding{ObjectMeta: metav1.ObjectMeta{Namespace: before.Namespace, Name: before.Name},
		Target: corev1.ObjectReference{Kind: "Node", Name: before.Spec.NodeName}}
	pod := &corev1.Pod{ObjectMeta: binding.ObjectMeta}
	live.Eventually(t, before.Name+" is on its node", func() error {
		if err := live.Get(t, pod); err != nil {
			return err
		}
		if pod.UID == before.UID {
			return fmt.Errorf("%s is still the killed one", pod.Name)
		}
		return live.Clientset.CoreV1().Pods(before.Namespace).Bind(t.Context(), binding, metav1.CreateOptions{})
	})
	live.Eventually(t, before.Name+" has an address", func() error {
		if err := live.Get(t, pod); err != nil || pod.Status.PodIP == "" {
			return errors.Join(err, errors.New("none yet"))
		}
		return nil
	})
	if pod.Status.PodIP != address {
		t.Fatalf("%s is at %s, want %s", pod.Name, pod.Status.PodIP, address)
	}
}

// leases is where host-local keeps the addresses that it has given away on a node, a file each, and the last one.
func leases(t *testing.T, node string) string {
	t.Helper()
	cache := os.Getenv("MIDDLEWARE_OPERATOR_CACHE")
	if cache == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		cache = filepath.Join(user, "middleware-operator")
	}
	return filepath.Join(cache, "clusters", cmp.Or(os.Getenv("MIDDLEWARE_OPERATOR_CLUSTER"), "local"), "members", node, "var", "lib", "cni",
		"cluster")
}

func podsOf(t *testing.T, cluster *v1alpha1.RedisCluster) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		t.Fatal(err)
	}
	return pods.Items
}
