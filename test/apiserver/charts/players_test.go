// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package charts

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// players write what the controllers of a cluster would write into the status of what they run: it is all well.
var players = map[schema.GroupVersionKind]func(*unstructured.Unstructured) map[string]any{
	{Group: "apps", Version: "v1", Kind: "Deployment"}: func(o *unstructured.Unstructured) map[string]any {
		n, _, _ := unstructured.NestedInt64(o.Object, "spec", "replicas")
		return map[string]any{"observedGeneration": o.GetGeneration(), "replicas": n, "updatedReplicas": n, "readyReplicas": n,
			"availableReplicas": n}
	},
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}: func(o *unstructured.Unstructured) map[string]any {
		return map[string]any{"observedGeneration": o.GetGeneration(), "desiredNumberScheduled": int64(1), "currentNumberScheduled": int64(1),
			"numberMisscheduled": int64(0), "updatedNumberScheduled": int64(1), "numberAvailable": int64(1), "numberReady": int64(1)}
	},
	{Group: "batch", Version: "v1", Kind: "Job"}: func(o *unstructured.Unstructured) map[string]any {
		now := o.GetCreationTimestamp().UTC().Format(time.RFC3339)
		return map[string]any{"succeeded": int64(1), "startTime": now, "completionTime": now, "conditions": []any{
			map[string]any{"type": "SuccessCriteriaMet", "status": "True", "lastTransitionTime": now},
			map[string]any{"type": "Complete", "status": "True", "lastTransitionTime": now},
		}}
	},
	{Version: "v1", Kind: "Service"}: func(o *unstructured.Unstructured) map[string]any {
		if kind, _, _ := unstructured.NestedString(o.Object, "spec", "type"); kind != "LoadBalancer" {
			return map[string]any{}
		}
		return map[string]any{"loadBalancer": map[string]any{"ingress": []any{map[string]any{"ip": "198.51.100.7"}}}}
	},
}

// endNamespaces does what the namespace controller does last. What is in a namespace is deleted by whoever tests here.
func endNamespaces(t *testing.T) {
	t.Helper()
	namespaces, err := clients.CoreV1().Namespaces().List(context.Background(), metav1.ListOptions{})
	check(t, err)
	for i := range namespaces.Items {
		if namespace := &namespaces.Items[i]; namespace.DeletionTimestamp != nil {
			namespace.Spec.Finalizers = nil
			_, err := clients.CoreV1().Namespaces().Finalize(context.Background(), namespace, metav1.UpdateOptions{})
			logUnlessGone(t, err)
		}
	}
}

// play lets every player look at every object once, and takes away what waits for a controller's finalizer.
func play(t *testing.T) {
	t.Helper()
	ctx := context.Background()
	endNamespaces(t)
	for kind, status := range players {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		check(t, api.List(ctx, list))
		for i := range list.Items {
			object := &list.Items[i]
			if !object.GetDeletionTimestamp().IsZero() {
				object.SetFinalizers(nil) // those of Kubernetes' own garbage collector and Job controller
				logUnlessGone(t, api.Update(ctx, object))
				continue
			}
			if played(object, status(object)) {
				continue
			}
			object.Object["status"] = status(object)
			logUnlessGone(t, api.Status().Update(ctx, object))
		}
	}
}

// played reports whether the status is as its player would write it.
func played(object *unstructured.Unstructured, wanted map[string]any) bool {
	status, _, _ := unstructured.NestedMap(object.Object, "status")
	if observed, ok := wanted["observedGeneration"]; ok {
		return status["observedGeneration"] == observed && status["readyReplicas"] == wanted["readyReplicas"]
	}
	for field := range wanted {
		if value, ok := status[field]; !ok || field == "loadBalancer" && len(value.(map[string]any)) == 0 {
			return false
		}
	}
	return true
}

// logUnlessGone tells of a write that lost against another; it is tried again.
func logUnlessGone(t *testing.T, err error) {
	t.Helper()
	if client.IgnoreNotFound(err) != nil {
		t.Log("play a controller:", err)
	}
}
