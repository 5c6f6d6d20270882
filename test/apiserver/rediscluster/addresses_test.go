// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"net"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
)

// Addresses of pods are used again. Two clusters without passwords whose instances swap theirs never become one.
func TestSwappedAddresses(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(t *testing.T, k *kubelet, one, other string){
		// The pods are new, and what is known of them is up to date.
		"new pods": func(_ *testing.T, k *kubelet, one, other string) {
			k.kill(map[string]string{one: host(k, other), other: host(k, one)}, one, other)
		},
		// The pods stay (the sandbox was made anew), and Kubernetes tells their new addresses late.
		"told late": func(t *testing.T, k *kubelet, one, other string) {
			first, second := host(k, one), host(k, other)
			const never = "10.9.9.9"
			a, b := k.node(one), k.node(other)
			k.world.Restart(a, never, true)
			k.world.Restart(b, first, true)
			k.world.Restart(a, second, true)
			awaitPasses(t, 20)
			for pod, address := range map[string]string{one: second, other: first} {
				object := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: k.namespace, Name: pod}}
				eventually(t, "the kubelet tells "+pod+"'s address", func() string {
					get(t, object)
					object.Status.PodIP, object.Status.PodIPs = address, []corev1.PodIP{{IP: address}}
					if err := api.Status().Update(context.Background(), object); err != nil {
						return err.Error()
					}
					return ""
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			startOperator(t, namespace, k.world)
			clusters := []*v1alpha1.RedisCluster{newCluster(namespace, "one"), newCluster(namespace, "other")}
			for _, cluster := range clusters {
				cluster.Spec.Auth.Enabled = new(false)
				create(t, cluster)
			}
			ids := map[string]string{} // which cluster a node is of
			for _, cluster := range clusters {
				awaitWhole(t, cluster)
				for _, node := range cluster.Status.Nodes {
					ids[node.NodeID] = cluster.Name
				}
			}
			swap(t, k, "one-0-0", "other-1-0")
			awaitHealed(t, clusters[0].DeepCopy(), "one-0-0")
			awaitHealed(t, clusters[1].DeepCopy(), "other-1-0")
			for _, cluster := range clusters {
				get(t, cluster)
				for _, node := range cluster.Status.Nodes {
					if ids[node.NodeID] != cluster.Name {
						t.Errorf("%s is node %s of cluster %q", node.Name, node.NodeID, ids[node.NodeID])
					}
					wantKnows(t, k, node.Name, ids, cluster.Name)
				}
			}
		})
	}
}

func host(k *kubelet, pod string) string {
	host, _, _ := net.SplitHostPort(k.node(pod).Addr())
	return host
}

// wantKnows asserts that the Redis of a pod knows nodes of its own cluster only.
func wantKnows(t *testing.T, k *kubelet, pod string, ids map[string]string, cluster string) {
	t.Helper()
	pool := redis.NewPool(redis.Options{Dialer: k.world.Dial})
	defer pool.Close()
	view, err := pool.Node(k.node(pod).Addr(), redis.Credentials{}).Describe(context.Background())
	check(t, err)
	for _, peer := range view.Peers {
		if ids[peer.ID] != cluster {
			t.Errorf("%s knows node %s at %s, which is of cluster %q", pod, peer.ID, peer.IP, ids[peer.ID])
		}
	}
}
