// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package read

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A RedisCluster of a newer or an older operator is read as far as it is known.
func TestOtherVersionsAreRead(t *testing.T) {
	object := &unstructured.Unstructured{}
	for name, text := range map[string]string{
		"newer": `{"apiVersion": "redis.middleware.hc.cn/v1beta1", "kind": "RedisCluster", "metadata": {"name": "cache"},
			"spec": {"shards": 3, "tiering": {"ssd": true}}, "status": {"phase": "Hibernating", "slots": 16384, "heat": [1, 2]}}`,
		"older": `{"apiVersion": "redis.middleware.hc.cn/v1alpha1", "kind": "RedisCluster", "metadata": {"name": "cache"},
			"spec": {"shards": 3}, "status": {"slots": 16384}}`,
	} {
		if err := object.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		cluster, err := Typed(object)
		if err != nil || cluster.Name != "cache" || *cluster.Spec.Shards != 3 || cluster.Status.Slots != 16384 {
			t.Errorf("%s: %v, %+v", name, err, cluster)
		}
	}
	const other = `{"apiVersion": "redis.middleware.hc.cn/v2", "kind": "RedisCluster", "spec": {"shards": "three"}}`
	if err := object.UnmarshalJSON([]byte(other)); err != nil {
		t.Fatal(err)
	}
	if _, err := Typed(object); err == nil {
		t.Error("shards that are no number are read")
	}
}
