// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	crhandler "sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// created are the values of resource_created_at_seconds, by name/namespace/group/version/kind.
func created(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for _, family := range families {
		if family.GetName() != "resource_created_at_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			found[labels["name"]+"/"+labels["namespace"]+"/"+labels["group"]+"/"+labels["version"]+"/"+labels["kind"]] = m.GetGauge().GetValue()
		}
	}
	return found
}

// An object of a Go type does not say of what kind it is, and is told apart all the same; what the first list shows waits behind
// what changes.
func TestEnqueueTellsWhenAnObjectWasCreated(t *testing.T) {
	const at = 1790000000
	object := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cart", ResourceVersion: "1", CreationTimestamp: metav1.Unix(at, 0)}}
	queue := priorityqueue.New[reconcile.Request]("test")
	defer queue.ShutDown()
	enqueue := Enqueue(corev1.SchemeGroupVersion.WithKind("Secret"))
	woken := func(want int) {
		t.Helper()
		request, priority, _ := queue.GetWithPriority()
		if request.Namespace != "shop" || request.Name != "cart" || priority != want {
			t.Errorf("woken: %v with priority %d, want %d", request, priority, want)
		}
		queue.Done(request)
	}
	enqueue.Create(t.Context(), event.CreateEvent{Object: object, IsInInitialList: true}, queue)
	woken(crhandler.LowPriority)
	if diff := cmp.Diff(map[string]float64{"cart/shop//v1/Secret": at}, created(t)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	changed := object.DeepCopy()
	changed.ResourceVersion, changed.CreationTimestamp = "2", metav1.NewTime(time.Unix(at+1, 0))
	enqueue.Update(t.Context(), event.UpdateEvent{ObjectOld: object, ObjectNew: changed}, queue)
	woken(0)
	if diff := cmp.Diff(map[string]float64{"cart/shop//v1/Secret": at + 1}, created(t)); diff != "" {
		t.Errorf("series (-want +got):\n%s", diff)
	}
	enqueue.Delete(t.Context(), event.DeleteEvent{Object: changed}, queue)
	woken(0)
	if left := created(t); len(left) > 0 {
		t.Errorf("series outlive their object: %v", left)
	}
}
