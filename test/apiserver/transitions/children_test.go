// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package transitions

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/test/apiserver/environment"
)

// made are the kinds of objects that the operator makes for those that are changed here.
var made = []schema.GroupVersionKind{
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Version: "v1", Kind: "Service"}, {Version: "v1", Kind: "ConfigMap"},
	{Version: "v1", Kind: "Secret"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "batch", Version: "v1", Kind: "CronJob"}, {Group: "networking.k8s.io", Version: "v1", Kind: "Ingress"},
	{Group: "autoscaling", Version: "v2", Kind: "HorizontalPodAutoscaler"},
}

// grows are the objects of which there are more by contract after more changes.
func grows(object *unstructured.Unstructured) (reason string) {
	kind, _, _ := unstructured.NestedString(object.Object, "type")
	switch {
	case kind == "helm.sh/release.v1":
		return "a revision of Helm's history"
	case object.GetName() == "kube-root-ca.crt":
		return "of the cluster"
	}
	return ""
}

// children are all objects of a namespace that the operator makes, as they are.
func children(t *testing.T, namespace string) []*unstructured.Unstructured {
	t.Helper()
	var all []*unstructured.Unstructured
	for _, kind := range made {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		environment.Check(t, api.List(context.Background(), list, client.InNamespace(namespace)))
		for i := range list.Items {
			if grows(&list.Items[i]) == "" {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all
}

// outcome is what came of a resource: the spec, the conditions, and the objects that were made, without what chance decides.
func outcome(t *testing.T, owner *unstructured.Unstructured) map[string]any {
	t.Helper()
	all := map[string]any{"spec": owner.Object["spec"]}
	conditions, _, _ := unstructured.NestedSlice(owner.Object, "status", "conditions")
	for _, c := range conditions {
		condition := c.(map[string]any)
		reason := condition["reason"]
		if reason == "UpgradeSuccessful" {
			reason = "InstallSuccessful" // whether the revision is the first
		}
		all["condition "+condition["type"].(string)] = []any{condition["status"], reason}
	}
	for _, object := range children(t, owner.GetNamespace()) {
		all[object.GetKind()+" "+object.GetName()] = plain(t, owner, object)
	}
	return all
}

// plain is an object without what differs between two of the same kind and name.
func plain(t *testing.T, owner, object *unstructured.Unstructured) map[string]any {
	t.Helper()
	text, err := json.Marshal(object)
	environment.Check(t, err)
	same := strings.NewReplacer(string(owner.GetUID()), "owner", string(object.GetUID()), "uid", owner.GetNamespace(), "namespace").
		Replace(string(text))
	out := map[string]any{}
	environment.Check(t, json.Unmarshal([]byte(same), &out))
	for _, path := range [][]string{{"metadata", "creationTimestamp"}, {"metadata", "resourceVersion"}, {"metadata", "generation"},
		{"metadata", "managedFields"}, {"status"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"}, {"spec", "healthCheckNodePort"}} {
		unstructured.RemoveNestedField(out, path...)
	}
	if ports, found, _ := unstructured.NestedSlice(out, "spec", "ports"); found {
		for i := range ports {
			delete(ports[i].(map[string]any), "nodePort")
		}
		environment.Check(t, unstructured.SetNestedSlice(out, ports, "spec", "ports"))
	}
	return out
}
