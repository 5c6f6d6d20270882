// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// A cluster is hibernated: no pod is left, and every claim, also with storage.retain Delete. It wakes with every key, and its instances are
// the nodes that they were, in the roles that they had. That cannot be judged where they start, and are introduced, so slowly that a
// master is taken for lost (ADR 0055).
func TestRedisClusterHibernates(t *testing.T) {
	shownElsewhere(t, "TestHibernateAndWake of test/apiserver; TestHibernation of test/engine")
	parallel(t)
	live.Scenario(t, hibernates)
}

func hibernates(t *testing.T, run *live.Run) {
	cluster := newCluster(live.NewNamespace(t), "cache")
	live.Create(t, cluster)
	live.Ready(t, cluster)
	keys := 200
	write(t, cluster, keys)
	before, claims := cluster.Status.Nodes, claimsByName(t, cluster.Namespace)

	start := time.Now()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Hibernate = true })
	live.Eventually(t, "it is hibernated", func() error { return inPhase(t, cluster, v1alpha1.PhaseHibernated) })
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace)); err != nil || len(pods.Items) > 0 {
		t.Fatalf("%d pods are left (%v)", len(pods.Items), err)
	}
	if now := claimsByName(t, cluster.Namespace); fmt.Sprint(now) != fmt.Sprint(claims) {
		t.Fatalf("the claims were %v, and are %v", claims, now)
	}
	asleep := time.Since(start)

	start = time.Now()
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Hibernate = false })
	live.Ready(t, cluster)
	t.Logf("hibernated after %.1f s, awake after %.1f s", asleep.Seconds(), time.Since(start).Seconds())
	wantKeys(t, cluster, keys)
	wantHealthy(t, cluster, 3, 6)
	const slow = 10 * time.Second // two node timeouts
	took := readyAfterStart(t, cluster)
	for _, was := range before {
		for _, is := range cluster.Status.Nodes {
			switch {
			case is.Name != was.Name, is.NodeID == was.NodeID && is.Type == was.Type && is.Slots == was.Slots:
			case is.NodeID != was.NodeID || took <= slow:
				t.Errorf("%s was %+v, and is %+v", was.Name, was, is)
			default:
				run.Inconclusive(fmt.Sprintf("%s has another role, and it took %s from the start of the first instance until Ready", is.Name, took))
			}
		}
	}
}

// readyAfterStart is how long after the first of its instances started a cluster was Ready; Kubernetes tells whole seconds.
func readyAfterStart(t *testing.T, cluster *v1alpha1.RedisCluster) time.Duration {
	t.Helper()
	ready := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil {
		t.Fatal("no condition Ready")
	}
	first := ready.LastTransitionTime.Time
	for _, pod := range podsOf(t, cluster) {
		for _, c := range pod.Status.ContainerStatuses {
			if running := c.State.Running; running != nil && running.StartedAt.Time.Before(first) {
				first = running.StartedAt.Time
			}
		}
	}
	return ready.LastTransitionTime.Sub(first)
}

// claimsByName are the UIDs of a namespace's claims.
func claimsByName(t *testing.T, namespace string) map[string]string {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := live.Kube.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for i := range list.Items {
		found[list.Items[i].Name] = string(list.Items[i].UID)
	}
	return found
}
