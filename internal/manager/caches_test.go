// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"

	"middleware.hc.cn/operator/internal/apply"
)

func TestCachesKeepOnlyTheManagedFieldsThatAreRead(t *testing.T) {
	object := func(managers ...string) *metav1.PartialObjectMetadata {
		o := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
		for _, m := range managers {
			o.ManagedFields = append(o.ManagedFields, metav1.ManagedFieldsEntry{Manager: m})
		}
		return o
	}
	applied := func(managers ...string) *metav1.PartialObjectMetadata {
		o := object(managers...)
		for i := range o.ManagedFields {
			o.ManagedFields[i].Operation = metav1.ManagedFieldsOperationApply
		}
		return o
	}
	tests := map[string]struct {
		transform toolscache.TransformFunc
		in, want  any
	}{
		"custom resource": {withoutManagedFields, object("kubectl"), object()},
		"child":           {CompactChild, applied("kubelet", apply.FieldManager), applied(apply.FieldManager)},
		"child deleted meanwhile": {CompactChild, toolscache.DeletedFinalStateUnknown{Key: "a", Obj: object("kubelet")},
			toolscache.DeletedFinalStateUnknown{Key: "a", Obj: object()}},
		"no object": {CompactChild, 7, 7},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := test.transform(test.in)
			if err != nil {
				t.Fatal(err)
			}
			empty := cmp.Transformer("emptyIsNil", func(e []metav1.ManagedFieldsEntry) int { return len(e) })
			if diff := cmp.Diff(test.want, got, empty); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCacheOfChildrenKeepsNoPodTemplates(t *testing.T) {
	deployment := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"},
		"spec":   map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{}}},
		"status": map[string]any{"replicas": int64(1)}}}
	if _, err := CompactChild(deployment); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"metadata": map[string]any{"name": "a"}, "spec": map[string]any{"replicas": int64(1)},
		"status": map[string]any{"replicas": int64(1)}}
	if diff := cmp.Diff(want, deployment.Object); diff != "" {
		t.Error(diff)
	}
}
