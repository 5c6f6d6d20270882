// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A child that is deleted or edited is put back, and only that one is written.
func TestChildrenArePutBack(t *testing.T) {
	t.Parallel()
	cluster, op, _ := running(t)
	child := func(name string) client.Object { return children(t, cluster)[name] }
	awaitWritten := func(what string, since int, names ...string) {
		t.Helper()
		eventually(t, what+" is mended", func() string { return cmp.Diff(names, op.written(since)) })
		awaitWhole(t, cluster)
		if diff := cmp.Diff(names, op.written(since)); diff != "" {
			t.Errorf("%s: written (-want +got):\n%s", what, diff)
		}
	}

	awaitField := func(object client.Object, field string, restored func() bool) {
		t.Helper()
		eventually(t, field+" of "+object.GetName()+" is restored", func() string {
			if get(t, object); !restored() {
				return "it is not"
			}
			return ""
		})
	}

	for _, name := range made {
		if strings.HasPrefix(name, "secrets/") || strings.HasPrefix(name, "statefulsets/") {
			continue // the password is in use; StatefulSets are deleted below
		}
		since, was := len(op.asked()), child(name)
		remove(t, was)
		eventually(t, name+" is made anew", func() string {
			if now := child(name); now == nil || now.GetUID() == was.GetUID() {
				return "it is not there"
			}
			return ""
		})
		awaitWritten(name+", deleted,", since, name)
	}

	since := len(op.asked())
	service := child("services/cache").(*corev1.Service)
	change(t, service, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(7000) })
	awaitField(service, "the target port", func() bool { return service.Spec.Ports[0].TargetPort.StrVal == "redis" })
	awaitWritten("an edited Service", since, "services/cache")

	since = len(op.asked())
	budget := child("poddisruptionbudgets/cache").(*policyv1.PodDisruptionBudget)
	change(t, budget, func(b *policyv1.PodDisruptionBudget) { b.Spec.MaxUnavailable = new(intstr.FromInt32(6)) })
	awaitField(budget, "maxUnavailable", func() bool { return budget.Spec.MaxUnavailable.IntValue() == 1 })
	awaitWritten("an edited PodDisruptionBudget", since, "poddisruptionbudgets/cache")

	since = len(op.asked())
	set := child("statefulsets/cache-1").(*appsv1.StatefulSet)
	change(t, set, func(s *appsv1.StatefulSet) {
		s.Spec.Template.Spec.Containers[0].Image = "docker.io/library/redis:other"
	})
	awaitField(set, "the image", func() bool { return set.Spec.Template.Spec.Containers[0].Image == cluster.Spec.Image() })
	awaitWritten("an edited StatefulSet", since, "statefulsets/cache-1")

	// What others add is theirs.
	since = len(op.asked())
	change(t, service, func(s *corev1.Service) { s.Annotations = map[string]string{"example.com/theirs": "yes"} })
	change(t, budget, func(b *policyv1.PodDisruptionBudget) { b.Labels["example.com/theirs"] = "yes" })
	change(t, service, func(s *corev1.Service) { s.Spec.Ports[0].TargetPort = intstr.FromInt32(7000) })
	awaitField(service, "the target port", func() bool { return service.Spec.Ports[0].TargetPort.StrVal == "redis" })
	awaitWritten("an edited Service with an annotation", since, "services/cache")
	if service.Annotations["example.com/theirs"] != "yes" {
		t.Error("the annotation of another client is gone")
	}
}

// A StatefulSet that someone deletes comes back, and its instances with their data and slots.
func TestStatefulSetDeleted(t *testing.T) {
	t.Parallel()
	for _, shard := range []int{1, 2} {
		t.Run(fmt.Sprintf("shard %d", shard), func(t *testing.T) {
			t.Parallel()
			cluster, _, _ := running(t)
			before := cluster.DeepCopy()
			deleted := children(t, cluster)["statefulsets/"+cluster.ShardName(shard)]
			check(t, api.Delete(context.Background(), deleted, client.PropagationPolicy(metav1.DeletePropagationForeground)))
			eventually(t, "the StatefulSet is back", func() string {
				if now := children(t, cluster)["statefulsets/"+cluster.ShardName(shard)]; now == nil || now.GetUID() == deleted.GetUID() {
					return "it is not there"
				}
				return ""
			})
			var pods []string
			for ordinal := range 2 {
				pods = append(pods, fmt.Sprintf("%s-%d", cluster.ShardName(shard), ordinal))
			}
			after := awaitHealed(t, before, pods...)
			owns := map[string]string{}
			for _, node := range before.Status.Nodes {
				owns[node.NodeID] = node.Slots
			}
			for _, node := range after.Status.Nodes {
				if slots, known := owns[node.NodeID]; !known || slots != node.Slots {
					t.Errorf("%s is node %s and owns %q; before the deletion that node (known: %v) owned %q", node.Name, node.NodeID, node.Slots, known,
						slots)
				}
			}
		})
	}
}

// A StatefulSet that somebody scales ends with the instances that its shard asks for, and every slot is served throughout.
func TestStatefulSetScaledByHand(t *testing.T) {
	t.Parallel()
	for _, replicas := range []int32{1, 3} {
		t.Run(fmt.Sprintf("to %d", replicas), func(t *testing.T) {
			t.Parallel()
			cluster, _, _ := running(t)
			set := children(t, cluster)["statefulsets/cache-1"].(*appsv1.StatefulSet)
			change(t, set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = &replicas })
			eventually(t, "the number of replicas is put back", func() string {
				if get(t, set); *set.Spec.Replicas != 2 {
					get(t, cluster)
					return fmt.Sprintf("%d; %s: %s", *set.Spec.Replicas, cluster.Status.Phase, cluster.Status.Reason)
				}
				return ""
			})
			awaitWhole(t, cluster)
		})
	}
}

// What is turned off is deleted, and made again when it is turned on.
func TestTurnedOff(t *testing.T) {
	t.Parallel()
	cluster, op, _ := running(t)
	optional := []string{"networkpolicies/cache", "poddisruptionbudgets/cache"}
	turn := func(on bool) {
		change(t, cluster, func(c *v1alpha1.RedisCluster) {
			c.Spec.NetworkPolicy.Enabled, c.Spec.PodDisruptionBudget.Enabled = &on, &on
		})
	}
	await := func(exist bool) {
		t.Helper()
		eventually(t, fmt.Sprintf("existing: %v", exist), func() string {
			found := children(t, cluster)
			for _, name := range optional {
				if _, ok := found[name]; ok != exist {
					return name
				}
			}
			return ""
		})
		awaitPhase(t, cluster, v1alpha1.PhaseRunning, "")
		awaitWhole(t, cluster)
	}
	since := len(op.asked())
	turn(false)
	await(false)
	if diff := cmp.Diff(optional, slices.Sorted(slices.Values(op.written(since)))); diff != "" {
		t.Errorf("written (-want +got):\n%s", diff)
	}
	turn(true)
	await(true)
}
