// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
)

func keyOf(name string) client.ObjectKey { return read.Key("shop", name) }

// A request that can come to nothing is not written.
func TestWhoMayTakeOver(t *testing.T) {
	for name, tt := range map[string]struct {
		instance string
		spec     v1alpha1.RedisClusterSpec
		why      string
	}{
		"a replica":    {"cache-0-1", v1alpha1.RedisClusterSpec{}, ""},
		"the master":   {"cache-0-0", v1alpha1.RedisClusterSpec{}, "is the master of shard 0 already"},
		"nobody":       {"cache-7-0", v1alpha1.RedisClusterSpec{}, "is none of its instances"},
		"paused":       {"cache-0-1", v1alpha1.RedisClusterSpec{Pause: true}, "kubectl middleware resume cache -n shop"},
		"to hibernate": {"cache-0-1", v1alpha1.RedisClusterSpec{Hibernate: true}, "spec.hibernate"},
	} {
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"}, Spec: tt.spec}
		cluster.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-0-0", Type: "master"}, {Name: "cache-0-1", Type: "slave"}}
		if err := mayTakeOver(cluster, tt.instance); (tt.why == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Only a backup that is complete is restored, and an encrypted one with a key.
func TestRestorable(t *testing.T) {
	backup := func(phase string, recipients ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"cluster": "cache", "recipients": recipients},
			"status": map[string]any{"phase": phase, "reason": "its pod was evicted"}}}
	}
	for name, tt := range map[string]struct {
		backup   *unstructured.Unstructured
		identity string
		why      string
	}{
		"complete":                {backup("Completed"), "", ""},
		"encrypted":               {backup("Completed", "age1x"), "keys", ""},
		"failed":                  {backup("Failed"), "", "its pod was evicted"},
		"not begun":               {&unstructured.Unstructured{Object: map[string]any{}}, "", "only one that is Completed"},
		"encrypted without a key": {backup("Completed", "age1x"), "", "with --identity"},
		"a key for nothing":       {backup("Completed"), "keys", "leave that out"},
	} {
		of, err := restorable(tt.backup, tt.identity)
		if (tt.why == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tt.why) || err == nil && of != "cache" {
			t.Errorf("%s: %q, %v", name, of, err)
		}
	}
}
