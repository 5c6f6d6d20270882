// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A child wakes the RedisCluster that its owners lead to. A label, which anybody may write, wakes nobody.
func TestToCluster(t *testing.T) {
	redis, apps := v1alpha1.GroupVersion.String(), "apps/v1"
	for name, tt := range map[string]struct {
		owner *metav1.OwnerReference
		want  string
	}{
		"a child": {&metav1.OwnerReference{APIVersion: redis, Kind: "RedisCluster", Name: "c"}, "c"},
		"a child of another version": {&metav1.OwnerReference{APIVersion: "redis.middleware.hc.cn/v1", Kind: "RedisCluster", Name: "c"},
			"c"},
		"a pod":                            {&metav1.OwnerReference{APIVersion: apps, Kind: "StatefulSet", Name: "c-0"}, "c"},
		"nobody's":                         {nil, ""},
		"a pod of another StatefulSet":     {&metav1.OwnerReference{APIVersion: apps, Kind: "StatefulSet", Name: "d-0"}, ""},
		"a pod of a shard that cannot be":  {&metav1.OwnerReference{APIVersion: apps, Kind: "StatefulSet", Name: "c-2000000000"}, ""},
		"a pod of a ReplicaSet":            {&metav1.OwnerReference{APIVersion: apps, Kind: "ReplicaSet", Name: "c-0"}, ""},
		"a child of another RedisCluster":  {&metav1.OwnerReference{APIVersion: redis, Kind: "RedisCluster", Name: "d"}, "d"},
		"a child of another operator's":    {&metav1.OwnerReference{APIVersion: "redis.example.com/v1", Kind: "RedisCluster", Name: "c"}, ""},
		"a StatefulSet of another's group": {&metav1.OwnerReference{APIVersion: "apps.example.com/v1", Kind: "StatefulSet", Name: "c-0"}, ""},
	} {
		child := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "child", Labels: map[string]string{v1alpha1.LabelCluster: "c"}}}
		if tt.owner != nil {
			tt.owner.Controller = new(true)
			child.OwnerReferences = []metav1.OwnerReference{*tt.owner}
		}
		got := ""
		for _, request := range toCluster(t.Context(), child) {
			if got += request.Name; request.Namespace != "n" {
				t.Errorf("%s: namespace %q", name, request.Namespace)
			}
		}
		if got != tt.want {
			t.Errorf("%s: wakes %q, want %q", name, got, tt.want)
		}
	}
}
