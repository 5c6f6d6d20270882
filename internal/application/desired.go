// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package application

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// desired is the Deployment that an Application's template asks for. It is taken
// from the object as it was written, not from its Go type, so that exactly the
// fields that were written are set: "paused: false" is a wish, too, and "replicas"
// that is left out belongs to an autoscaler.
//
// What is added: the name, the labels and the selector where the template leaves
// them to the Application, and no service account token.
func desired(application *unstructured.Unstructured) *unstructured.Unstructured {
	spec, _, _ := unstructured.NestedMap(application.Object, "spec") // a deep copy
	template := child(spec, "template")
	metadata, deployment := child(template, "metadata"), child(template, "spec")
	pods := child(deployment, "template")

	child(pods, "spec")["automountServiceAccountToken"] = false
	if _, ok := deployment["selector"]; !ok {
		deployment["selector"] = spec["selector"]
	}
	out := &unstructured.Unstructured{Object: map[string]any{"spec": deployment}}
	out.SetGroupVersionKind(deploymentKind)
	out.SetNamespace(application.GetNamespace())
	out.SetName(application.GetName())
	if name, _ := metadata["name"].(string); name != "" {
		out.SetName(name)
	}
	labels, _, _ := unstructured.NestedStringMap(metadata, "labels")
	if len(labels) == 0 {
		labels, _, _ = unstructured.NestedStringMap(child(pods, "metadata"), "labels")
	}
	out.SetLabels(labels)
	if annotations, _, _ := unstructured.NestedStringMap(metadata, "annotations"); len(annotations) > 0 {
		out.SetAnnotations(annotations)
	}
	return out
}

// child returns the map below a key, which it makes if there is none.
func child(parent map[string]any, key string) map[string]any {
	if existing, ok := parent[key].(map[string]any); ok {
		return existing
	}
	made := map[string]any{}
	parent[key] = made
	return made
}
