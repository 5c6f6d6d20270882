// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A Service leads to the only master, whoever that is; it goes when there is to be another shard.
func TestPrimaryService(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Shards, cluster.Spec.Replicas = new(int32(1)), new(int32(2))
	create(t, cluster)
	awaitWhole(t, cluster)
	leadsToTheMaster(t, cluster)

	was := children(t, cluster)["services/cache-primary"].(*corev1.Service)
	asked := "cache-0-1"
	if primaryPod(was) == asked {
		asked = "cache-0-0"
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Annotations = map[string]string{v1alpha1.AnnotationSwitchover: asked}
	})
	eventually(t, "the Service leads to who was to take over", func() string {
		now, _ := children(t, cluster)["services/cache-primary"].(*corev1.Service)
		if now == nil || now.UID != was.UID {
			t.Fatalf("the Service was %s, and is %+v", was.UID, now)
		}
		if primaryPod(now) != asked {
			return primaryPod(now)
		}
		return ""
	})
	awaitWhole(t, cluster)
	leadsToTheMaster(t, cluster)

	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = new(int32(3)), new(int32(6)) })
	eventually(t, "the Service is gone", func() string {
		if _, found := children(t, cluster)["services/cache-primary"]; found {
			return "it is there"
		}
		return ""
	})
	awaitWhole(t, cluster)
}

func leadsToTheMaster(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	eventually(t, "the Service leads to the master", func() string {
		get(t, cluster)
		service, _ := children(t, cluster)["services/cache-primary"].(*corev1.Service)
		if service == nil {
			return "there is none"
		}
		for _, node := range cluster.Status.Nodes {
			if node.Type == "master" && primaryPod(service) == node.Name {
				return ""
			}
		}
		return primaryPod(service) + " is no master"
	})
}

func primaryPod(service *corev1.Service) string {
	return service.Spec.Selector["statefulset.kubernetes.io/pod-name"]
}
