// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// engine is an image that a RedisCluster is tested on.
type engine struct{ name, repository, version string }

var engines = []engine{
	{"redis-7.0", "docker.io/library/redis", "7.0.15"},
	{"redis-8.0", "docker.io/library/redis", "8.0.6"},
	{"valkey-8.1", "docker.io/valkey/valkey", "8.1.1"},
	{"valkey-9.1", "docker.io/valkey/valkey", "9.1.2"},
}

// oldest and newest are the engine of a test whose story is the same for all engines, whose commands test/engine gives to all; with
// E2E=all every one.
func oldest() []engine { return unlessAll(engines[:1]) }
func newest() []engine { return unlessAll(engines[len(engines)-1:]) }

func unlessAll(some []engine) []engine {
	if os.Getenv("E2E") == "all" {
		return engines
	}
	return some
}

func newCluster(namespace, name string) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RedisClusterSpec{
			Repository: "docker.io/library/redis", Version: "7.0.15",
			Replicas: ptr.To[int32](6),
			Storage:  &v1alpha1.Storage{Size: resource.MustParse("64Mi"), Retain: v1alpha1.RetainDelete},
			// Without a request the kernel gives them a small part of what the operator and the application get beside them.
			Pod: []v1alpha1.PodTemplate{
				{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m")}}}},
		},
	}
}

// From a CR to a formed cluster, a lost pod, all pods lost, deletion.
func TestRedisClusterLives(t *testing.T) {
	parallel(t)
	for _, engine := range newest() {
		t.Run(engine.name, func(t *testing.T) {
			namespace := live.NewNamespace(t)
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			live.Create(t, cluster)
			live.Ready(t, cluster)
			wantHealthy(t, cluster, 3, 6)

			const keys = 200
			write(t, cluster, keys)

			t.Run("a killed pod comes back under a new address", func(t *testing.T) {
				killed := master(t, cluster, 0)
				was := killPods(t, cluster, killed.Name)
				settled(t, cluster, was)
				wantKeys(t, cluster, keys)
				wantHealthy(t, cluster, 3, 6)
			})
			t.Run("all pods killed at once come back with the data", func(t *testing.T) {
				start := time.Now()
				was := killPods(t, cluster, names(cluster)...)
				settled(t, cluster, was)
				t.Logf("all pods killed to Ready again: %.1f s", time.Since(start).Seconds())
				wantKeys(t, cluster, keys)
				wantHealthy(t, cluster, 3, 6)
			})
			t.Run("foreground deletion waits until all is gone", func(t *testing.T) { wantGone(t, cluster) })
		})
	}
}

// The source document's manifest applies as it stands, and is left alone while it says
// pause; resumed, it becomes shards of 3, 2 and 2 instances.
func TestRedisClusterOfTheSourceDocument(t *testing.T) {
	parallel(t)
	var cluster v1alpha1.RedisCluster
	live.Sample(t, "redis_v1alpha1_rediscluster.yaml", &cluster)
	err := live.Kube.Create(t.Context(), &cluster)
	if err != nil && !apierrors.IsAlreadyExists(err) { // make demo applies it as well
		t.Fatalf("create the sample: %v", err)
	}
	if err == nil {
		t.Cleanup(func() { _ = live.Kube.Delete(context.Background(), &cluster) })
	}
	live.Eventually(t, "it is paused", func() error {
		if err := live.Get(t, &cluster); err != nil || cluster.Status.Phase != v1alpha1.PhasePaused {
			return errors.Join(err, fmt.Errorf("phase is %q: %s", cluster.Status.Phase, cluster.Status.Reason))
		}
		return nil
	})
	var sets appsv1.StatefulSetList
	if err := live.Kube.List(t.Context(), &sets, client.InNamespace(cluster.Namespace),
		client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil || len(sets.Items) > 0 {
		t.Fatalf("a paused cluster has %d StatefulSets (%v), want none", len(sets.Items), err)
	}
}

// Data that lives with its pod is gone with all pods: the cluster serves again, empty.
func TestRedisClusterOnEmptyDir(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	cluster := newCluster(namespace, "scratch")
	cluster.Spec.Storage = nil
	cluster.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}
	cluster.Spec.Auth.Enabled = ptr.To(false)
	live.Create(t, cluster)
	live.Ready(t, cluster)
	write(t, cluster, 50)

	t.Run("a lost master is replaced and its data is served by its replica", func(t *testing.T) {
		was := killPods(t, cluster, master(t, cluster, 1).Name)
		settled(t, cluster, was)
		wantKeys(t, cluster, 50)
	})
	t.Run("most masters lost for good: their replicas take over", func(t *testing.T) {
		was := killPods(t, cluster, master(t, cluster, 0).Name, master(t, cluster, 2).Name)
		settled(t, cluster, was)
		wantKeys(t, cluster, 50)
	})
	t.Run("all data lost: the cluster is formed again", func(t *testing.T) {
		was := killPods(t, cluster, names(cluster)...)
		settled(t, cluster, was)
		wantHealthy(t, cluster, 3, 6)
	})
}

// Deletion follows spec.finalizers and storage.retain.
func TestRedisClusterDeletion(t *testing.T) {
	parallel(t)
	namespace := live.NewNamespace(t)
	t.Run("orphan leaves a cluster that runs", func(t *testing.T) {
		cluster := newCluster(namespace, "orphan")
		cluster.Spec.Finalizers, cluster.Spec.Replicas = v1alpha1.DeletionOrphan, ptr.To[int32](3)
		live.Create(t, cluster)
		live.Ready(t, cluster)
		if err := live.Kube.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		live.Eventually(t, "the object is gone", func() error { return gone(t, cluster.DeepCopy()) })
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.ShardName(0)}}
		if err := live.Get(t, set); err != nil || len(set.OwnerReferences) > 0 || set.DeletionTimestamp != nil {
			t.Errorf("the StatefulSet should run on without an owner: %v, %v", err, set.OwnerReferences)
		}
	})
	t.Run("background with Retain leaves the claims", func(t *testing.T) {
		cluster := newCluster(namespace, "kept")
		cluster.Spec.Finalizers, cluster.Spec.Replicas = v1alpha1.DeletionBackground, ptr.To[int32](3)
		cluster.Spec.Storage.Retain = v1alpha1.Retain
		live.Create(t, cluster)
		live.Ready(t, cluster)
		write(t, cluster, 20)
		if err := live.Kube.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		live.Eventually(t, "object and pods are gone", func() error { return errors.Join(gone(t, cluster.DeepCopy()), noPods(t, cluster)) })
		wantClaims(t, cluster, 3)
		// A cluster of the same name takes the data up again.
		again := newCluster(namespace, "kept")
		again.Spec.Replicas, again.Spec.Storage.Retain = ptr.To[int32](3), v1alpha1.Retain
		live.Create(t, again)
		live.Ready(t, again)
		wantKeys(t, again, 20)
	})
}

// What the operator made is put back when someone else changes or deletes it.
func TestRedisClusterRepairsItsChildren(t *testing.T) {
	shownElsewhere(t, "TestDriftIsPutBackAndForeignFieldsStay and TestChildrenArePutBack of test/apiserver")
	parallel(t)
	namespace := live.NewNamespace(t)
	cluster := newCluster(namespace, "drift")
	cluster.Spec.Replicas = ptr.To[int32](3)
	live.Create(t, cluster)
	live.Ready(t, cluster)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name}}
	if err := live.Get(t, service); err != nil {
		t.Fatal(err)
	}
	if err := live.Kube.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	deleted := service.UID
	live.Eventually(t, "the deleted Service is back", func() error {
		if err := live.Get(t, service); err != nil || service.UID == deleted {
			return errors.Join(err, errors.New("it is the deleted one"))
		}
		return nil
	})
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.ShardName(1)}}
	live.Change(t, set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](0) })
	live.Eventually(t, "the StatefulSet that was scaled to nothing is restored", func() error {
		if err := live.Get(t, set); err != nil || *set.Spec.Replicas != 1 {
			return errors.Join(err, fmt.Errorf("replicas is %d", *set.Spec.Replicas))
		}
		return nil
	})
	live.Ready(t, cluster)

	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.Size = resource.MustParse("128Mi") })
	awaitClaims(t, cluster, "128Mi")
	live.Eventually(t, "a large value is written", func() error { // the instance that was stopped may just have come back
		answers, err := batch(t, cluster, cluster.Status.Nodes[0].Name, []string{"setrange large 60000000 x", "strlen large"})
		if err == nil && answers[1] != "60000001" {
			err = fmt.Errorf("answers %q", answers)
		}
		return err
	})
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.MaxSize = ptr.To(resource.MustParse("200Mi")) })
	awaitClaims(t, cluster, "200Mi") // with twice 57 MiB, and no room for twice of that
	wantUnchanged(t, cluster)
}

// awaitClaims waits until all claims of a cluster ask for a size, and it is Ready.
func awaitClaims(t *testing.T, cluster *v1alpha1.RedisCluster, size string) {
	t.Helper()
	live.Eventually(t, "the claims ask for "+size+", and the cluster stays Ready", func() error {
		var claims corev1.PersistentVolumeClaimList
		if err := live.Kube.List(t.Context(), &claims, client.InNamespace(cluster.Namespace)); err != nil {
			return err
		}
		for i := range claims.Items {
			if got := claims.Items[i].Spec.Resources.Requests.Storage().String(); got != size {
				return fmt.Errorf("claim %s asks for %s", claims.Items[i].Name, got)
			}
		}
		return live.IsReady(t, cluster)
	})
}

// wantUnchanged: what is at rest is written by nobody while the operator looks three times.
func wantUnchanged(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	versions := func() map[string]string {
		found := map[string]string{}
		for _, list := range []client.ObjectList{&v1alpha1.RedisClusterList{}, &appsv1.StatefulSetList{}, &corev1.PodList{},
			&corev1.PersistentVolumeClaimList{}, &corev1.ServiceList{}, &corev1.ConfigMapList{}, &corev1.SecretList{},
			&corev1.ServiceAccountList{}, &policyv1.PodDisruptionBudgetList{}, &networkingv1.NetworkPolicyList{}, &corev1.EventList{}} {
			if err := live.Kube.List(t.Context(), list, client.InNamespace(cluster.Namespace)); err != nil {
				t.Fatal(err)
			}
			_ = meta.EachListItem(list, func(o runtime.Object) error {
				object, _ := o.(client.Object)
				found[fmt.Sprintf("%T %s", o, object.GetName())] = object.GetResourceVersion()
				return nil
			})
		}
		return found
	}
	live.Eventually(t, "nothing is written for three looks of the operator", func() error {
		before := versions()
		time.Sleep(31 * time.Second)
		if diff := cmp.Diff(before, versions()); diff != "" {
			return fmt.Errorf("versions before (-) and after (+):\n%s", diff)
		}
		return nil
	})
}
