// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// How many instances there were is known from the StatefulSets when the status has been lost.
func TestHibernatedByStatefulSets(t *testing.T) {
	asleep := func(index int, n int32) snapshot.Shard { return snapshot.Shard{Index: index, Hibernated: n} }
	for name, tt := range map[string]struct {
		status []int32
		shards []snapshot.Shard
		want   v1alpha1.Topology
	}{
		"awake":                {nil, []snapshot.Shard{{Replicas: 2}, {Index: 1, Replicas: 2}}, nil},
		"the status says it":   {[]int32{2, 0, 9000}, []snapshot.Shard{asleep(0, 3)}, v1alpha1.Topology{2, 1, v1alpha1.MaxReplicas}},
		"the status is lost":   {nil, []snapshot.Shard{asleep(0, 2), asleep(1, 3)}, v1alpha1.Topology{2, 3}},
		"one has been woken":   {nil, []snapshot.Shard{{Replicas: 2}, asleep(1, 3)}, v1alpha1.Topology{2, 3}},
		"one is gone":          {nil, []snapshot.Shard{asleep(2, 3)}, v1alpha1.Topology{4, 4, 3}},
		"one is being deleted": {nil, []snapshot.Shard{{Hibernated: 9, Terminating: true}, asleep(1, 3)}, v1alpha1.Topology{4, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.RedisCluster{}
			shards, replicas := int32(3), int32(12)
			cluster.Spec.Shards, cluster.Spec.Replicas, cluster.Status.HibernatedInstances = &shards, &replicas, tt.status
			if got := hibernated(cluster, tt.shards); !slices.Equal(got, tt.want) {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
	for text, want := range map[string]int32{"2": 2, "": 0, "many": 0, "-3": 0, "99999999999": 0, "9000": v1alpha1.MaxReplicas} {
		set := &appsv1.StatefulSet{}
		set.Annotations = map[string]string{values.AnnotationHibernated: text}
		if got := hibernatedBy(set); got != want {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// Instances are asked whether they may be elected also when nothing says that they were told otherwise.
func TestElectionsAreAlwaysAskedFor(t *testing.T) {
	if names := settingNames(&v1alpha1.RedisCluster{}, snapshot.UserConfig{}); !slices.Contains(names, redisconf.NoFailover) {
		t.Error(names)
	}
}
