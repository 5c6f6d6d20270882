// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// hibernated is a cluster whose claims go with its instances, and which is hibernated; nodes were its instances.
func hibernated(t *testing.T) (cluster *v1alpha1.RedisCluster, nodes []v1alpha1.NodeStatus, k *kubelet) {
	t.Helper()
	namespace := newNamespace(t)
	k = startFaithfulKubelet(t, namespace, "7.0.15")
	startOperator(t, namespace, k.world)
	cluster = newCluster(namespace, "cache")
	cluster.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("1Gi"), Retain: v1alpha1.RetainDelete}
	create(t, cluster)
	awaitPhase(t, cluster, v1alpha1.PhaseRunning, "")
	nodes = cluster.Status.Nodes
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Hibernate = true })
	awaitPhase(t, cluster, v1alpha1.PhaseHibernated, "the cluster is hibernated")
	return cluster, nodes, k
}

// claims are the UIDs of a cluster's claims, by name.
func claimsOf(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]types.UID {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	check(t, api.List(t.Context(), &list, client.InNamespace(cluster.Namespace)))
	found := map[string]types.UID{}
	for i := range list.Items {
		found[list.Items[i].Name] = list.Items[i].UID
	}
	return found
}

// A cluster is hibernated with all that it has, whatever storage.retain says, and wakes as it was: with the same nodes. What
// its spec asked for meanwhile comes after that.
func TestHibernateAndWake(t *testing.T) {
	t.Parallel()
	cluster, before, _ := hibernated(t)
	var pods corev1.PodList
	check(t, api.List(t.Context(), &pods, client.InNamespace(cluster.Namespace)))
	claims := claimsOf(t, cluster)
	status := cluster.Status
	if len(pods.Items) > 0 || len(claims) != 6 || status.Instances != "0/6" || status.Replicas != 0 {
		t.Fatalf("%d pods, %d claims, instances %s, replicas %d", len(pods.Items), len(claims), status.Instances, status.Replicas)
	}
	for condition, want := range map[string]string{
		v1alpha1.ConditionReady: "False Hibernated", v1alpha1.ConditionHibernated: "True Hibernated",
		v1alpha1.ConditionProgressing: "False AtRest", v1alpha1.ConditionDegraded: "False Healthy", v1alpha1.ConditionStalled: "False NotStalled",
		v1alpha1.ConditionFormed: "True Formed",
	} {
		c := meta.FindStatusCondition(status.Conditions, condition)
		if c == nil || fmt.Sprintf("%s %s", c.Status, c.Reason) != want {
			t.Errorf("condition %s is %+v, want %s", condition, c, want)
		}
	}

	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Replicas, c.Spec.Shards, c.Spec.Config = ptr.To[int32](9), ptr.To[int32](3), map[string]string{"hz": "20"}
	})
	awaitPasses(t, 3)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Hibernate = false })
	awaitPhase(t, cluster, v1alpha1.PhaseRunning, "")
	eventually(t, "it has what was asked for meanwhile", func() string { return inPhase(t, cluster, v1alpha1.PhaseRunning) })
	for _, was := range before {
		found := false
		for _, is := range cluster.Status.Nodes {
			found = found || is.Name == was.Name && is.NodeID == was.NodeID
		}
		if !found {
			t.Errorf("%+v is not as it was: %+v", was, cluster.Status.Nodes)
		}
	}
	if cluster.Status.Instances != "9/9" || len(cluster.Status.HibernatedInstances) > 0 ||
		meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionHibernated) != nil {
		t.Errorf("awake, its status is %+v", cluster.Status)
	}
	for name, uid := range claimsOf(t, cluster) {
		if was, known := claims[name]; known && was != uid {
			t.Errorf("claim %s is another one", name)
		}
	}
}

// A claim that is deleted meanwhile is noticed before anything starts; a person says that it may.
func TestClaimLostInHibernation(t *testing.T) {
	t.Parallel()
	cluster, before, k := hibernated(t)
	k.mu.Lock()
	k.emptied["cache-1-0"] = true
	k.mu.Unlock()
	remove(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "data-cache-1-0"}})
	stalled := func() string {
		get(t, cluster)
		if c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled); c == nil || c.Reason != "DataLost" ||
			!strings.Contains(c.Message, "cache-1-0") {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	}
	eventually(t, "it is told while it is hibernated", stalled)
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Hibernate = false })
	awaitPhase(t, cluster, v1alpha1.PhaseFailed, "cache-1-0")
	awaitPasses(t, 3)
	if why := stalled(); why != "" || cluster.Status.Replicas > 0 {
		t.Fatalf("it does not wait for a person: %s, %d instances", why, cluster.Status.Replicas)
	}
	_, word, _ := strings.Cut(meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled).Message,
		v1alpha1.AnnotationGiveUpData+" to ")
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, v1alpha1.AnnotationGiveUpData, word)
	})
	eventually(t, "it runs without that claim", func() string { return inPhase(t, cluster, v1alpha1.PhaseRunning) })
	for _, is := range cluster.Status.Nodes {
		for _, was := range before {
			if is.Name == was.Name && (is.NodeID == was.NodeID) == (is.Name == "cache-1-0") {
				t.Errorf("%s was node %s, and is %s", is.Name, was.NodeID, is.NodeID)
			}
		}
	}
}
