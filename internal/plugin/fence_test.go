// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// What is fenced already stays, and what is no instance of the cluster is not written again.
func TestFenceAndUnfence(t *testing.T) {
	var many []string
	for shard := range 341 { // 12 characters each
		many = append(many, fmt.Sprintf("cache-%d-1", 100+shard))
	}
	for name, tt := range map[string]struct {
		before, instance, after, refused string
		unfence                          bool
	}{
		"the first":       {instance: "cache-0-1", after: "cache-0-1"},
		"another":         {before: "cache-0-1", instance: "cache-1-0", after: "cache-0-1,cache-1-0"},
		"again":           {before: "cache-0-1", instance: "cache-0-1", after: "cache-0-1"},
		"beside nonsense": {before: "\x1b[2J, cache-0-1,other-0-0", instance: "cache-1-0", after: "cache-0-1,cache-1-0"},
		"one too many":    {before: strings.Join(many, ","), instance: "cache-0-1", refused: "more than 4096 characters"},
		"nobody":          {instance: "cache-7-0", refused: "is none of its instances"},
		"one of two":      {before: "cache-0-1,cache-1-0", instance: "cache-0-1", after: "cache-1-0", unfence: true},
		"the last":        {before: "cache-0-1", instance: "cache-0-1", unfence: true},
		"all":             {before: "cache-0-1,cache-1-0", unfence: true},
		"one that is not": {before: "cache-0-1", instance: "cache-1-0", refused: "cache-1-0 is not fenced", unfence: true},
	} {
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Name: "cache", Annotations: map[string]string{
			v1alpha1.AnnotationFenced: tt.before}}}
		cluster.Status.Nodes = []v1alpha1.NodeStatus{{Name: "cache-0-1"}, {Name: "cache-1-0"}}
		change := fenceOne
		if tt.unfence {
			change = unfenceOne
		}
		after, err := change(cluster, tt.instance)
		if after != tt.after || (err != nil) != (tt.refused != "") || err != nil && !strings.Contains(err.Error(), tt.refused) {
			t.Errorf("%s: %q, %v", name, after, err)
		}
	}
}
