// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

// TestThePlanKnowsModulesAsPodsDo: what the plan waits for is what the pods of the template asked for carry.
func TestThePlanKnowsModulesAsPodsDo(t *testing.T) {
	for name, modules := range map[string][]v1alpha1.Module{
		"none": nil, "two": {{Name: "json"}, {Name: "search", Args: []string{"WORKERS", "4"}}}} {
		cluster := sized("c", 3, 6, v1alpha1.PodTemplate{})
		cluster.Spec.Modules = modules
		admission.Default(cluster)
		want := plan.DesiredFor(cluster, &snapshot.Snapshot{}, plan.Options{}).Modules
		if (want == "") != (len(modules) == 0) {
			t.Errorf("%s: the plan is told %q", name, want)
		}
		sets := 0
		for _, object := range renderAll(t, newChildren(t, nil), &Memory{}, cluster) {
			if object.GetKind() != "StatefulSet" {
				continue
			}
			sets++
			got, _, err := unstructured.NestedString(object.Object, "spec", "template", "metadata", "annotations", values.AnnotationModules)
			if err != nil || got != want {
				t.Errorf("%s: pods of %s carry %q (%v), the plan is told %q", name, object.GetName(), got, err, want)
			}
		}
		if sets != 3 {
			t.Errorf("%s: %d StatefulSets", name, sets)
		}
	}
}
