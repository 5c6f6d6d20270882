// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	redisslots "middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/test/live"
)

// The source document's manifest with every field in its place and a value that exists here: what each of them does is seen in the
// pods, the processes, the metrics and the slots.
func TestRedisClusterOfTheSourceDocumentInFull(t *testing.T) {
	parallel(t)
	if !live.Local() {
		t.Skip("needs a folder that all nodes have, and labels of nodes")
	}
	var sample v1alpha1.RedisCluster
	live.Sample(t, "redis_v1alpha1_rediscluster.yaml", &sample)
	namespace := live.NewNamespace(t)
	folder := sharedClaim(t, namespace, "shared")
	labelled := map[string]bool{"node1": true, "node2": true}
	for name := range labelled {
		label(t, name, "HC_Status", "C")
		t.Cleanup(func() { label(t, name, "HC_Status", "") })
	}
	live.Create(t,
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "settings"},
			Data: map[string]string{"redis.conf": "maxclients 500\n"}})

	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: sample.Name}, Spec: *sample.Spec.DeepCopy()}
	spec, pod := &cluster.Spec, &cluster.Spec.Pod[0]
	spec.Pause, spec.Version, pod.MiddlewareImage = false, "7.0.15", "docker.io/library/redis:7.0.15"
	pod.MonitorImage, pod.InitImage = "docker.io/oliver006/redis_exporter:v1.45.0", "docker.io/library/busybox:1.36"
	pod.Volumes.PersistentVolumeClaimName, pod.Configmap = "shared", "settings"
	pod.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("50m"),
		corev1.ResourceMemory: resource.MustParse("64Mi")}
	for i := range spec.UpdateStrategy.AssignStrategies { // node IDs are known when there are nodes
		spec.UpdateStrategy.AssignStrategies[i].FromReplicas = strings.Repeat("0", 40)
	}
	live.Create(t, cluster)
	live.Ready(t, cluster)
	wantHealthy(t, cluster, 3, 7)

	t.Run("pods", func(t *testing.T) { wantPodsOfTheDocument(t, cluster, labelled, folder) })
	t.Run("processes", func(t *testing.T) { wantProcessOfTheDocument(t, cluster) })
	t.Run("metrics", func(t *testing.T) {
		live.Eventually(t, "the exporter tells of its instance", func() error {
			text, err := live.Clientset.CoreV1().Pods(namespace).ProxyGet("http", cluster.Name+"-0-0", "9121", "metrics", nil).DoRaw(t.Context())
			if err != nil || !strings.Contains(string(text), "\nredis_up 1\n") ||
				!strings.Contains(string(text), "\nredis_cluster_slots_ok 16384\n") {
				return errors.Join(err, fmt.Errorf("%.2000s", text))
			}
			return nil
		})
	})
	t.Run("status", func(t *testing.T) { wantStatusOfTheDocument(t, cluster) })
	t.Run("slots", func(t *testing.T) { wantSlotsOfTheDocument(t, cluster) })
}

// sharedClaim is a claim that pods of all nodes can use at once, as one of a network's file server; it returns the folder behind it.
func sharedClaim(t *testing.T, namespace, name string) (folder string) {
	t.Helper()
	folder, err := os.MkdirTemp("/tmp", "shared-claim-") // nodes of the local cluster see the machine's /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o777); err != nil { // as a file server would export it
		t.Fatal(err)
	}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: corev1.PersistentVolumeSpec{
		Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{
			corev1.ReadWriteMany},
		PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, ClaimRef: &corev1.ObjectReference{Namespace: namespace, Name: name},
	}}
	live.Create(t, volume)
	t.Cleanup(func() { _ = live.Kube.Delete(context.Background(), volume) })
	live.Create(t, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: volume.Spec.AccessModes, StorageClassName: ptr.To(""), VolumeName: volume.Name,
			Resources: corev1.VolumeResourceRequirements{Requests: volume.Spec.Capacity},
		}})
	return folder
}

// label labels a node; an empty value takes the label away.
func label(t *testing.T, node, key, value string) {
	t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}}
	change := func(n *corev1.Node) {
		delete(n.Labels, key)
		if value != "" {
			n.Labels[key] = value
		}
	}
	if t.Context().Err() == nil {
		live.Change(t, n, change)
		return
	}
	if err := live.Kube.Get(context.Background(), client.ObjectKeyFromObject(n), n); err == nil { // in a clean-up the test's context has ended
		change(n)
		_ = live.Kube.Update(context.Background(), n)
	}
}

// wantPodsOfTheDocument: labels, annotations, images, resources, nodes, and where data is.
func wantPodsOfTheDocument(t *testing.T, cluster *v1alpha1.RedisCluster, nodes map[string]bool, folder string) {
	perShard := map[string]int{}
	for _, pod := range podsOf(t, cluster) {
		perShard[pod.Labels[v1alpha1.LabelShard]]++
		if pod.Labels["key"] != "value" || pod.Annotations["key"] != "value" {
			t.Errorf("%s has labels %v and annotations %v", pod.Name, pod.Labels, pod.Annotations)
		}
		if !nodes[pod.Spec.NodeName] {
			t.Errorf("%s runs on %s, which has no label", pod.Name, pod.Spec.NodeName)
		}
		images := map[string]string{}
		for _, c := range pod.Spec.InitContainers {
			images[c.Name] = c.Image
		}
		for _, c := range pod.Spec.Containers {
			images[c.Name] = c.Image
		}
		template := cluster.Spec.Pod[0]
		if images["redis"] != template.MiddlewareImage || images["exporter"] != template.MonitorImage || images["init"] != template.InitImage {
			t.Errorf("%s runs %v", pod.Name, images)
		}
		if limits := pod.Spec.Containers[0].Resources.Limits; limits.Cpu().String() != "2" || limits.Memory().String() != "4Gi" {
			t.Errorf("%s is limited to %v", pod.Name, limits)
		}
		if _, err := os.Stat(filepath.Join(folder, pod.Name, "nodes.conf")); err != nil {
			t.Errorf("the shared claim has no folder of %s: %v", pod.Name, err)
		}
	}
	if perShard["0"] != 3 || perShard["1"] != 2 || perShard["2"] != 2 {
		t.Errorf("instances by shard are %v, want 3, 2 and 2", perShard)
	}
}

// wantProcessOfTheDocument: variables, and settings of the ConfigMap.
func wantProcessOfTheDocument(t *testing.T, cluster *v1alpha1.RedisCluster) {
	pod := cluster.Name + "-0-0"
	out, err := live.Execute(t.Context(), cluster.Namespace, pod, "redis", "sh", "-c", "env") // Redis writes over its own
	if lines := strings.Split(out, "\n"); err != nil || !slices.Contains(lines, "tony=aa") || !slices.Contains(lines, "MAXMEMORY=2gb") {
		t.Errorf("variables of the server (%v): %s", err, out)
	}
	for setting, want := range map[string]string{"maxclients": "500", "maxmemory": "2147483648"} {
		if out, err := cli(t.Context(), cluster, pod, "config", "get", setting); err != nil || out != setting+"\n"+want {
			t.Errorf("%v: %s, want %s", err, out, want)
		}
	}
}

// wantStatusOfTheDocument: every field of the status has what it says.
func wantStatusOfTheDocument(t *testing.T, cluster *v1alpha1.RedisCluster) {
	s := cluster.Status
	if s.Replicas != 7 || s.Phase != v1alpha1.PhaseRunning || s.TargetVersion != "7.0.15" || len(s.Nodes) != 7 {
		t.Errorf("replicas %d, phase %s, version %s, %d nodes", s.Replicas, s.Phase, s.TargetVersion, len(s.Nodes))
	}
	uids, addresses := podUIDs(t, cluster), map[string]string{}
	for _, pod := range podsOf(t, cluster) {
		addresses[pod.Name] = pod.Status.PodIP + ":6379 on " + pod.Spec.NodeName + " " + pod.Status.HostIP
	}
	for _, n := range s.Nodes {
		if uids[n.Name] == "" || n.Instance+" on "+n.Hostname+" "+n.HostIP != addresses[n.Name] {
			t.Errorf("%+v is not %s", n, addresses[n.Name])
		}
		if want := n.Name + "." + cluster.Name + "-nodes." + cluster.Namespace + ".svc."; !strings.HasPrefix(n.DomainName, want) {
			t.Errorf("domainName of %s is %s, want %s and the cluster's domain", n.Name, n.DomainName, want)
		}
		isMaster := n.Type == "master" && n.MasterNodeID == n.NodeID && n.Slots != ""
		isReplica := n.Type == "slave" && n.MasterNodeID != n.NodeID && len(n.MasterNodeID) == 40 && n.Slots == ""
		if len(n.NodeID) != 40 || !isMaster && !isReplica || n.Status != metav1.ConditionTrue || n.LastTransitionTime.IsZero() {
			t.Errorf("%+v", n)
		}
	}
}

// wantSlotsOfTheDocument: two masters join and receive what assignStrategies say, in batches of pipeline keys.
func wantSlotsOfTheDocument(t *testing.T, cluster *v1alpha1.RedisCluster) {
	const keys = 250
	first := master(t, cluster, 0)
	tag := ""
	owned, err := redisslots.Parse(first.Slots)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; tag == ""; i++ { // of the last slots of shard 0, which it gives first
		if slot := redisslots.KeySlot(fmt.Sprint(i)); owned.Contains(slot) && int(slot) > owned.Len()-1000 {
			tag = fmt.Sprint(i)
		}
	}
	script := prelude + `for i in $(seq "$2"); do echo "set {$1}$i $i"; done | redis-cli | grep -c OK`
	if out, err := live.Execute(t.Context(), cluster.Namespace, first.Name, "redis", "sh", "-c", script, "sh", tag, fmt.Sprint(keys)); err !=
		nil || out != fmt.Sprint(keys) {
		t.Fatalf("write: %v: %s", err, out)
	}
	before := ownedByShard(cluster)
	sources := []string{first.NodeID, master(t, cluster, 1).NodeID + "," + master(t, cluster, 2).NodeID}
	live.Change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Shards, c.Spec.Replicas = ptr.To[int32](5), ptr.To[int32](11)
		for i := range c.Spec.UpdateStrategy.AssignStrategies {
			c.Spec.UpdateStrategy.AssignStrategies[i].FromReplicas = sources[i]
		}
	})
	live.Ready(t, cluster)
	wantHealthy(t, cluster, 5, 11)
	after := ownedByShard(cluster)
	if before[0]-after[0] != 2000 || before[1]-after[1] != 500 || before[2]-after[2] != 500 || after[3] != 2000 || after[4] != 1000 {
		t.Errorf("slots by shard were %v and are %v", before, after)
	}
	stats, err := cli(t.Context(), cluster, first.Name, "info", "commandstats")
	if err != nil || !strings.Contains(stats, "cmdstat_migrate:calls=3,") {
		t.Errorf("%d keys of one slot should go in 3 batches of 100 at most (%v): %s", keys, err, stats)
	}
	if out, err := cli(t.Context(), cluster, master(t, cluster, 3).Name, "dbsize"); err != nil || out != fmt.Sprint(keys) {
		t.Errorf("the new master has %s keys (%v), want %d", out, err, keys)
	}
}
