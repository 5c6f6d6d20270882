// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
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
	"middleware.hc.cn/operator/internal/metrics"
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

// What is read of an object of a chart kind comes out of the caches as it is at the API server, and handlers of events see its metadata.
func TestObjectsOfChartKindsArePacked(t *testing.T) {
	metadata := map[string]any{"name": "a", "namespace": "n", "uid": "1", "resourceVersion": "7", "generation": int64(3),
		"creationTimestamp": "2026-11-29T00:00:00Z", "deletionTimestamp": "2026-11-29T00:00:01Z", "finalizers": []any{"example.com/f"},
		"labels": map[string]any{"l": "<&>"}, "annotations": map[string]any{"a": "v"}, "ownerReferences": []any{
			map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "2", "controller": true}}}
	whole := func(spec map[string]any) *unstructured.Unstructured {
		conditions := []any{map[string]any{"type": "Ready", "status": "True"}}
		return (&unstructured.Unstructured{Object: map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata,
			"spec": spec, "data": "<&>", "status": map[string]any{"replicas": int64(1), "load": 0.5, "conditions": conditions}}}).DeepCopy()
	}
	template := map[string]any{"replicas": int64(1), "template": map[string]any{"spec": map[string]any{}}}
	for name, test := range map[string]struct {
		transform    toolscache.TransformFunc
		object, want *unstructured.Unstructured
	}{
		"child":           {CompactChild, whole(template), whole(map[string]any{"replicas": int64(1)})},
		"custom resource": {compactResource, whole(template), whole(template)},
	} {
		t.Run(name, func(t *testing.T) {
			test.object.SetAnnotations(map[string]string{"a": "v", corev1.LastAppliedConfigAnnotation: "{}"})
			object, err := test.transform(test.object)
			if err != nil {
				t.Fatal(err)
			}
			if object, err = test.transform(toolscache.DeletedFinalStateUnknown{Obj: object}); err != nil { // a cache transforms what it has
				t.Fatal(err)
			}
			o := object.(toolscache.DeletedFinalStateUnknown).Obj.(*packed)
			if w := test.want; o.GroupVersionKind() != w.GroupVersionKind() || o.GetName() != "a" || o.GetNamespace() != "n" || o.GetUID() != "1" ||
				o.GetResourceVersion() != "7" || o.GetGeneration() != 3 || o.GetCreationTimestamp() != w.GetCreationTimestamp() ||
				!o.GetDeletionTimestamp().Equal(w.GetDeletionTimestamp()) || o.GetLabels()["l"] != "<&>" ||
				!maps.Equal(o.GetAnnotations(), map[string]string{"a": "v"}) || metav1.GetControllerOf(o).UID != "2" {
				t.Errorf("handlers of events see %+v", o)
			}
			c := packedCache{Cache: kept{object: o}}
			for range 2 { // what one reader changes is not another's
				got, all := &unstructured.Unstructured{}, &unstructured.UnstructuredList{}
				var each []*unstructured.Unstructured
				err := metrics.Each(t.Context(), c, &unstructured.UnstructuredList{}, func(o client.Object) {
					each = append(each, o.(*unstructured.Unstructured))
				})
				if err := errors.Join(err, c.Get(t.Context(), client.ObjectKey{}, got), c.List(t.Context(), all)); err != nil || len(each) != 1 {
					t.Fatal(err, each)
				}
				for _, got := range append(each, got, &all.Items[0]) {
					if diff := cmp.Diff(test.want.Object, got.Object); diff != "" {
						t.Errorf("read (-want +got):\n%s", diff)
					}
					got.Object["metadata"].(map[string]any)["labels"].(map[string]any)["l"] = "another"
				}
			}
		})
	}
	c := packedCache{Cache: kept{}}
	if err := c.Get(t.Context(), client.ObjectKey{}, &unstructured.Unstructured{}); !apierrors.IsNotFound(err) {
		t.Errorf("what is not there: %v", err)
	}
	if err := c.IndexField(t.Context(), &unstructured.Unstructured{}, "spec.a", nil); !errors.Is(err, errPacked) {
		t.Errorf("an index: %v", err)
	}
}

// kept is a cache of one object.
type kept struct {
	cache.Cache

	object *packed
}

func (k kept) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	into.(*packedList).Items = []packed{*k.object}
	return nil
}

func (k kept) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if k.object == nil {
		return apierrors.NewNotFound(schema.GroupResource{}, "a")
	}
	*into.(*packed) = *k.object
	return nil
}

// Of StatefulSets is kept what their pods run as.
func TestCacheOfChildrenKeepsNoPodTemplates(t *testing.T) {
	user := &corev1.PodSecurityContext{RunAsUser: new(int64)}
	set := &appsv1.StatefulSet{Spec: appsv1.StatefulSetSpec{ServiceName: "s", Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{SecurityContext: user, Containers: []corev1.Container{{Name: "redis"}}}}}}
	if _, err := CompactChild(set); err != nil {
		t.Fatal(err)
	}
	want := appsv1.StatefulSetSpec{ServiceName: "s", Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{SecurityContext: user}}}
	if diff := cmp.Diff(want, set.Spec); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
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
