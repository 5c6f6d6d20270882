// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/rediscluster/observe"
)

// The user of instances that are there does not change, even if the RedisCluster came past the webhook; the platform may come to choose it.
func TestUserOfInstancesStays(t *testing.T) {
	const none = int64(-1)
	for _, tt := range []struct {
		was, is int64
		owned   bool
		refused bool
		// gave are the fields of the security context that the operator owns, as managedFields has them; empty: it owns nothing.
		gave string
	}{
		{999, 999, true, false, ""}, {999, none, true, false, ""}, {none, 999, true, false, ""},
		{none, none, true, false, ""}, {1001, 1001, true, false, ""},
		{999, 1001, true, true, ""}, {1001, 999, true, true, ""}, {none, 1001, true, true, ""},
		{1001, none, true, true, ""}, {999, 1001, false, false, ""},
		// What somebody else wrote is put back.
		{999, 1001, true, true, `"f:fsGroup":{}`}, {1001, 999, true, true, `"f:fsGroup":{}`}, {999, 1001, true, false, `"f:runAsUser":{}`},
		{1001, 999, true, false, `"f:runAsUser":{}`}, {1001, 999, true, false, `"f:seccompProfile":{}`},
		{none, 1001, true, false, `"f:runAsUser":{}`}, {none, 1001, true, true, `"f:seccompProfile":{}`},
	} {
		cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}}
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0",
			Labels: map[string]string{v1alpha1.LabelCluster: "c"}}}
		set.Spec.Template.Spec.SecurityContext = &corev1.PodSecurityContext{}
		if tt.was != none {
			set.Spec.Template.Spec.SecurityContext.FSGroup = &tt.was
		}
		if tt.gave != "" {
			set.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: apply.FieldManager, Operation: metav1.ManagedFieldsOperationApply,
				APIVersion: "apps/v1", FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:template":{"f:spec":{"f:securityContext":{` + tt.gave + `}}}}}`)}}
		}
		if tt.owned {
			set.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(cluster, v1alpha1.GroupVersion.WithKind("RedisCluster"))}
		}
		rendered := &unstructured.Unstructured{Object: map[string]any{"kind": "StatefulSet", "metadata": map[string]any{"name": "c-0"}}}
		if tt.is != none {
			if err := unstructured.SetNestedField(rendered.Object, tt.is, "spec", "template", "spec", "securityContext", "fsGroup"); err != nil {
				t.Fatal(err)
			}
		}
		kube := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithReturnManagedFields().WithObjects(set).Build()
		c := &children{observer: &observe.Observer{Children: kube}}
		why, err := c.otherUser(t.Context(), cluster, []*unstructured.Unstructured{rendered})
		if err != nil || (why != nil) != tt.refused {
			t.Errorf("%+v: %v, %v", tt, why, err)
		}
	}
}
