// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"

	podready "middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/test/live"
)

// A new version and other resources reach every instance under load, and clients notice nothing.
func TestRedisClusterRollsOut(t *testing.T) {
	parallel(t)
	for _, upgrade := range []struct{ name, repository, from, to string }{
		{"redis", "docker.io/library/redis", "7.0.15", "8.0.6"},
		{"valkey", "docker.io/valkey/valkey", "8.1.1", "9.1.2"},
	} {
		if upgrade.name != "redis" && os.Getenv("E2E") != "all" {
			continue // the story is the same
		}
		t.Run(upgrade.name, func(t *testing.T) {
			live.Scenario(t, func(t *testing.T, run *live.Run) {
				cluster := newCluster(live.NewNamespace(t), "cache")
				cluster.Spec.Repository, cluster.Spec.Version = upgrade.repository, upgrade.from
				load := underLoad(t, cluster, 5000)
				rolled(t, cluster, "version "+upgrade.to, func(c *v1alpha1.RedisCluster) { c.Spec.Version = upgrade.to })
				if cluster.Status.CurrentVersion != upgrade.to || cluster.Status.TargetVersion != upgrade.to {
					t.Errorf("versions %s of %s, want %s", cluster.Status.CurrentVersion, cluster.Status.TargetVersion, upgrade.to)
				}
				if os.Getenv("E2E") == "all" { // without load: TestUnderTheUserOfTheNamespace
					rolled(t, cluster, "more memory", func(c *v1alpha1.RedisCluster) {
						c.Spec.Pod[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("192Mi")}
					})
				}
				run.WantUnnoticed(load, live.NothingMoved)
			})
		})
	}
}

// rolled makes a change that restarts every instance, once each, and waits until the cluster is Ready with it.
func rolled(t *testing.T, cluster *v1alpha1.RedisCluster, what string, mutate func(*v1alpha1.RedisCluster)) {
	t.Helper()
	before := podUIDs(t, cluster)
	live.Change(t, cluster, mutate)
	start := time.Now()
	phases := map[v1alpha1.Phase]bool{}
	live.Eventually(t, what+": every instance has it", func() error {
		err := atRest(t, cluster)
		phases[cluster.Status.Phase] = true
		return err
	})
	t.Logf("%s: %d instances in %.1f s", what, len(before), time.Since(start).Seconds())
	for name, uid := range podUIDs(t, cluster) {
		if before[name] == uid {
			t.Errorf("%s: %s was not restarted", what, name)
		}
	}
	if !phases[v1alpha1.PhaseUpgrading] || phases[v1alpha1.PhaseFailed] {
		t.Errorf("%s: phases %v, want Upgrading and never Failed", what, phases)
	}
	wantHealthy(t, cluster, *cluster.Spec.Replicas/2, *cluster.Spec.Replicas)
}

// podUIDs are the identities of a cluster's pods, by name.
func podUIDs(t *testing.T, cluster *v1alpha1.RedisCluster) map[string]string {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		t.Fatal(err)
	}
	uids := map[string]string{}
	for i := range pods.Items {
		uids[pods.Items[i].Name] = string(pods.Items[i].UID)
	}
	return uids
}

// An image that does not start takes one instance, says so, and is left behind when the former one is asked for again.
func TestRedisClusterBrokenImage(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change, back func(*v1alpha1.RedisCluster)
		why          string
		meanwhile    func(*testing.T, *v1alpha1.RedisCluster) (replaced string)
	}{
		"version": {
			change: func(c *v1alpha1.RedisCluster) { c.Spec.Version = "7.0.99" },
			back:   func(c *v1alpha1.RedisCluster) { c.Spec.Version = "7.0.15" },
			why:    "container redis: ",
			// It would go on, if it did.
			meanwhile: func(*testing.T, *v1alpha1.RedisCluster) string { time.Sleep(5 * time.Second); return "" },
		},
		// Redis runs all the same, and heals.
		"exporter": {
			change: func(c *v1alpha1.RedisCluster) {
				c.Spec.Pod[0].MonitorImage = "docker.io/oliver006/redis_exporter:v0.0.99"
			},
			back:      func(c *v1alpha1.RedisCluster) { c.Spec.Pod[0].MonitorImage = "" },
			why:       "container exporter: ",
			meanwhile: replacesALostReplica,
		},
	} {
		t.Run(name, func(t *testing.T) {
			parallel(t)
			live.Scenario(t, func(t *testing.T, run *live.Run) {
				cluster := newCluster(live.NewNamespace(t), "cache")
				cluster.Spec.Storage = nil
				cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}
				load := underLoad(t, cluster, 1000)
				before := podUIDs(t, cluster)
				live.Change(t, cluster, tt.change)
				live.Eventually(t, "the rollout halts and says why", func() error {
					if err := live.Get(t, cluster); err != nil {
						return err
					}
					if s := cluster.Status; s.Phase != v1alpha1.PhaseUpgrading || !strings.Contains(s.Reason, tt.why) ||
						!strings.Contains(s.Reason, "ImagePull") {
						return fmt.Errorf("phase %s: %s", s.Phase, s.Reason)
					}
					return nil
				})
				lost := tt.meanwhile(t, cluster)
				var replaced []string
				for pod, uid := range podUIDs(t, cluster) {
					if before[pod] != uid && pod != lost {
						replaced = append(replaced, pod)
					}
				}
				if len(replaced) != 1 {
					t.Errorf("%v were replaced by what does not start, want one", replaced)
				}
				live.Change(t, cluster, tt.back)
				live.Eventually(t, "nothing is under way", func() error { return atRest(t, cluster) })
				wantHealthy(t, cluster, 3, 6)
				run.WantUnnoticed(load, live.NothingMoved)
			})
		})
	}
}

// replacesALostReplica deletes a replica and its data, and waits until another one is in its place.
func replacesALostReplica(t *testing.T, cluster *v1alpha1.RedisCluster) string {
	t.Helper()
	at := slices.IndexFunc(cluster.Status.Nodes,
		func(n v1alpha1.NodeStatus) bool { return n.Type != "master" && n.Status == metav1.ConditionTrue })
	lost := cluster.Status.Nodes[at]
	if err := live.Kube.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: lost.Name}}); err !=
		nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the operator replaces a lost replica", func() error {
		if err := live.Get(t, cluster); err != nil {
			return err
		}
		for _, n := range cluster.Status.Nodes {
			// In sync, as it would be NotInSync otherwise.
			if n.Name == lost.Name && n.NodeID != lost.NodeID && n.MasterNodeID == lost.MasterNodeID && n.Reason == "NotReady" {
				return nil
			}
		}
		return fmt.Errorf("%+v", cluster.Status.Nodes)
	})
	return lost.Name
}

// Nodes are drained one after the other, as `kubectl drain` does it, the operator's own among them, which knows of none of it: a
// master switches over before it stops.
func TestRedisClusterDrains(t *testing.T) {
	live.Scenario(t, func(t *testing.T, run *live.Run) {
		cluster := newCluster(live.NewNamespace(t), "cache")
		cluster.Spec.Storage = nil
		cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}
		load := underLoad(t, cluster, 5000)
		var nodes corev1.NodeList
		if err := live.Kube.List(t.Context(), &nodes); err != nil {
			t.Fatal(err)
		}
		for i := range nodes.Items {
			drain(t, cluster, nodes.Items[i].Name)
		}
		live.Eventually(t, "nothing is under way", func() error { return atRest(t, cluster) })
		wantHealthy(t, cluster, 3, 6)
		run.WantUnnoticed(load, live.NothingMoved)
	})
}

// drain evicts a cluster's pods and the operator from a node, waits until the cluster is Ready without it, and gives it back.
func drain(t *testing.T, cluster *v1alpha1.RedisCluster, node string) {
	t.Helper()
	start := time.Now()
	cordon(t, node, true)
	defer cordon(t, node, false)
	live.Eventually(t, node+" is drained", func() error {
		var pods, operators corev1.PodList
		if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
			client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
			return err
		}
		if err := live.Kube.List(t.Context(), &operators, client.InNamespace(live.OperatorNamespace)); err != nil {
			return err
		}
		all := slices.Concat(pods.Items, operators.Items)
		var left []error
		for i := range all {
			pod := &all[i]
			if pod.Spec.NodeName != node {
				continue
			}
			left = append(left, fmt.Errorf("%s is still there", pod.Name))
			if pod.DeletionTimestamp == nil {
				eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
				if err := live.Kube.SubResource("eviction").Create(t.Context(), pod, eviction); err != nil && !apierrors.IsTooManyRequests(err) &&
					!apierrors.IsNotFound(err) {
					return err
				}
			}
		}
		return errors.Join(left...)
	})
	live.Eventually(t, "every instance serves elsewhere", func() error { return everyPodServes(t, cluster) })
	live.Ready(t, cluster)
	t.Logf("%s drained and whole again after %.1f s", node, time.Since(start).Seconds())
}

// everyPodServes checks that no pod stops or starts.
func everyPodServes(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		return err
	}
	serving := 0
	for i := range pods.Items {
		if podready.Ready(&pods.Items[i]) && pods.Items[i].DeletionTimestamp == nil {
			serving++
		}
	}
	if want := int(*cluster.Spec.Replicas); serving != want {
		return fmt.Errorf("%d of %d pods serve", serving, want)
	}
	return nil
}

func cordon(t *testing.T, name string, unschedulable bool) {
	t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	live.Change(t, node, func(n *corev1.Node) { n.Spec.Unschedulable = unschedulable })
}
