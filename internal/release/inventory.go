// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
)

// The fields of status that belong to the engine. api/chart/v1 describes them.
const (
	fieldConditions         = "conditions"
	fieldDeployedRelease    = "deployedRelease"
	fieldInventory          = "inventory"
	fieldObservedGeneration = "observedGeneration"
)

func toUnstructured(object any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

func fromUnstructured(content map[string]any, object any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
}

func readDeployed(cr *unstructured.Unstructured) Deployed {
	m, _, _ := unstructured.NestedMap(cr.Object, "status", fieldDeployedRelease)
	var d Deployed
	d.Name, _ = m["name"].(string)
	d.Revision, _ = m["revision"].(int64)
	d.Digest, _ = m["digest"].(string)
	return d
}

func (d Deployed) write() any {
	return map[string]any{"name": d.Name, "revision": d.Revision, "digest": d.Digest}
}

// readInventory reads status.inventory. Only objects in the resource's own namespace are believed: whoever may write a status
// does not thereby point the operator elsewhere.
func readInventory(cr *unstructured.Unstructured) []apply.Ref {
	list, _, _ := unstructured.NestedSlice(cr.Object, "status", fieldInventory)
	var refs []apply.Ref
	for _, entry := range list {
		m, ok := entry.(map[string]any)
		if !ok {
			continue
		}
		text := func(key string) string { s, _ := m[key].(string); return s }
		ref := apply.Ref{
			GroupVersionKind: schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")},
			Namespace:        text("namespace"), Name: text("name"), UID: types.UID(text("uid")),
		}
		if ref.Kind == "" || ref.Version == "" || ref.Name == "" || ref.Namespace != cr.GetNamespace() {
			continue
		}
		refs = append(refs, ref)
	}
	return refs
}

func writeInventory(refs []apply.Ref) any {
	list := make([]any, 0, len(refs))
	for _, ref := range refs {
		entry := map[string]any{"version": ref.Version, "kind": ref.Kind, "name": ref.Name}
		for key, value := range map[string]string{"group": ref.Group, "namespace": ref.Namespace, "uid": string(ref.UID)} {
			if value != "" {
				entry[key] = value
			}
		}
		list = append(list, entry)
	}
	return list
}

// union returns old and, after it, what of more is not in it.
func union(old, more []apply.Ref) []apply.Ref {
	all := append([]apply.Ref(nil), old...)
	for _, ref := range more {
		if !contains(all, ref) {
			all = append(all, ref)
		}
	}
	return all
}

func contains(refs []apply.Ref, ref apply.Ref) bool {
	for i := range refs {
		if refs[i].Same(ref) {
			return true
		}
	}
	return false
}
