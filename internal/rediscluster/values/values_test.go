// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package values_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// TestDefaultsAgreeWithChart: a RedisCluster that says nothing is what the chart's own
// values.yaml describes, but for the lines of redis.conf, which the chart does not know.
func TestDefaultsAgreeWithChart(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "helm-charts", "rediscluster", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := yaml.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	for name, prepare := range map[string]func(*v1alpha1.RedisCluster){
		"defaulted":     admission.Default,
		"not defaulted": func(*v1alpha1.RedisCluster) {},
	} {
		cr := &v1alpha1.RedisCluster{}
		prepare(cr)
		encoded, err := yaml.Marshal(values.Build(cr, cr.Spec.Topology(), redisconf.AskedFor(cr, nil), redisconf.TLSFor(cr)))
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if err := yaml.Unmarshal(encoded, &got); err != nil {
			t.Fatal(err)
		}
		got["config"] = []any{}
		// What an empty struct leaves behind is as good as nothing.
		if pod, ok := got["pod"].(map[string]any); ok && cmp.Equal(pod["resources"], map[string]any{}) {
			delete(pod, "resources")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: values.yaml and Build disagree (-values.yaml +Build):\n%s", name, diff)
		}
	}
}

// TestEnvCannotReplaceTheOperators: the last of two variables of one name wins in a pod.
func TestEnvCannotReplaceTheOperators(t *testing.T) {
	cr := &v1alpha1.RedisCluster{}
	if err := yaml.Unmarshal([]byte(`{spec: {pod: [{env: [{name: POD_IP, value: 10.0.0.1}, {name: TZ, value: UTC}]}]}}`), cr); err != nil {
		t.Fatal(err)
	}
	pod := build(cr)["pod"].(map[string]any)
	want := []any{map[string]any{"name": "TZ", "value": "UTC"}}
	if diff := cmp.Diff(want, pod["env"]); diff != "" {
		t.Errorf("env (-want +got):\n%s", diff)
	}
}

// TestClaims: type pvc without a claim's name takes the size and class of storage.
func TestClaims(t *testing.T) {
	for spec, want := range map[string]map[string]any{
		`{}`:                              {"type": "claim", "size": "1Gi", "retain": "Retain"},
		`{pod: [{volumes: {type: pvc}}]}`: {"type": "claim", "size": "1Gi", "retain": "Retain"},
		`{storage: {size: 5Gi, storageClassName: fast, retain: Delete}, pod: [{volumes: {type: pvc}}]}`: {
			"type": "claim", "size": "5Gi", "retain": "Delete", "storageClassName": "fast"},
		`{pod: [{volumes: {type: pvc, persistentVolumeClaimName: data}}]}`: {"type": "shared", "claimName": "data"},
		`{pod: [{volumes: {type: nfs, persistentVolumeClaimName: data}}]}`: {"type": "shared", "claimName": "data"},
		`{pod: [{volumes: {type: hostPath}}]}`:                             {"type": "hostPath"},
		`{pod: [{volumes: {type: emptyDir}}]}`:                             {"type": "emptyDir"},
	} {
		if diff := cmp.Diff(want, build(clusterOf(t, spec))["data"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}
