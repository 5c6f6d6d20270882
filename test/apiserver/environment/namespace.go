// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package environment

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/crash"
)

// DeleteNamespace deletes the one namespace of a world, and does what the controller of namespaces and the garbage collector do then:
// everything in it is deleted, kind by kind in the world's order, again and again until nothing is left, and the namespace goes.
// Between two kinds others have time to see what is gone.
func DeleteNamespace(t testing.TB, w crash.World) {
	t.Helper()
	ctx := context.Background()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespaces[0]}}
	Check(t, w.API.Delete(ctx, namespace))
	Eventually(t, "nothing can be made in the namespace", func() string {
		probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace.Name, Name: "probe"}}
		if err := w.API.Create(ctx, probe, client.DryRunAll); err == nil {
			return "something can"
		}
		return ""
	})
	Eventually(t, "the namespace is empty", func() string {
		for _, kind := range w.Kinds {
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(kind)
			Check(t, w.API.DeleteAllOf(ctx, object, client.InNamespace(namespace.Name), client.PropagationPolicy("Background")))
			time.Sleep(100 * time.Millisecond)
		}
		_, err := w.Collect(ctx)
		Check(t, err)
		left, err := w.Objects(ctx)
		Check(t, err)
		var names []string
		for _, object := range left {
			names = append(names, fmt.Sprintf("%s %s (%s)", object.GetKind(), object.GetName(), strings.Join(object.GetFinalizers(), ", ")))
		}
		return strings.Join(names, "; ")
	})
	Check(t, w.API.Get(ctx, client.ObjectKeyFromObject(namespace), namespace))
	namespace.Spec.Finalizers = nil
	Check(t, w.API.SubResource("finalize").Update(ctx, namespace))
	Eventually(t, "the namespace goes", func() string {
		if Get(t, w.API, namespace) {
			return "it is there"
		}
		return ""
	})
}
