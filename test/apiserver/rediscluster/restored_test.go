// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/crash"
)

// etcd is what a namespace has in it, for backups.
func etcd(namespace string) crash.World {
	return crash.World{API: api, Kinds: childKinds, Namespaces: []string{namespace}}
}

// restore makes the objects of a namespace be as they were: what was made since is gone, what was deleted since is back, and the rest
// has the content that it had. Pods that run stay, as their kubelets see to it. What was deleted has another UID than it had, which its
// children know.
func restore(t *testing.T, namespace string, backup []*unstructured.Unstructured) {
	t.Helper()
	key := func(o *unstructured.Unstructured) string { return o.GetKind() + " " + o.GetName() }
	was := map[string]*unstructured.Unstructured{}
	for _, object := range backup {
		was[key(object)] = object.DeepCopy()
	}
	now, err := etcd(namespace).Objects(t.Context())
	check(t, err)
	uids, versions := map[types.UID]types.UID{}, map[types.UID]string{}
	for _, object := range now {
		if former := was[key(object)]; former != nil {
			uids[former.GetUID()], versions[former.GetUID()] = object.GetUID(), object.GetResourceVersion()
			continue
		}
		check(t, client.IgnoreNotFound(api.Patch(t.Context(), object,
			client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))))
		check(t, client.IgnoreNotFound(api.Delete(t.Context(), object, client.GracePeriodSeconds(0),
			client.PropagationPolicy(metav1.DeletePropagationBackground))))
	}
	for _, object := range backup { // the cluster comes first, then StatefulSets, which make their pods
		if object.GetKind() == "Pod" {
			continue
		}
		object = object.DeepCopy()
		status := object.Object["status"]
		references := object.GetOwnerReferences()
		for i := range references {
			if uid, known := uids[references[i].UID]; known {
				references[i].UID = uid
			}
		}
		object.SetOwnerReferences(references)
		former := object.GetUID()
		object.SetUID("")
		object.SetResourceVersion(versions[former])
		object.SetManagedFields(nil)
		write := func() error { return api.Create(t.Context(), object) }
		if versions[former] != "" {
			write = func() error { return api.Update(t.Context(), object) }
		}
		if err := write(); err != nil {
			t.Fatalf("restore %s: %v", key(object), err)
		}
		uids[former] = object.GetUID()
		if object.Object["status"] = status; status != nil {
			check(t, client.IgnoreNotFound(api.Status().Update(t.Context(), object)))
		}
	}
}

// put writes keys as an application does, and data is what the masters have.
func put(t *testing.T, k *kubelet, cluster *v1alpha1.RedisCluster, keys int) {
	t.Helper()
	password := string(ownSecret(t, cluster).Data[v1alpha1.SecretKeyPassword])
	for i := range keys {
		taken := ""
		for _, node := range instances(k, cluster) {
			conn, err := k.world.Connect(t.Context(), node.Addr())
			check(t, err)
			answers := bufio.NewReader(conn)
			for _, command := range [][]string{{"AUTH", password}, {"SET", fmt.Sprintf("key:%d", i), "value"}} {
				_, err := fmt.Fprintf(conn, "*%d\r\n", len(command))
				check(t, err)
				for _, word := range command {
					_, err := fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(word), word)
					check(t, err)
				}
				taken, err = answers.ReadString('\n')
				check(t, err)
			}
			check(t, conn.Close())
			if strings.HasPrefix(taken, "+OK") {
				break
			}
		}
		if !strings.HasPrefix(taken, "+OK") {
			t.Fatalf("key:%d is not taken: %s", i, taken)
		}
	}
}

func data(k *kubelet, cluster *v1alpha1.RedisCluster) map[string]string {
	held := map[string]string{}
	for _, node := range cluster.Status.Nodes {
		if node.Type == "master" {
			maps.Copy(held, k.node(node.Name).Keys())
		}
	}
	return held
}

// After etcd was restored from a backup, the operator that starts anew follows what the objects ask for by then, and keeps what Redis
// knows: no key of a claim that is there is lost, whatever was done since the backup. Two of five cases; SIMULATION=all tries all.
func TestRestoredCluster(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(*testing.T, *v1alpha1.RedisCluster){
		"a shard more":    func(t *testing.T, c *v1alpha1.RedisCluster) { scaled(5, 10)(t, c); awaitWhole(t, c) },
		"a shard less":    func(t *testing.T, c *v1alpha1.RedisCluster) { scaled(3, 6)(t, c); awaitWhole(t, c) },
		"fewer instances": func(t *testing.T, c *v1alpha1.RedisCluster) { scaled(4, 4)(t, c); awaitWhole(t, c) },
		"deleted": func(t *testing.T, c *v1alpha1.RedisCluster) {
			remove(t, c)
			awaitGone(t, c.DeepCopy())
			_, err := etcd(c.Namespace).Collect(t.Context())
			check(t, err)
		},
		"another password, accepted": func(t *testing.T, c *v1alpha1.RedisCluster) {
			change(t, c, func(c *v1alpha1.RedisCluster) { c.Spec.Auth.Rotate = "again" })
			awaitAccess(t, c, "PasswordChanging", "")
		},
	} {
		if name != "a shard more" && name != "deleted" && !crash.All() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			k := startKubelet(t, namespace)
			op := startOperator(t, namespace, k.world)
			cluster := newCluster(namespace, "cache")
			cluster.Spec.Finalizers = v1alpha1.DeletionForeground
			cluster.Spec.Shards, cluster.Spec.Replicas = new(int32(4)), new(int32(8))
			create(t, cluster)
			awaitWhole(t, cluster)
			put(t, k, cluster, 60)
			backup, err := etcd(namespace).Objects(context.Background())
			check(t, err)
			since(t, cluster)
			op.stop()
			restore(t, namespace, backup)
			startOperator(t, namespace, k.world)
			get(t, cluster)
			awaitPasses(t, 5)
			awaitWhole(t, cluster)
			want := map[string]string{}
			for i := range 60 {
				want[fmt.Sprintf("key:%d", i)] = "value"
			}
			if diff := cmp.Diff(want, data(k, cluster)); diff != "" {
				t.Errorf("data (-want +got):\n%s", diff)
			}
			if shards := len(slotsOf(t, cluster)); shards != 4 || len(statefulSets(t, cluster)) != 4 {
				t.Errorf("%d shards, StatefulSets %v", shards, statefulSets(t, cluster))
			}
		})
	}
}
