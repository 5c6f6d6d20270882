// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
		"custom resource": {compactResource, object("kubectl"), object()},
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

// What is read of an object of a chart kind comes out of the cache as it is at the API server, and nothing that its author writes
// passes for that.
func TestObjectsOfChartKindsArePacked(t *testing.T) {
	metadata := map[string]any{"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "7", "generation": int64(3), "labels": map[string]any{"l": "v"},
		"annotations":     map[string]any{"a": "v"},
		"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "2", "controller": true}}}
	whole := func(extra map[string]any) *unstructured.Unstructured {
		object := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
			"spec":   map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{}}},
			"status": map[string]any{"replicas": int64(1), "load": 0.5, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}}
		maps.Copy(object, extra)
		return (&unstructured.Unstructured{Object: object}).DeepCopy()
	}
	small := map[string]any{"spec": map[string]any{"replicas": int64(1)}}
	for name, test := range map[string]struct{ object, want *unstructured.Unstructured }{
		"an ordinary one": {whole(nil), whole(small)},
		"with data":       {whole(map[string]any{"data": "<&>"}), whole(map[string]any{"data": "<&>", "spec": small["spec"]})},
		"one that would pass for packed": {whole(map[string]any{packedKey: `{"status":{"replicas":2}}`}),
			whole(map[string]any{packedKey: `{"status":{"replicas":2}}`, "spec": small["spec"]})},
	} {
		t.Run(name, func(t *testing.T) {
			for _, again := range []any{test.object, toolscache.DeletedFinalStateUnknown{Obj: test.object}} { // a cache transforms what it has
				if _, err := CompactChild(again); err != nil {
					t.Fatal(err)
				}
			}
			if o := test.object; o.GetName() != "a" || o.GetNamespace() != "n" || o.GetUID() != "1" || o.GetResourceVersion() != "7" ||
				o.GetAnnotations()["a"] != "v" || len(o.GetOwnerReferences()) != 1 || len(o.Object) != 4 {
				t.Errorf("handlers of events see %v", o.Object)
			}
			c := packedCache{Cache: kept{object: test.object}, unlisted: true}
			for range 2 { // and gives each reader what is kept
				got := &unstructured.Unstructured{}
				if err := c.Get(t.Context(), client.ObjectKey{}, got); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(test.want.Object, got.Object); diff != "" {
					t.Errorf("read (-want +got):\n%s", diff)
				}
				got.SetLabels(nil)
			}
		})
	}
	resource := whole(nil)
	if _, err := compactResource(resource); err != nil {
		t.Fatal(err)
	}
	if resource.GetLabels()["l"] != "v" || resource.GetGeneration() != 3 || len(resource.Object) != 4 {
		t.Errorf("handlers of events see %v", resource.Object)
	}
	for range 2 { // what is listed without a copy is not changed
		var all unstructured.UnstructuredList
		if err := (packedCache{Cache: kept{object: resource}}).List(t.Context(), &all); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(whole(nil).Object, all.Items[0].Object); diff != "" {
			t.Errorf("listed (-want +got):\n%s", diff)
		}
	}
	c := packedCache{Cache: kept{}, unlisted: true}
	if err := c.Get(t.Context(), client.ObjectKey{}, &unstructured.Unstructured{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is not there: %v", err)
	}
	if err := c.List(t.Context(), &unstructured.UnstructuredList{}); !errors.Is(err, errPacked) {
		t.Errorf("a list: %v", err)
	}
	if err := c.IndexField(t.Context(), &unstructured.Unstructured{}, "spec.a", nil); !errors.Is(err, errPacked) {
		t.Errorf("an index: %v", err)
	}
}

// kept is a cache of one object.
type kept struct {
	cache.Cache

	object *unstructured.Unstructured
}

func (k kept) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*unstructured.UnstructuredList).Items = []unstructured.Unstructured{*k.object}
	return nil
}

func (k kept) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if k.object == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, "a")
	}
	k.object.DeepCopyInto(into.(*unstructured.Unstructured))
	return nil
}

// What is patched of a pod that has no place yet is as the API server has it.
func TestCacheOfChildrenKeepsOfPodsWhatIsRead(t *testing.T) {
	pod := &corev1.Pod{
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "redis", Image: "a", Command: []string{"b"}, Args: []string{"c"},
				Ports: []corev1.ContainerPort{{ContainerPort: 6380}}, Env: []corev1.EnvVar{{Name: "d"}},
				Resources:     corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}},
				LivenessProbe: &corev1.Probe{}, VolumeMounts: []corev1.VolumeMount{{Name: "e"}}}},
			InitContainers: []corev1.Container{{Name: "f", RestartPolicy: new(corev1.ContainerRestartPolicyAlways),
				Lifecycle: &corev1.Lifecycle{}}},
			Volumes:         []corev1.Volume{{Name: "g"}},
			SchedulingGates: []corev1.PodSchedulingGate{{Name: "h"}},
			ReadinessGates:  []corev1.PodReadinessGate{{ConditionType: "i"}},
			NodeName:        "j",
			Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAffinity: &corev1.PodAffinity{},
				PodAntiAffinity: &corev1.PodAntiAffinity{}},
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1}},
		},
		Status: corev1.PodStatus{PodIP: "10.0.0.1"},
	}
	want := pod.DeepCopy()
	redis := &want.Spec.Containers[0]
	redis.Env, redis.LivenessProbe, redis.VolumeMounts = nil, nil, nil
	want.Spec.InitContainers[0].Lifecycle = nil
	want.Spec.Affinity.PodAffinity, want.Spec.Affinity.PodAntiAffinity, want.Spec.TopologySpreadConstraints = nil, nil, nil
	if _, err := CompactChild(pod); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Error(diff)
	}
}
