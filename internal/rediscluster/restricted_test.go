// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// What the chart makes keeps to the restricted standard, and would not be applied if it did not.
func TestPodsAreRestricted(t *testing.T) {
	files, err := filepath.Glob("values/testdata/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	c := newChildren(t, nil)
	for _, file := range files {
		if strings.HasSuffix(file, ".golden.yaml") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		cluster := &v1alpha1.RedisCluster{}
		if err := yaml.UnmarshalStrict(text, cluster); err != nil {
			t.Fatal(err)
		}
		admission.Default(cluster)
		shape := plan.Shape{Topology: v1alpha1.Topology{1}, Settings: redisconf.AskedFor(cluster, nil), TLS: redisconf.TLSFor(cluster)}
		v, _ := c.values(cluster, &snapshot.Snapshot{Formed: true}, shape)
		objects, err := c.render(cluster, v, &Memory{})
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		for field, value := range map[string]any{"hostNetwork": true, "hostPID": true,
			"volumes":        []any{map[string]any{"name": "v", "hostPath": map[string]any{"path": "/"}}},
			"initContainers": []any{map[string]any{"name": "data-owner", "image": "a", "securityContext": map[string]any{"runAsUser": int64(0)}}},
		} {
			var changed []*unstructured.Unstructured
			for _, object := range objects {
				if object = object.DeepCopy(); object.GetKind() == statefulSet {
					if err := unstructured.SetNestedField(object.Object, value, "spec", "template", "spec", field); err != nil {
						t.Fatal(err)
					}
				}
				changed = append(changed, object)
			}
			if field == "initContainers" && cluster.Spec.Template().Volumes != nil &&
				cluster.Spec.Template().Volumes.Type == v1alpha1.VolumeHostPath {
				continue
			}
			if err := restricted(changed); err == nil || !strings.Contains(err.Error(), `"restricted" Pod Security Standard`) {
				t.Errorf("%s: %s is taken: %v", file, field, err)
			}
		}
	}
}
