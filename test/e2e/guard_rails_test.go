// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// What keeps an instance from doing harm, and harm from it, as it is in a pod that runs.
func TestRedisClusterGuardRails(t *testing.T) {
	parallel(t)
	cluster := newCluster(live.NewNamespace(t), "cache") // which enforces the restricted pod security standard
	live.Create(t, cluster)
	live.Ready(t, cluster)
	for _, pod := range runningPods(t, cluster) {
		if ptr.Deref(pod.Spec.AutomountServiceAccountToken, true) {
			t.Errorf("%s mounts a service account's token", pod.Name)
		}
		for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if s := container.SecurityContext; s == nil || !ptr.Deref(s.ReadOnlyRootFilesystem, false) {
				t.Errorf("the root file system of %s/%s can be written", pod.Name, container.Name)
			}
		}
		out, err := live.Execute(t.Context(), pod.Namespace, pod.Name, "redis", "sh", "-c",
			"id -u; ls /var/run/secrets/kubernetes.io 2>&1; touch /etc/x /usr/x /x 2>&1; grep CapEff /proc/self/status")
		if !strings.HasPrefix(out, "999\n") || strings.Count(out, "Read-only file system") != 3 || !strings.Contains(out, "No such file") ||
			!strings.Contains(out, "CapEff:\t0000000000000000") {
			t.Errorf("%s: (%v) %s", pod.Name, err, out)
		}
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	live.Eventually(t, "one instance may be evicted at a time", func() error {
		if err := live.Get(t, budget); err != nil || budget.Status.ExpectedPods != 6 || budget.Status.DisruptionsAllowed != 1 {
			return errors.Join(err, fmt.Errorf("%+v", budget.Status))
		}
		return nil
	})
	policy := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	if err := live.Get(t, policy); err != nil {
		t.Fatal(err)
	}
	reach := map[string]string{}
	for _, rule := range policy.Spec.Ingress {
		from := "everybody"
		for _, peer := range rule.From {
			from = metav1.FormatLabelSelector(peer.PodSelector)
		}
		for _, port := range rule.Ports {
			reach[port.Port.String()] = from
		}
	}
	own := v1alpha1.LabelCluster + "=cache"
	if diff := cmp.Diff(map[string]string{"6379": "everybody", "16379": own}, reach); diff != "" ||
		metav1.FormatLabelSelector(&policy.Spec.PodSelector) != own {
		t.Errorf("who reaches which port of %s (-want +got):\n%s", metav1.FormatLabelSelector(&policy.Spec.PodSelector), diff)
	}
	reached := map[string]string{}
	for _, rule := range policy.Spec.Egress {
		to := "everything"
		for _, peer := range rule.To {
			to = metav1.FormatLabelSelector(peer.PodSelector)
		}
		for _, port := range rule.Ports {
			reached[port.Port.String()] = to
		}
	}
	if diff := cmp.Diff(map[string]string{"6379": own, "16379": own, "53": "everything"}, reached); diff != "" ||
		len(policy.Spec.PolicyTypes) != 2 {
		t.Errorf("what instances reach, of %v (-want +got):\n%s", policy.Spec.PolicyTypes, diff)
	}
}

// Instances of a shard that may not share a node do not, whatever happens; too few nodes are told with the remedy, which helps.
func TestRedisClusterKeepsShardsApart(t *testing.T) {
	shownElsewhere(t, "TestScheduling of the chart and TestRollout of the planner, without a scheduler")
	parallel(t)
	cluster := newCluster(live.NewNamespace(t), "cache")
	cluster.Spec.Replicas = ptr.To[int32](7) // three, two and two
	cluster.Spec.AntiAffinity = v1alpha1.AntiAffinityRequired
	cluster.Spec.Storage = nil
	cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	write(t, cluster, 100)
	wantApart(t, cluster)
	perNode := map[string]int{}
	for _, pod := range runningPods(t, cluster) {
		perNode[pod.Spec.NodeName]++
	}
	t.Logf("instances by node, which prefer to be spread evenly: %v", perNode)

	excluded := runningPods(t, cluster)[0].Spec.NodeName
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Pod[0].Affinity = &corev1.Affinity{
			NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{
					{MatchExpressions: []corev1.NodeSelectorRequirement{
						{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpNotIn, Values: []string{excluded}}}}}}}}
	})
	live.Eventually(t, "two nodes are too few for a shard of three, and the reason says so", func() error {
		if err := live.Get(t, cluster); err != nil ||
			!strings.Contains(cluster.Status.Reason, "spec.antiAffinity is Required, so the 3 instances of shard 0 need a node each") {
			return errors.Join(err, fmt.Errorf("phase %s: %s", cluster.Status.Phase, cluster.Status.Reason))
		}
		return nil
	})
	wantApart(t, cluster)
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.AntiAffinity = v1alpha1.AntiAffinityPreferred })
	live.Eventually(t, "every instance runs on one of the two", func() error {
		for _, pod := range runningPods(t, cluster) {
			if pod.Spec.NodeName == excluded || len(pod.Spec.TopologySpreadConstraints) != 2 {
				return fmt.Errorf("%s has not been restarted", pod.Name)
			}
		}
		return atRest(t, cluster)
	})
	wantHealthy(t, cluster, 3, 7)
	wantKeys(t, cluster, 100)
}

// wantApart asserts that no two instances of a shard run on one node.
func wantApart(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	first := map[string]string{}
	for _, pod := range runningPods(t, cluster) {
		at := pod.Labels[v1alpha1.LabelShard] + " on " + pod.Spec.NodeName
		if other, shared := first[at]; shared {
			t.Errorf("%s and %s of shard %s", other, pod.Name, at)
		}
		first[at] = pod.Name
	}
}

// runningPods are a cluster's pods that have a node.
func runningPods(t *testing.T, cluster *v1alpha1.RedisCluster) []corev1.Pod {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(pods.Items, func(p corev1.Pod) bool { return p.Spec.NodeName == "" || p.DeletionTimestamp != nil })
}
