// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// newCluster is a cluster of 3 shards with a replica each.
func newCluster(namespace, name string) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       v1alpha1.RedisClusterSpec{Replicas: ptr.To[int32](6), Version: "7.0.15"},
	}
}

func create(t *testing.T, object client.Object) {
	t.Helper()
	check(t, api.Create(context.Background(), object))
}

// get reads an object again; false when it is gone.
func get(t *testing.T, object client.Object) bool {
	t.Helper()
	err := api.Get(context.Background(), client.ObjectKeyFromObject(object), object)
	check(t, client.IgnoreNotFound(err))
	return err == nil
}

// change changes an object as another client would.
func change[T client.Object](t *testing.T, object T, how func(T)) {
	t.Helper()
	eventually(t, "another client's write", func() string {
		if !get(t, object) {
			return "it is gone"
		}
		how(object)
		if err := api.Update(context.Background(), object, client.FieldOwner("another-client")); err != nil {
			return err.Error()
		}
		return ""
	})
}

func remove(t *testing.T, object client.Object) {
	t.Helper()
	check(t, api.Delete(context.Background(), object))
}

func awaitGone(t *testing.T, object client.Object) {
	t.Helper()
	eventually(t, object.GetName()+" is gone", func() string {
		if get(t, object) {
			return "it still exists"
		}
		return ""
	})
}

// running is a formed cluster in a namespace of its own, with what runs it.
func running(t *testing.T) (*v1alpha1.RedisCluster, *operator, *kubelet) {
	t.Helper()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	op := startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	create(t, cluster)
	awaitWhole(t, cluster)
	return cluster, op, k
}

// awaitPhase waits for a phase and a part of its reason, of the present generation.
func awaitPhase(t *testing.T, cluster *v1alpha1.RedisCluster, phase v1alpha1.Phase, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s is %s", cluster.Name, phase), func() string {
		if !get(t, cluster) {
			return "it is gone"
		}
		s := cluster.Status
		if s.Phase == phase && strings.Contains(s.Reason, reason) && s.ObservedGeneration == cluster.Generation {
			return ""
		}
		return fmt.Sprintf("phase %s, reason %q", s.Phase, s.Reason)
	})
}

// awaitStalled waits until a cluster cannot go on for a reason, which it says in its phase, too.
func awaitStalled(t *testing.T, cluster *v1alpha1.RedisCluster, cause, message string) {
	t.Helper()
	awaitPhase(t, cluster, v1alpha1.PhaseFailed, message)
	stalled := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue || stalled.Reason != cause || !strings.Contains(stalled.Message, message) {
		t.Errorf("Stalled is %+v, want True because of %s: …%s…", stalled, cause, message)
	}
	if meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionReady) {
		t.Error("a stalled cluster says that it is Ready")
	}
}

// awaitWhole waits until a cluster is Ready with every instance and nothing is left to do, and checks that it is whole.
func awaitWhole(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	total := int(cluster.Spec.InstanceCount())
	eventually(t, cluster.Name+" is Ready", func() string {
		if !get(t, cluster) {
			return "it is gone"
		}
		s := cluster.Status
		if meta.IsStatusConditionTrue(s.Conditions, v1alpha1.ConditionReady) && s.Reason == "" && s.ObservedGeneration == cluster.Generation &&
			s.Instances == fmt.Sprintf("%d/%d", total, total) {
			return ""
		}
		return fmt.Sprintf("phase %s, reason %q, instances %s, %d slots", s.Phase, s.Reason, s.Instances, s.Slots)
	})
	wantHealthy(t, cluster)
}

// wantHealthy asserts that the status shows a cluster healthy.
func wantHealthy(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	s := cluster.Status
	if s.Phase != v1alpha1.PhaseRunning || s.Slots != 16384 || s.Shards != cluster.Spec.ShardCount() || s.Reason != "" || s.Plan == nil ||
		s.Plan.Step != "None" {
		t.Errorf("phase %s, %d slots, %d shards, reason %q, plan %+v", s.Phase, s.Slots, s.Shards, s.Reason, s.Plan)
	}
	masters := map[int32]string{}
	for _, node := range s.Nodes {
		if node.Type == "master" {
			masters[node.Shard] = node.NodeID
		}
	}
	for _, node := range s.Nodes {
		if node.Status != metav1.ConditionTrue || node.NodeID == "" || node.MasterNodeID != masters[node.Shard] ||
			(node.Slots != "") != (node.Type == "master") {
			t.Errorf("node %+v", node)
		}
	}
}

func instance(t *testing.T, cluster *v1alpha1.RedisCluster, pod string) v1alpha1.NodeStatus {
	t.Helper()
	at := slices.IndexFunc(cluster.Status.Nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == pod })
	if at < 0 {
		t.Fatalf("status.nodes lacks %s", pod)
	}
	return cluster.Status.Nodes[at]
}

// awaitHealed waits until the pods that were killed are instances again, under other addresses than before.
func awaitHealed(t *testing.T, before *v1alpha1.RedisCluster, pods ...string) *v1alpha1.RedisCluster {
	t.Helper()
	now := before.DeepCopy()
	eventually(t, "the instances are back", func() string {
		get(t, now)
		for _, pod := range pods {
			was := instance(t, before, pod)
			at := slices.IndexFunc(now.Status.Nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == pod })
			if at < 0 || now.Status.Nodes[at].Instance == was.Instance {
				return pod + " is not seen at its new address"
			}
			if now.Status.Nodes[at].Status != metav1.ConditionTrue {
				return pod + " does not serve: " + now.Status.Nodes[at].Message
			}
		}
		return ""
	})
	awaitWhole(t, now)
	return now
}

// children are what a cluster owns, as resource/name with the object; pods are the StatefulSets'.
func children(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]client.Object {
	t.Helper()
	found := map[string]client.Object{}
	note := func(resource string, object client.Object) {
		if owner := metav1.GetControllerOf(object); owner != nil && owner.UID == cluster.UID {
			found[resource+"/"+object.GetName()] = object
		}
	}
	list := func(into client.ObjectList) {
		check(t, api.List(context.Background(), into, client.InNamespace(cluster.Namespace)))
	}
	var (
		sets     appsv1.StatefulSetList
		services corev1.ServiceList
		configs  corev1.ConfigMapList
		secrets  corev1.SecretList
		budgets  policyv1.PodDisruptionBudgetList
		policies networkingv1.NetworkPolicyList
	)
	for _, l := range []client.ObjectList{&sets, &services, &configs, &secrets, &budgets, &policies} {
		list(l)
	}
	for i := range sets.Items {
		note("statefulsets", &sets.Items[i])
	}
	for i := range services.Items {
		note("services", &services.Items[i])
	}
	for i := range configs.Items {
		note("configmaps", &configs.Items[i])
	}
	for i := range secrets.Items {
		note("secrets", &secrets.Items[i])
	}
	for i := range budgets.Items {
		note("poddisruptionbudgets", &budgets.Items[i])
	}
	for i := range policies.Items {
		note("networkpolicies", &policies.Items[i])
	}
	return found
}

// made are the names of all the children of a cluster called cache.
var made = []string{
	"configmaps/cache-config", "networkpolicies/cache", "poddisruptionbudgets/cache", "secrets/cache-auth",
	"services/cache", "services/cache-nodes", "statefulsets/cache-0", "statefulsets/cache-1", "statefulsets/cache-2",
}
