// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// ownServer is an etcd and an API server of this test's own, whose files outlive a stop. Until the test ends it is the one of all: no
// other test runs beside this one.
func ownServer(t *testing.T) *envtest.Environment {
	t.Helper()
	server := environmentOf()
	dir := t.TempDir()
	server.ControlPlane.Etcd = &envtest.Etcd{DataDir: filepath.Join(dir, "etcd")}
	server.ControlPlane.GetAPIServer().CertDir = filepath.Join(dir, "certificates")
	for _, sub := range []string{"etcd", "certificates"} {
		check(t, os.Mkdir(filepath.Join(dir, sub), 0o700))
	}
	server.ControlPlane.GetAPIServer().Configure().Set("request-timeout", "10s") // so long it waits for watches when it stops
	server.ControlPlaneStopTimeout = 2 * time.Minute
	config, err := environment.Serve(server)
	check(t, err)
	config.QPS = -1
	own, err := client.New(config, client.Options{Scheme: scheme})
	check(t, err)
	formerAdmin, formerAPI := admin, api
	t.Cleanup(func() {
		admin, api = formerAdmin, formerAPI
		check(t, server.Stop())
	})
	_, err = grant(t.Context(), config, own)
	check(t, err)
	return server
}

// stopped does something with the folder of etcd while it and the API server are away. What runs on nodes goes on.
func stopped(t *testing.T, server *envtest.Environment, k *kubelet, what func(data string)) {
	t.Helper()
	set := func(away bool) {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.away = away
	}
	set(true)
	check(t, server.ControlPlane.Stop())
	what(server.ControlPlane.Etcd.DataDir)
	check(t, server.ControlPlane.Start())
	set(false)
}

// restoreSnapshot makes etcd be what it was, as the documentation says, but that versions do not go back.
func restoreSnapshot(t *testing.T, snapshot, data string) {
	t.Helper()
	check(t, os.RemoveAll(data))
	said, err := exec.Command(filepath.Join(os.Getenv("KUBEBUILDER_ASSETS"), "etcdutl"), "snapshot", "restore", snapshot, "--data-dir", data,
		"--bump-revision", "1000000000", "--mark-compacted", "--skip-hash-check").CombinedOutput() // a copy of the file has no hash
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// TestRestoredEtcd: etcd is restored from a backup under an operator that goes on, with versions that are beyond all that were (as
// docs/reliability.md says). Since the backup one cluster got a shard, another was deleted, and a third one was made. The operator
// follows what is there then, no key of a claim that is there is lost, and it hears of what changes from then on.
func TestRestoredEtcd(t *testing.T) { //nolint:paralleltest // it has the API server of all for itself
	server := ownServer(t)
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	op := startOperator(t, namespace, k.world)
	grows, goes := newCluster(namespace, "cache"), newCluster(namespace, "former")
	goes.Spec.Replicas = new(int32(3))
	for _, cluster := range []*v1alpha1.RedisCluster{grows, goes} {
		create(t, cluster)
		awaitWhole(t, cluster)
		put(t, k, cluster, 60)
	}
	want := data(k, grows)
	if len(want) != 60 {
		t.Fatalf("%d keys", len(want))
	}
	snapshot := filepath.Join(t.TempDir(), "db")
	stopped(t, server, k, func(data string) {
		text, err := os.ReadFile(filepath.Join(data, "member", "snap", "db"))
		check(t, err)
		check(t, os.WriteFile(snapshot, text, 0o600))
	})

	// What comes now, never was.
	scaled(4, 8)(t, grows)
	awaitWhole(t, grows)
	remove(t, goes)
	awaitGone(t, goes.DeepCopy())
	late := newCluster(namespace, "late")
	create(t, late)
	awaitWhole(t, late)
	before := version(t, namespace)
	stopped(t, server, k, func(data string) { restoreSnapshot(t, snapshot, data) })
	if now := version(t, namespace); now < before+500_000_000 {
		t.Errorf("versions go from %d to %d", before, now)
	}

	for _, cluster := range []*v1alpha1.RedisCluster{grows, goes} {
		eventually(t, cluster.Name+" is what it was", func() string {
			if !get(t, cluster) {
				return "it is not there"
			}
			if cluster.Spec.ShardCount() != 3 {
				return fmt.Sprintf("it asks for %d shards", cluster.Spec.ShardCount())
			}
			return cmp.Diff(want, data(k, cluster))
		})
		change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"hz": "25"} })
		eventually(t, "what is asked of "+cluster.Name+" comes into force", func() string {
			get(t, cluster)
			for _, node := range instances(k, cluster) {
				if hz := node.Setting("hz"); hz != "25" {
					return "hz is " + hz
				}
			}
			return ""
		})
		awaitWhole(t, cluster)
		if diff := cmp.Diff(want, data(k, cluster)); diff != "" {
			t.Errorf("data of %s (-want +got):\n%s", cluster.Name, diff)
		}
		if sets := statefulSets(t, cluster); len(sets) != 3 {
			t.Errorf("%s has %v", cluster.Name, sets)
		}
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.Name}}
		get(t, service)
		gone := service.UID
		remove(t, service)
		eventually(t, "Service "+cluster.Name+" comes back", func() string {
			if !get(t, service) || service.UID == gone {
				return "it has not"
			}
			return ""
		})
	}
	// Its children may be made once more before the operator hears that it never was; they go as all that belongs to nobody.
	eventually(t, "nothing is left of what was made since the backup", func() string {
		left, err := etcd(namespace).Collect(t.Context())
		check(t, err)
		for _, object := range left {
			if strings.HasPrefix(object.GetName(), late.Name) {
				return object.GetKind() + " " + object.GetName()
			}
		}
		return ""
	})
	op.stop()
}

// version is that of etcd.
func version(t *testing.T, namespace string) int {
	t.Helper()
	list := &corev1.ConfigMapList{}
	check(t, api.List(t.Context(), list, client.InNamespace(namespace)))
	number, err := strconv.Atoi(list.ResourceVersion)
	check(t, err)
	return number
}
