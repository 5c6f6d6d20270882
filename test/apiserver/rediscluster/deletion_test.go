// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"maps"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// statefulSets are the names of those that a cluster owns.
func statefulSets(t *testing.T, cluster *v1alpha1.RedisCluster) []string {
	t.Helper()
	names := slices.Sorted(maps.Keys(children(t, cluster)))
	return slices.DeleteFunc(names, func(name string) bool { return name < "statefulsets/" })
}

// Deletion follows spec.finalizers, paused or not.
func TestDeletion(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		policy v1alpha1.DeletionPolicy
		paused bool
		after  func(*testing.T, *v1alpha1.RedisCluster)
	}{
		"foreground":         {v1alpha1.DeletionForeground, false, wantNothingRuns},
		"foreground, paused": {v1alpha1.DeletionForeground, true, wantNothingRuns},
		// The garbage collector does the rest by the owner references.
		"background":     {v1alpha1.DeletionBackground, false, wantOwned},
		"orphan":         {v1alpha1.DeletionOrphan, false, wantOrphans},
		"orphan, paused": {v1alpha1.DeletionOrphan, true, wantOrphans},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			startOperator(t, namespace, k.world)
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Finalizers = tt.policy
			create(t, cluster)
			awaitWhole(t, cluster)
			if tt.paused {
				change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Pause = true })
				awaitPhase(t, cluster, v1alpha1.PhasePaused, "")
			}
			remove(t, cluster)
			awaitGone(t, cluster.DeepCopy())
			tt.after(t, cluster)
		})
	}
}

func wantNothingRuns(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if left := statefulSets(t, cluster); len(left) > 0 {
		t.Errorf("%v are left behind the RedisCluster", left)
	}
	var pods corev1.PodList
	check(t, api.List(context.Background(), &pods, client.InNamespace(cluster.Namespace)))
	if len(pods.Items) > 0 {
		t.Errorf("%d pods are left behind the RedisCluster", len(pods.Items))
	}
}

func wantOwned(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if found := slices.Sorted(maps.Keys(children(t, cluster))); !slices.Equal(found, made) {
		t.Errorf("these name their owner: %v, want %v", found, made)
	}
}

// wantOrphans: the cluster runs on, and nothing of it names its former owner.
func wantOrphans(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if found := children(t, cluster); len(found) > 0 {
		t.Errorf("these still name their owner: %v", slices.Collect(maps.Keys(found)))
	}
	var pods corev1.PodList
	check(t, api.List(context.Background(), &pods, client.InNamespace(cluster.Namespace)))
	if len(pods.Items) != 6 {
		t.Errorf("%d pods run, want 6", len(pods.Items))
	}
}

// A cluster that is deleted while it is being made leaves nothing behind that runs.
func TestDeletedWhileForming(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	for name, ripe := range map[string]func(*v1alpha1.RedisCluster) bool{
		"at-once":        func(*v1alpha1.RedisCluster) bool { return true },
		"with-finalizer": func(c *v1alpha1.RedisCluster) bool { return len(c.Finalizers) > 0 },
		"with-secret":    func(c *v1alpha1.RedisCluster) bool { return children(t, c)["secrets/"+c.AuthSecretName()] != nil },
		"with-a-shard":   func(c *v1alpha1.RedisCluster) bool { return len(statefulSets(t, c)) > 0 },
		"with-slots":     func(c *v1alpha1.RedisCluster) bool { return c.Status.Slots > 0 },
	} {
		cluster := newCluster(namespace, name)
		create(t, cluster)
		eventually(t, name, func() string {
			get(t, cluster)
			if ripe(cluster) {
				return ""
			}
			return "not yet"
		})
		remove(t, cluster)
		awaitGone(t, cluster.DeepCopy())
		wantNothingRuns(t, cluster)
	}
}
