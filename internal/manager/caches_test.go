// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
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
