// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A cluster that is autoscaled from now on keeps its shards, follows bounds that leave it no choice, and the operator writes nothing of
// that into the spec. What decides when the load asks for another number is tried in test/simulation.
func TestAutoscaleTakesOver(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	startOperator(t, namespace, startFaithfulKubelet(t, namespace, "7.0.15").world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Shards, cluster.Spec.Replicas = ptr.To[int32](4), ptr.To[int32](8)
	create(t, cluster)
	awaitPhase(t, cluster, v1alpha1.PhaseRunning, "")

	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Autoscale = &v1alpha1.Autoscale{MinShards: 5, MaxShards: 9} })
	eventually(t, "both shards and autoscale are refused", func() string { // here by the operator; where there are webhooks, by them
		get(t, cluster)
		if !strings.Contains(cluster.Status.Reason, "autoscale says how many shards there are") || cluster.Status.Shards != 4 {
			return cluster.Status.Reason
		}
		return ""
	})
	shards := func(want int32) {
		t.Helper()
		eventually(t, fmt.Sprintf("it has %d shards", want), func() string {
			get(t, cluster)
			is := cluster.Status.Autoscale
			if is == nil || is.Shards != want || cluster.Status.Shards != want || cluster.Status.Phase != v1alpha1.PhaseRunning ||
				cluster.Status.Instances != fmt.Sprintf("%d/%d", 2*want, 2*want) {
				return fmt.Sprintf("%+v, %d shards, %s, %s: %s", is, cluster.Status.Shards, cluster.Status.Instances, cluster.Status.Phase,
					cluster.Status.Reason)
			}
			return ""
		})
		if cluster.Spec.Shards != nil || *cluster.Spec.Replicas != v1alpha1.DefaultReplicas {
			t.Errorf("the spec says %v shards, %v replicas", cluster.Spec.Shards, *cluster.Spec.Replicas)
		}
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Shards, c.Spec.Replicas = nil, nil
		c.Spec.Autoscale = &v1alpha1.Autoscale{MinShards: 3, MaxShards: 5}
	})
	shards(4)
	for _, refused := range []string{"soon", "99999999999999999999h", "30s"} { // an object with one that is none could not be read any more
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"autoscale":{"scaleIn":{"stabilization":"`+refused+`"}}}}`))
		if err := api.Patch(t.Context(), cluster.DeepCopy(), patch); !apierrors.IsInvalid(err) {
			t.Errorf("a stabilization of %q: %v", refused, err)
		}
	}
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Autoscale.MinShards = 5 })
	shards(5)
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Autoscale, c.Spec.Shards, c.Spec.Replicas = nil, ptr.To[int32](5), ptr.To[int32](10)
	})
	eventually(t, "nothing of it is left", func() string {
		get(t, cluster)
		if cluster.Status.Autoscale != nil || cluster.Status.ObservedGeneration != cluster.Generation || cluster.Status.Shards != 5 {
			return fmt.Sprintf("%+v", cluster.Status)
		}
		return inPhase(t, cluster, v1alpha1.PhaseRunning)
	})
}
