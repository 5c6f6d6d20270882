// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	redisv1alpha1 "middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// A newer version arrives through the catalog while a RedisCluster is under load. OLM waits while slots move; then it swaps the
// operator, no pod of the cluster restarts, and no command fails.
func TestUpgrade(t *testing.T) {
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		serve(t, given.previous)
		operator, team := namespaceOf(t, "upgrade"), namespaceOf(t, "upgrade-team")
		group(t, operator)
		installed := subscribe(t, operator)
		installed.succeeded(given.previous)
		installed.enable(team)

		others := applySamples(t, team, false)
		cluster := &redisv1alpha1.RedisCluster{}
		live.Sample(t, "redis_v1alpha1_rediscluster_full.yaml", cluster)
		cluster.Namespace, cluster.Spec.Shards, cluster.Spec.Replicas = team, ptr.To[int32](3), ptr.To[int32](6)
		live.Create(t, cluster)
		for _, o := range append(others, cluster) {
			live.Ready(t, o)
		}
		load := live.NewLoad(t, cluster)
		load.Fill(5000)
		load.Start()

		// Slots move, and slowly, so that the new version arrives in the middle.
		live.Change(t, cluster, func(c *redisv1alpha1.RedisCluster) {
			c.Spec.Shards, c.Spec.Replicas = ptr.To[int32](4), ptr.To[int32](8)
			c.Spec.UpdateStrategy.KeysPerSecond = 25
		})
		wantUpgradeable(t, operator, given.previous, "False")
		serve(t, given.current)
		held := false
		live.Eventually(t, "the new version waits until no slots move", func() error {
			if err := live.Get(t, cluster); err != nil {
				return err
			}
			newer := object(serviceVersion, operator, csvName(given.current))
			if err := live.Get(t, newer); err == nil {
				held = held || field(newer, "status", "phase") == "Pending"
				if field(newer, "status", "phase") == "Succeeded" && cluster.Status.Migration != nil {
					t.Error("the operator was swapped while slots moved")
				}
			}
			if cluster.Status.Migration != nil || !held {
				return fmt.Errorf("held %v; phase %s: %s", held, cluster.Status.Phase, cluster.Status.Reason)
			}
			return nil
		})
		live.Ready(t, cluster)
		pods := containers(t, team)
		installed.succeeded(given.current)
		wantUpgradeable(t, operator, given.current, "True")
		time.Sleep(5 * time.Second) // the new version has looked at everything
		for name, is := range containers(t, team) {
			if was, existed := pods[name]; existed && was != is {
				t.Errorf("%s was restarted by the upgrade: %s before, %s now", name, was, is)
			}
		}
		for _, o := range append(others, cluster) {
			live.Ready(t, o)
		}
		run.WantUnnoticed(load, redisv1alpha1.MigrationClassic)

		for _, o := range append(others, cluster) {
			if err := live.Kube.Delete(t.Context(), o); err != nil {
				t.Error(err)
			}
		}
		for _, o := range append(others, cluster) {
			gone(t, o)
		}
		installed.remove(given.current)
	})
}

// wantUpgradeable waits until the operator tells OLM whether it may be swapped.
func wantUpgradeable(t *testing.T, namespace, version, want string) {
	t.Helper()
	condition := object(conditionOfOurs, namespace, csvName(version))
	live.Eventually(t, "Upgradeable is "+want, func() error {
		if err := live.Get(t, condition); err != nil {
			return err
		}
		list, _, _ := unstructured.NestedSlice(condition.Object, "spec", "conditions")
		for _, item := range list {
			c, _ := item.(map[string]any)
			if c["type"] == "Upgradeable" && c["status"] == want {
				t.Logf("Upgradeable is %s: %v: %v", want, c["reason"], c["message"])
				return nil
			}
		}
		return fmt.Errorf("conditions %v", list)
	})
}

// containers identifies the pods of RedisClusters and counts the restarts of their containers.
func containers(t *testing.T, namespace string) map[string]string {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(namespace), client.HasLabels{redisv1alpha1.LabelCluster}); err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for i := range pods.Items {
		restarts := int32(0)
		for _, c := range pods.Items[i].Status.ContainerStatuses {
			restarts += c.RestartCount
		}
		all[pods.Items[i].Name] = fmt.Sprintf("%s, %d restarts", pods.Items[i].UID, restarts)
	}
	return all
}
