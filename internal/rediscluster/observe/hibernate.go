// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// hibernated are how many instances each shard had before they were stopped; nil: the cluster is awake. When the status does not say it
// (any more), the StatefulSets do. Both are anybody's to write who may.
func hibernated(cluster *v1alpha1.RedisCluster, shards []snapshot.Shard) v1alpha1.Topology {
	was := cluster.Status.HibernatedInstances
	if len(was) == 0 {
		was = byShards(cluster, shards)
	}
	if len(was) == 0 || len(was) > int(v1alpha1.MaxShards) {
		return nil
	}
	t := make(v1alpha1.Topology, len(was))
	for i, n := range was {
		t[i] = min(max(n, 1), v1alpha1.MaxReplicas)
	}
	return t
}

// byShards is what StatefulSets say of how many instances there were; nil when none says it. One that has been woken has as many as it
// asks for; one that is gone has what the spec asks for.
func byShards(cluster *v1alpha1.RedisCluster, shards []snapshot.Shard) v1alpha1.Topology {
	var t v1alpha1.Topology
	says, asked := false, cluster.Spec.Topology()
	for _, shard := range shards { // sorted
		if shard.Terminating {
			continue
		}
		for i := len(t); i < shard.Index; i++ {
			t = append(t, 1)
			if i < len(asked) {
				t[i] = asked[i]
			}
		}
		n := shard.Replicas
		if shard.Hibernated > 0 {
			n, says = shard.Hibernated, true
		}
		t = append(t, n)
	}
	if !says {
		return nil
	}
	return t
}

// hibernatedBy is how many instances a StatefulSet is to have again; 0 when it was not told to have none.
func hibernatedBy(set *appsv1.StatefulSet) int32 {
	n, err := strconv.ParseInt(set.Annotations[values.AnnotationHibernated], 10, 32)
	if err != nil {
		return 0
	}
	return min(max(int32(n), 0), v1alpha1.MaxReplicas)
}
