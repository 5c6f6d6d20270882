// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// engines are the images that every RedisCluster test runs on.
var engines = []struct{ name, repository, version string }{
	{"redis-7.0", "docker.io/library/redis", "7.0.15"},
	{"redis-8.0", "docker.io/library/redis", "8.0.6"},
	{"valkey-8.1", "docker.io/valkey/valkey", "8.1.1"},
	{"valkey-9.1", "docker.io/valkey/valkey", "9.1.2"},
}

func newCluster(namespace, name string) *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: v1alpha1.RedisClusterSpec{
			Repository: "docker.io/library/redis", Version: "7.0.15",
			Replicas: ptr.To[int32](6),
			Storage:  &v1alpha1.Storage{Size: resource.MustParse("64Mi"), Retain: v1alpha1.RetainDelete},
		},
	}
}

// From a CR to a formed cluster, a lost pod, all pods lost, deletion; on every engine.
func TestRedisClusterLives(t *testing.T) {
	for _, engine := range engines {
		t.Run(engine.name, func(t *testing.T) {
			namespace := newNamespace(t)
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Repository, cluster.Spec.Version = engine.repository, engine.version
			create(t, cluster)
			ready(t, cluster)
			wantWhole(t, cluster, 3, 6)

			const keys = 200
			write(t, cluster, keys)

			t.Run("a killed pod comes back under a new address", func(t *testing.T) {
				killed := master(t, cluster, 0)
				was := killPods(t, cluster, killed.Name)
				settled(t, cluster, was)
				wantKeys(t, cluster, keys)
				wantWhole(t, cluster, 3, 6)
			})
			t.Run("all pods killed at once come back with the data", func(t *testing.T) {
				start := time.Now()
				was := killPods(t, cluster, names(cluster)...)
				settled(t, cluster, was)
				t.Logf("all pods killed to Ready again: %.1f s", time.Since(start).Seconds())
				wantKeys(t, cluster, keys)
				wantWhole(t, cluster, 3, 6)
			})
			t.Run("foreground deletion waits until all is gone", func(t *testing.T) { wantGone(t, cluster) })
		})
	}
}

// The source document's manifest applies as it stands, and is left alone while it says
// pause; resumed, it becomes shards of 3, 2 and 2 instances.
func TestRedisClusterOfTheSourceDocument(t *testing.T) {
	var cluster v1alpha1.RedisCluster
	sample(t, "redis_v1alpha1_rediscluster.yaml", &cluster)
	err := kube.Create(t.Context(), &cluster)
	if err != nil && !apierrors.IsAlreadyExists(err) { // make demo applies it as well
		t.Fatalf("create the sample: %v", err)
	}
	if err == nil {
		t.Cleanup(func() { _ = kube.Delete(context.Background(), &cluster) })
	}
	eventually(t, "it is paused", func() error {
		if err := get(t, &cluster); err != nil || cluster.Status.Phase != v1alpha1.PhasePaused {
			return errors.Join(err, fmt.Errorf("phase is %q: %s", cluster.Status.Phase, cluster.Status.Reason))
		}
		return nil
	})
	var sets appsv1.StatefulSetList
	if err := kube.List(t.Context(), &sets, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil || len(sets.Items) > 0 {
		t.Fatalf("a paused cluster has %d StatefulSets (%v), want none", len(sets.Items), err)
	}

	// What of it can run here: an engine of today, storage that exists, slots by themselves.
	namespace := newNamespace(t)
	resumed := cluster.DeepCopy()
	resumed.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name}
	resumed.Spec.Pause = false
	resumed.Spec.Version = "7.0.15"
	resumed.Spec.UpdateStrategy = v1alpha1.SlotStrategy{}
	resumed.Spec.Pod[0].Volumes = &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}
	resumed.Spec.Pod[0].Configmap, resumed.Spec.Pod[0].MonitorImage = "", ""
	resumed.Spec.Pod[0].InitImage, resumed.Spec.Pod[0].MiddlewareImage = "", ""
	resumed.Spec.Pod[0].Affinity = nil
	resumed.Spec.Pod[0].Resources = corev1.ResourceRequirements{}
	create(t, resumed)
	ready(t, resumed)
	wantWhole(t, resumed, 3, 7)
	perShard := map[int32]int{}
	for _, node := range resumed.Status.Nodes {
		perShard[node.Shard]++
	}
	if perShard[0] != 3 || perShard[1] != 2 || perShard[2] != 2 {
		t.Errorf("instances by shard are %v, want 3, 2 and 2", perShard)
	}
	var pod corev1.Pod
	if err := kube.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: cluster.Name + "-0-0"}, &pod); err != nil {
		t.Fatal(err)
	}
	if pod.Labels["key"] != "value" || pod.Annotations["key"] != "value" {
		t.Errorf("the template's label and annotation are not on the pod: %v %v", pod.Labels, pod.Annotations)
	}
	env := map[string]string{}
	for _, e := range pod.Spec.Containers[0].Env {
		env[e.Name] = e.Value
	}
	if env["tony"] != "aa" || env["MAXMEMORY"] != "2gb" {
		t.Errorf("the template's variables are not in the container: %v", env)
	}
}

// Data that lives with its pod is gone with all pods: the cluster serves again, empty.
func TestRedisClusterOnEmptyDir(t *testing.T) {
	namespace := newNamespace(t)
	cluster := newCluster(namespace, "scratch")
	cluster.Spec.Storage = nil
	cluster.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: v1alpha1.VolumeEmptyDir}}}
	cluster.Spec.Auth.Enabled = ptr.To(false)
	create(t, cluster)
	ready(t, cluster)
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
		wantWhole(t, cluster, 3, 6)
	})
}

// Deletion follows spec.finalizers and storage.retain.
func TestRedisClusterDeletion(t *testing.T) {
	namespace := newNamespace(t)
	t.Run("orphan leaves a cluster that runs", func(t *testing.T) {
		cluster := newCluster(namespace, "orphan")
		cluster.Spec.Finalizers, cluster.Spec.Replicas = v1alpha1.DeletionOrphan, ptr.To[int32](3)
		create(t, cluster)
		ready(t, cluster)
		if err := kube.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the object is gone", func() error { return gone(t, cluster.DeepCopy()) })
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.ShardName(0)}}
		if err := get(t, set); err != nil || len(set.OwnerReferences) > 0 || set.DeletionTimestamp != nil {
			t.Errorf("the StatefulSet should run on without an owner: %v, %v", err, set.OwnerReferences)
		}
	})
	t.Run("background with Retain leaves the claims", func(t *testing.T) {
		cluster := newCluster(namespace, "kept")
		cluster.Spec.Finalizers, cluster.Spec.Replicas = v1alpha1.DeletionBackground, ptr.To[int32](3)
		cluster.Spec.Storage.Retain = v1alpha1.Retain
		create(t, cluster)
		ready(t, cluster)
		write(t, cluster, 20)
		if err := kube.Delete(t.Context(), cluster); err != nil {
			t.Fatal(err)
		}
		eventually(t, "object and pods are gone", func() error { return errors.Join(gone(t, cluster.DeepCopy()), noPods(t, cluster)) })
		if n := claims(t, cluster); n != 3 {
			t.Errorf("%d claims are left, want 3", n)
		}
		// A cluster of the same name takes the data up again.
		again := newCluster(namespace, "kept")
		again.Spec.Replicas, again.Spec.Storage.Retain = ptr.To[int32](3), v1alpha1.Retain
		create(t, again)
		ready(t, again)
		wantKeys(t, again, 20)
	})
}

// What the operator made is put back when someone else changes or deletes it.
func TestRedisClusterRepairsItsChildren(t *testing.T) {
	namespace := newNamespace(t)
	cluster := newCluster(namespace, "drift")
	cluster.Spec.Replicas = ptr.To[int32](3)
	create(t, cluster)
	ready(t, cluster)
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name}}
	if err := get(t, service); err != nil {
		t.Fatal(err)
	}
	if err := kube.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deleted Service is back", func() error {
		return get(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name}})
	})
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.ShardName(1)}}
	change(t, set, func(s *appsv1.StatefulSet) { s.Spec.Replicas = ptr.To[int32](0) })
	eventually(t, "the StatefulSet that was scaled to nothing is restored", func() error {
		if err := get(t, set); err != nil || *set.Spec.Replicas != 1 {
			return errors.Join(err, fmt.Errorf("replicas is %d", *set.Spec.Replicas))
		}
		return nil
	})
	ready(t, cluster)

	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Storage.Size = resource.MustParse("128Mi") })
	eventually(t, "the claims ask for more, and the cluster stays Ready", func() error {
		var claims corev1.PersistentVolumeClaimList
		if err := kube.List(t.Context(), &claims, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range claims.Items {
			if got := claims.Items[i].Spec.Resources.Requests.Storage().String(); got != "128Mi" {
				return fmt.Errorf("claim %s asks for %s", claims.Items[i].Name, got)
			}
		}
		return isReady(t, cluster)
	})
}

func master(t *testing.T, cluster *v1alpha1.RedisCluster, shard int32) v1alpha1.NodeStatus {
	t.Helper()
	for _, node := range cluster.Status.Nodes {
		if node.Shard == shard && node.Type == "master" && node.Slots != "" {
			return node
		}
	}
	t.Fatalf("shard %d has no master: %+v", shard, cluster.Status.Nodes)
	return v1alpha1.NodeStatus{}
}

func names(cluster *v1alpha1.RedisCluster) []string {
	var list []string
	for _, node := range cluster.Status.Nodes {
		list = append(list, node.Name)
	}
	return list
}

// killPods deletes pods without grace, as a failing node would, and returns their UIDs.
func killPods(t *testing.T, cluster *v1alpha1.RedisCluster, pods ...string) map[string]bool {
	t.Helper()
	killed := map[string]bool{}
	for _, name := range pods {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name}}
		if err := get(t, pod); err != nil {
			t.Fatal(err)
		}
		killed[string(pod.UID)] = true
		if err := kube.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	return killed
}

// settled waits until the killed pods are replaced and the cluster is Ready again.
func settled(t *testing.T, cluster *v1alpha1.RedisCluster, killed map[string]bool) {
	t.Helper()
	eventually(t, "the cluster is whole again", func() error {
		var pods corev1.PodList
		if err := kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
			return err
		}
		if want := int(*cluster.Spec.Replicas); len(pods.Items) != want {
			return fmt.Errorf("%d pods, want %d", len(pods.Items), want)
		}
		for i := range pods.Items {
			if killed[string(pods.Items[i].UID)] {
				return fmt.Errorf("pod %s is still the killed one", pods.Items[i].Name)
			}
		}
		if err := isReady(t, cluster); err != nil {
			return err
		}
		return servesEverywhere(t, cluster)
	})
}

// servesEverywhere asks every instance itself.
func servesEverywhere(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	for _, name := range names(cluster) {
		info, err := cli(t.Context(), cluster, name, "cluster", "info")
		if err != nil {
			return err
		}
		if !strings.Contains(info, "cluster_state:ok") || !strings.Contains(info, "cluster_slots_ok:16384") {
			return fmt.Errorf("%s does not serve all slots: %s", name, info)
		}
	}
	return nil
}

// wantWhole asks the engine's own check, and the status.
func wantWhole(t *testing.T, cluster *v1alpha1.RedisCluster, shards, instances int32) {
	t.Helper()
	if err := get(t, cluster); err != nil {
		t.Fatal(err)
	}
	s := cluster.Status
	if s.Phase != v1alpha1.PhaseRunning || s.Slots != 16384 || s.Shards != shards || s.Replicas != instances ||
		s.Instances != fmt.Sprintf("%d/%d", instances, instances) || len(s.Nodes) != int(instances) {
		t.Errorf("status: phase %s, %d slots, %d shards, %d replicas, instances %s, %d nodes", s.Phase, s.Slots, s.Shards, s.Replicas, s.Instances, len(s.Nodes))
	}
	out, err := cli(t.Context(), cluster, s.Nodes[0].Name, "--cluster", "check", "127.0.0.1:6379")
	if err != nil || !strings.Contains(out, "[OK] All 16384 slots covered.") || strings.Contains(out, "[WARNING]") {
		t.Errorf("the engine's own check: %v\n%s", err, out)
	}
}

// prelude reads the password that the instance itself uses, and defines ask: redis-cli as
// an ordinary cluster client would use it, trying again while it gets an error instead of
// an answer. The shell is the test's own.
const prelude = `REDISCLI_AUTH="$(sed -n 's/^masterauth "\(.*\)"$/\1/p' /etc/redis/auth/auth.conf 2>/dev/null)"
if [ -n "$REDISCLI_AUTH" ]; then export REDISCLI_AUTH; else unset REDISCLI_AUTH; fi
ask() { n=0; until redis-cli -e -c -h "$HOST" "$@"; do n=$((n+1)); [ $n -lt 100 ] || return 1; sleep 0.1; done; }
`

// cli runs redis-cli in an instance.
func cli(ctx context.Context, cluster *v1alpha1.RedisCluster, pod string, args ...string) (string, error) {
	return execute(ctx, cluster.Namespace, pod, "redis", append([]string{"sh", "-c", prelude + `exec redis-cli "$@"`, "sh"}, args...)...)
}

// write sets keys through the cluster's Service, and waits until the replicas have them.
func write(t *testing.T, cluster *v1alpha1.RedisCluster, n int) {
	t.Helper()
	script := fmt.Sprintf("%sHOST=%s; for i in $(seq %d); do ask set key:$i value:$i; done 2>/dev/null | grep -c OK", prelude, cluster.Name, n)
	out, err := execute(t.Context(), cluster.Namespace, cluster.Status.Nodes[0].Name, "redis", "sh", "-c", script)
	if err != nil || out != fmt.Sprint(n) {
		t.Fatalf("write %d keys: %v: %s", n, err, out)
	}
	for _, node := range cluster.Status.Nodes {
		if node.Type != "master" {
			continue
		}
		replicas := 0
		for _, other := range cluster.Status.Nodes {
			if other.MasterNodeID == node.NodeID && other.NodeID != node.NodeID {
				replicas++
			}
		}
		if _, err := cli(t.Context(), cluster, node.Name, "wait", fmt.Sprint(replicas), "5000"); err != nil {
			t.Fatal(err)
		}
	}
}

// wantKeys reads every key through the Service.
func wantKeys(t *testing.T, cluster *v1alpha1.RedisCluster, n int) {
	t.Helper()
	if err := get(t, cluster); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`%sHOST=%s; for i in $(seq %d); do got=$(ask get key:$i 2>/dev/null); [ "$got" = value:$i ] && echo same || echo "key:$i=$got"; done | sort | uniq -c`,
		prelude, cluster.Name, n)
	out, err := execute(t.Context(), cluster.Namespace, cluster.Status.Nodes[0].Name, "redis", "sh", "-c", script)
	if err != nil || strings.TrimSpace(out) != fmt.Sprintf("%d same", n) {
		t.Errorf("read %d keys: %v: %s", n, err, out)
	}
}

func wantGone(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	if err := kube.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the object is gone", func() error { return gone(t, cluster.DeepCopy()) })
	// Foreground: when the object is gone, so are its pods.
	if err := noPods(t, cluster); err != nil {
		t.Error(err)
	}
	eventually(t, "claims, Secret and Service are gone", func() error {
		if n := claims(t, cluster); n > 0 {
			return fmt.Errorf("%d claims are left", n)
		}
		return errors.Join(
			gone(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.AuthSecretName()}}),
			gone(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}))
	})
}

func gone(t *testing.T, object client.Object) error {
	err := get(t, object)
	if apierrors.IsNotFound(err) {
		return nil
	}
	return errors.Join(err, fmt.Errorf("%T %s is still there", object, object.GetName()))
}

func noPods(t *testing.T, cluster *v1alpha1.RedisCluster) error {
	var pods corev1.PodList
	if err := kube.List(t.Context(), &pods, client.InNamespace(cluster.Namespace), client.MatchingLabels{v1alpha1.LabelCluster: cluster.Name}); err != nil {
		return err
	}
	if len(pods.Items) > 0 {
		return fmt.Errorf("%d pods are still there", len(pods.Items))
	}
	return nil
}

func claims(t *testing.T, cluster *v1alpha1.RedisCluster) int {
	t.Helper()
	var list corev1.PersistentVolumeClaimList
	if err := kube.List(t.Context(), &list, client.InNamespace(cluster.Namespace)); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range list.Items {
		if strings.Contains(list.Items[i].Name, cluster.Name+"-") {
			n++
		}
	}
	return n
}
