// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/chart"
	"middleware.hc.cn/operator/internal/release"
)

// former is a resource that another operator had: its finalizer is there.
func former([]string) *unstructured.Unstructured {
	object := web(nil)
	object.SetFinalizers([]string{release.Finalizer})
	return object
}

// formerSecond is one that asks for the second version of the chart site.
func formerSecond([]string) *unstructured.Unstructured {
	object := former(nil)
	object.Object["spec"] = map[string]any{"text": "second"}
	return object
}

// leave makes what helm-operator leaves behind of the chart site: the objects, and Helm's records, the last in a state.
func leave(last chart.Status) func(t *testing.T, object *unstructured.Unstructured) {
	return func(t *testing.T, object *unstructured.Unstructured) {
		t.Helper()
		loaded, err := load(together(site))
		check(t, err)
		record := func(revision int, text string, status chart.Status) *chart.Rendered {
			of := chart.Release{Name: object.GetName(), Namespace: object.GetNamespace(), Revision: revision}
			rendered, err := loaded.Render(map[string]any{"text": text}, of, chart.Capabilities{KubeVersion: "v1.34.0"})
			check(t, err)
			stored, err := loaded.EncodeRelease(rendered, chart.Record{Release: of, Status: status, FirstDeployed: time.Now(),
				LastDeployed: time.Now(), Description: "by another operator"})
			check(t, err)
			check(t, api.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: object.GetNamespace(), Name: stored.Name, Labels: stored.Labels,
					OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(object, webKind)}},
				Type: corev1.SecretType(stored.Type), Data: stored.Data,
			}))
			return rendered
		}
		made := record(1, "first", chart.StatusDeployed).Objects
		if last != chart.StatusDeployed { // it had got as far as one new object
			made = append(made, record(2, "second", last).Objects[2])
		}
		for _, child := range made {
			child.SetNamespace(object.GetNamespace())
			child.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(object, webKind)})
			check(t, api.Create(t.Context(), child, client.FieldOwner("helm-operator")))
		}
	}
}
