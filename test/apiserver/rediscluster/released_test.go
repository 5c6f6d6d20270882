// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"net"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// record is the version whose state is written down, instead of being compared with (make release-state).
var record = flag.String("record", "", "write the state that this version of the operator leaves into testdata/released")

// releasedWorld is a cluster with all that belongs to it but its pods.
func releasedWorld(namespace string) crash.World {
	return crash.World{API: api, Namespaces: []string{namespace},
		Kinds: slices.DeleteFunc(slices.Clone(childKinds), func(kind schema.GroupVersionKind) bool { return kind.Kind == "Pod" })}
}

// TestUpgradeFromReleases: an operator that finds a cluster as a former release left it restarts none of its instances, changes no pod
// template, keeps claims, Secrets and keys, and says that the cluster is Ready.
func TestUpgradeFromReleases(t *testing.T) {
	t.Parallel()
	if *record != "" {
		recordRelease(t)
		return
	}
	files, err := filepath.Glob("testdata/released/*.yaml")
	check(t, err)
	if len(files) == 0 {
		t.Fatal("there is no recorded state")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			namespace := newNamespace(t)
			environment.Restore(t, api, namespace, file)
			world := releasedWorld(namespace)
			cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "cache"}}
			get(t, cluster)
			k := startFaithfulKubelet(t, namespace, cluster.Status.CurrentVersion)
			formAsRecorded(t, k, cluster)
			pods, templates, kept := k.uids(), environment.Templates(t, world), remaining(t, namespace)

			var looks atomic.Int64
			k.world.OnCommand(func(_ *redistest.Node, args []string) {
				if slices.Equal(args, []string{"CLUSTER", "NODES"}) {
					looks.Add(1)
				}
			})
			startOperator(t, namespace, k.world)
			eventually(t, "the operator has looked again and again", func() string {
				if n := looks.Load(); n < int64(10*len(pods)) {
					return fmt.Sprintf("%d looks", n)
				}
				return ""
			})
			awaitWhole(t, cluster)
			if diff := cmp.Diff(templates, environment.Templates(t, world)); diff != "" {
				t.Errorf("pod templates (-released +now):\n%s", diff)
			}
			if diff := cmp.Diff(pods, k.uids()); diff != "" {
				t.Errorf("instances were restarted (-before +after):\n%s", diff)
			}
			if diff := cmp.Diff(kept, remaining(t, namespace)); diff != "" {
				t.Errorf("Secrets and claims (-released +now):\n%s", diff)
			}
			if n := len(k.world.Holders("kept")); n != 2 {
				t.Errorf("a key is at %d instances", n)
			}
		})
	}
}

// remaining are the Secrets with what they hold, and the UIDs of claims.
func remaining(t *testing.T, namespace string) map[string]any {
	t.Helper()
	all := map[string]any{}
	objects, err := releasedWorld(namespace).Objects(context.Background())
	check(t, err)
	for _, object := range objects {
		switch object.GetKind() {
		case "Secret":
			data, _, err := unstructured.NestedStringMap(object.Object, "data")
			check(t, err)
			if object.GetLabels()[v1alpha1.LabelCluster] != "" {
				withoutLaterUsers(t, data)
			}
			all["Secret "+object.GetName()] = data
		case "PersistentVolumeClaim":
			all["claim "+object.GetName()] = object.GetUID()
		}
	}
	return all
}

// withoutLaterUsers takes out of the operator's Secret what 0.1.0 did not have: the user of backups, and what says which users there are.
func withoutLaterUsers(t *testing.T, data map[string]string) {
	t.Helper()
	delete(data, access.KeyBackup)
	config, err := base64.StdEncoding.DecodeString(data[v1alpha1.SecretKeyConfig])
	check(t, err)
	var kept strings.Builder
	for line := range strings.Lines(string(config)) {
		if !strings.HasPrefix(line, `user "`+access.BackupUser+`"`) && !strings.HasPrefix(line, "user "+access.BackupUser+" ") {
			kept.WriteString(regexp.MustCompile(`~users:[0-9a-f]+`).ReplaceAllString(line, "~users:"))
		}
	}
	data[v1alpha1.SecretKeyConfig] = kept.String()
}

// formAsRecorded waits for the instances of a cluster, which are new, and makes them what the status says that they were.
func formAsRecorded(t *testing.T, k *kubelet, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	eventually(t, "the pods run", func() string {
		if n := len(k.uids()); n != len(cluster.Status.Nodes) {
			return fmt.Sprintf("%d do", n)
		}
		return ""
	})
	masters := map[int32]*redistest.Node{}
	first := k.node(cluster.Status.Nodes[0].Name)
	for _, recorded := range cluster.Status.Nodes {
		node := k.node(recorded.Name)
		ask(t, k, cluster, first, "CLUSTER", "MEET", strings.Split(node.Addr(), ":")[0], "6379")
		if recorded.Type == "master" {
			masters[recorded.Shard] = node
			command := []any{"CLUSTER", "ADDSLOTSRANGE"}
			for part := range strings.SplitSeq(recorded.Slots, ",") {
				low, high, ranges := strings.Cut(part, "-")
				if !ranges {
					high = low
				}
				command = append(command, low, high)
			}
			ask(t, k, cluster, node, command...)
		}
	}
	for _, recorded := range cluster.Status.Nodes {
		if recorded.Type != "master" {
			ask(t, k, cluster, k.node(recorded.Name), "CLUSTER", "REPLICATE", masters[recorded.Shard].ID())
		}
	}
	eventually(t, "a key is at both instances of its shard", func() string {
		for _, node := range masters {
			if err := try(t, k, cluster, node, "SET", "kept", "1"); err == nil {
				break // it is the owner of the slot, and the cluster is formed
			}
		}
		if n := len(k.world.Holders("kept")); n != 2 {
			return fmt.Sprintf("it is at %d", n)
		}
		return ""
	})
}

// ask sends a command until it is carried out.
func ask(t *testing.T, k *kubelet, cluster *v1alpha1.RedisCluster, node *redistest.Node, command ...any) {
	t.Helper()
	eventually(t, fmt.Sprint(command...), func() string {
		if err := try(t, k, cluster, node, command...); err != nil {
			return err.Error()
		}
		return ""
	})
}

// try sends a command to an instance.
func try(t *testing.T, k *kubelet, cluster *v1alpha1.RedisCluster, node *redistest.Node, command ...any) error {
	t.Helper()
	instance := goredis.NewClient(&goredis.Options{Addr: node.Addr(), Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		Password: string(ownSecret(t, cluster).Data[v1alpha1.SecretKeyPassword]),
		Dialer:   func(ctx context.Context, _, address string) (net.Conn, error) { return k.world.Dial(ctx, address) }})
	defer func() { _ = instance.Close() }() // it is of no more use
	return instance.Do(t.Context(), command...).Err()
}

// recordRelease writes down what the operator leaves of a cluster that uses much of what there is, when it is at rest.
func recordRelease(t *testing.T) {
	t.Helper()
	manifest := began()
	manifest["replicas"] = int64(6)
	manifest["config"] = map[string]any{"maxmemory": "64mb", "tcp-backlog": "1024"}
	manifest["auth"] = map[string]any{"aclSecretName": "some-users"}
	manifest["pod"] = []any{map[string]any{"labels": map[string]any{"team": "shop"}, "configmap": "some-settings",
		"env": []any{map[string]any{"name": "GREETING", "value": "hello"}}, "monitorImage": "docker.io/oliver006/redis_exporter:v1.45.0",
		"resources": map[string]any{"requests": map[string]any{"cpu": "50m"}}}}
	c := newChain(t, newAdmission(t), manifest)
	c.op.stop()
	environment.Record(t, releasedWorld(c.cluster.Namespace), filepath.Join("testdata", "released", *record+".yaml"))
}
