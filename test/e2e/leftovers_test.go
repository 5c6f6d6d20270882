// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/live"
)

// ofATest is on every object outside of namespaces that these tests make.
var ofATest = client.MatchingLabels{"middleware.hc.cn/end-to-end-test": "true"}

// clusterWide are the kinds of such objects. Bindings go before what they bind, so that nothing is refused half-way.
var clusterWide = []schema.GroupVersionKind{
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicyBinding"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "ValidatingAdmissionPolicy"},
	{Group: "admissionregistration.k8s.io", Version: "v1", Kind: "MutatingAdmissionPolicy"},
	{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "IngressClass"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRoleBinding"},
	{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"},
}

// createForTest makes an object outside of the test's namespace, which goes with the test, or before the next run of the tests.
func createForTest(t *testing.T, object client.Object) {
	t.Helper()
	labels := object.GetLabels()
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, ofATest)
	object.SetLabels(labels)
	live.Create(t, object)
	t.Cleanup(func() {
		if err := remove(context.Background(), object); err != nil {
			t.Errorf("remove %T %s: %v", object, object.GetName(), err)
		}
	})
}

// remove deletes an object and waits until it is gone.
func remove(ctx context.Context, object client.Object) error {
	uid := object.GetUID() // one of the same name is not ours
	if err := live.Kube.Delete(ctx, object, client.Preconditions{UID: &uid}); err != nil {
		return client.IgnoreNotFound(err)
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, live.Timeout, true, func(ctx context.Context) (bool, error) {
		return apierrors.IsNotFound(live.Kube.Get(ctx, client.ObjectKeyFromObject(object), object)), nil
	})
}

// clearLeftovers removes what tests that were killed have left outside of namespaces. What the operator concluded from it when it
// started goes as well.
func clearLeftovers(ctx context.Context) error {
	found := 0
	for _, kind := range clusterWide {
		var list metav1.PartialObjectMetadataList
		list.SetGroupVersionKind(kind)
		if err := live.Kube.List(ctx, &list, ofATest); meta.IsNoMatchError(err) {
			continue // a cluster without the kind
		} else if err != nil {
			return fmt.Errorf("look for what former tests left: %w", err)
		}
		for i := range list.Items {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			object.SetName(list.Items[i].Name)
			object.SetUID(list.Items[i].UID)
			fmt.Printf("a former test left %s %s\n", kind.Kind, object.GetName())
			if err := remove(ctx, object); err != nil {
				return fmt.Errorf("remove %s %s: %w", kind.Kind, object.GetName(), err)
			}
			found++
		}
	}
	if found == 0 {
		return nil
	}
	return startAgain(ctx)
}

// What a test that is killed leaves is gone when the next run begins.
func TestLeftoversAreCleared(t *testing.T) {
	if !live.Local() {
		t.Skip("changes what the cluster serves")
	}
	crd := constraints()
	createForTest(t, crd)
	if err := clearLeftovers(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := gone(t, crd); err != nil {
		t.Error(err)
	}
	if err := clearLeftovers(t.Context()); err != nil {
		t.Errorf("again: %v", err)
	}
}
