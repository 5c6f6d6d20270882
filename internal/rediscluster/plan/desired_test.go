// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What a spec, an annotation and the operator's own options ask for.
func TestDesiredFor(t *testing.T) {
	volumes := func(kind v1alpha1.VolumeType) func(*v1alpha1.RedisCluster) {
		return func(c *v1alpha1.RedisCluster) {
			c.Spec.Pod = []v1alpha1.PodTemplate{{Volumes: &v1alpha1.Volumes{Type: kind}}}
		}
	}
	for name, tt := range map[string]struct {
		cluster  func(*v1alpha1.RedisCluster)
		snapshot snapshot.Snapshot
		want     func(*Desired)
	}{
		"the defaults": {},
		"it is being deleted": {cluster: func(c *v1alpha1.RedisCluster) { c.DeletionTimestamp = &metav1.Time{Time: now} },
			want: func(d *Desired) { d.Deleting = true }},
		"its finalizer is not there yet": {cluster: func(c *v1alpha1.RedisCluster) { c.Finalizers = []string{"another"} },
			want: func(d *Desired) { d.HasFinalizer = false }},
		"slots are assigned by hand": {cluster: func(c *v1alpha1.RedisCluster) {
			c.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AssignReceive, KeysPerSecond: 7,
				AssignStrategies: []v1alpha1.AssignStrategy{{Slots: 9, FromReplicas: nodeID(0, 0), ToShard: ptr.To[int32](1)}}}
		}, want: func(d *Desired) {
			d.AssignReceive, d.KeysPerSecond, d.SlotAssignments = true, 7, []SlotAssignment{{Slots: 9, From: []string{nodeID(0, 0)}, To: ptr.To(1)}}
		}},
		"never two of a shard on a node": {cluster: func(c *v1alpha1.RedisCluster) { c.Spec.AntiAffinity = v1alpha1.AntiAffinityRequired },
			want: func(d *Desired) { d.Apart = true }},
		"a person restarts": {cluster: func(c *v1alpha1.RedisCluster) {
			c.Spec.Pod = []v1alpha1.PodTemplate{{UpdateStrategy: v1alpha1.PodUpdateStrategy{Type: v1alpha1.OnDelete}}}
		}, want: func(d *Desired) { d.OnDelete = true }},
		"more than fits": {cluster: func(c *v1alpha1.RedisCluster) {
			c.Annotations = map[string]string{v1alpha1.AnnotationOverCapacity: "true"}
		},
			want: func(d *Desired) { d.OverCapacity = true }},
		"more than fits, perhaps": {cluster: func(c *v1alpha1.RedisCluster) {
			c.Annotations = map[string]string{v1alpha1.AnnotationOverCapacity: "yes"}
		}},
		"data in the pods": {cluster: volumes(v1alpha1.VolumeEmptyDir), want: func(d *Desired) { d.Ephemeral, d.ClaimBytes = true, 0 }},
		"data on the nodes": {cluster: volumes(v1alpha1.VolumeHostPath), want: func(d *Desired) {
			d.OnNode, d.ClaimBytes = true, 0
			d.Problems = []string{"spec.pod[0].volumes.type"}
		}},
		"claims of a size": {cluster: func(c *v1alpha1.RedisCluster) { c.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("2Gi")} },
			want: func(d *Desired) { d.ClaimBytes = 2 << 30 }},
		"a node timeout": {cluster: func(c *v1alpha1.RedisCluster) { c.Spec.Config = map[string]string{"cluster-node-timeout": "7000"} },
			want: func(d *Desired) { d.NodeTimeout = 7 * time.Second }},
		"what admission refuses": {cluster: func(c *v1alpha1.RedisCluster) { c.Spec.Shards = ptr.To[int32](7) },
			want: func(d *Desired) {
				d.Topology, d.Problems = v1alpha1.Topology{1, 1, 1, 1, 1, 1, 0}, []string{"spec.shards"}
			}},
		"a ConfigMap that cannot be read": {snapshot: snapshot.Snapshot{Config: snapshot.UserConfig{Problem: "spec.pod[0].configmap: no"}},
			want: func(d *Desired) { d.Problems = []string{"spec.pod[0].configmap: no"} }},
		"a backup": {cluster: func(c *v1alpha1.RedisCluster) { restored(c, "yes") }, want: func(d *Desired) { d.Restore = true }},
		"a backup without an append-only file": {cluster: func(c *v1alpha1.RedisCluster) { restored(c, "no") }, want: func(d *Desired) {
			d.Restore = true
			d.Problems = []string{"spec.config[appendonly]: a backup is restored as an append-only file"}
		}},
		"a restored cluster without an append-only file": {cluster: func(c *v1alpha1.RedisCluster) { restored(c, "no") },
			snapshot: snapshot.Snapshot{Formed: true}, want: func(d *Desired) { d.Restore = true }},
		"an empty cluster without an append-only file": {cluster: func(c *v1alpha1.RedisCluster) {
			c.Spec.Config = map[string]string{"appendonly": "no"}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid",
				Finalizers: []string{"another", v1alpha1.Finalizer}},
				Spec: v1alpha1.RedisClusterSpec{Replicas: ptr.To[int32](6), Shards: ptr.To[int32](3)}}
			if tt.cluster != nil {
				tt.cluster(cluster)
			}
			admission.Default(cluster)
			want := Desired{Topology: v1alpha1.Topology{2, 2, 2}, Policy: cluster.DeletionPolicy(), HasFinalizer: true, SpreadMasters: true,
				ClaimBytes: 1 << 30, CreateTimeout: time.Hour, UpgradeTimeout: time.Minute, NodeTimeout: 5 * time.Second,
				PreviousPasswordFor: cluster.PreviousPasswordFor(), UID: cluster.UID}
			if tt.want != nil {
				tt.want(&want)
			}
			got := DesiredFor(cluster, &tt.snapshot, Options{CreateTimeout: time.Hour, UpgradeTimeout: time.Minute})
			if known := len(want.Problems) == 0; known != (got.Settings != nil) || !known && got.NodeTimeout != 0 {
				t.Errorf("settings %v, node timeout %s; problems %v", got.Settings, got.NodeTimeout, got.Problems)
			} else if !known {
				want.NodeTimeout = 0
			}
			if len(got.Problems) != len(want.Problems) || len(want.Problems) > 0 && !strings.HasPrefix(got.Problems[0], want.Problems[0]) {
				t.Errorf("problems %q, want %q", got.Problems, want.Problems)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Desired{}, "Settings", "Problems")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func restored(c *v1alpha1.RedisCluster, appendonly string) {
	c.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "monday"}}
	c.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("1Gi")}
	c.Spec.Config = map[string]string{"appendonly": appendonly}
}

// A cluster that is imported says from where, and when it takes over.
func TestDesiredImport(t *testing.T) {
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}}
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "redis.example.com:6379", CutOver: true}}
	admission.Default(cluster)
	want := &DesiredImport{Source: "import.address redis.example.com:6379", Address: "redis.example.com:6379", CutOver: true,
		Pause: v1alpha1.DefaultPauseSeconds * time.Second}
	if diff := cmp.Diff(want, DesiredFor(cluster, &snapshot.Snapshot{}, Options{}).Import); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	cluster.Spec.Bootstrap.Import.PauseSeconds = ptr.To[int32](7)
	if d := DesiredFor(cluster, &snapshot.Snapshot{}, Options{}); d.Import.Pause != 7*time.Second || d.Restore {
		t.Errorf("%+v", d)
	}
}

// A node timeout that is no number is not known.
func TestNodeTimeout(t *testing.T) {
	for value, want := range map[string]time.Duration{"1500": 1500 * time.Millisecond, "soon": 0} {
		settings := []redisconf.Setting{{Name: "hz", Args: []string{"10"}}, {Name: "cluster-node-timeout", Args: []string{value}}}
		if got := nodeTimeout(settings); got != want {
			t.Errorf("%s: %s", value, got)
		}
	}
}
