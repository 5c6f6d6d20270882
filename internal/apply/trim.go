// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// digestKey begins the one key by which Compact replaces a set of fields; the set's digest is the rest of it. No set of the API
// server has such a key ("f:", "k:", "v:", "i:" and "." are all there are).
const digestKey = "digest:"

// keptFields are the fields of ours that a cache still tells one by one: what an Applier looks at, and what readers ask Owned for.
var keptFields = [][]string{{"f:spec", "f:replicas"}, {"f:spec", "f:template", "f:spec", "f:securityContext"}}

// TrimManagedFields reduces what a cache keeps of an object to what is read: of managed fields, a digest of our own entry, and the fields
// in it that decide something; and that there is one of what was settled. That is most of the memory that a child costs. The object is
// changed.
func TrimManagedFields(object any) {
	if whole, ok := object.(*unstructured.Unstructured); ok {
		compactMap(whole)
		return
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return
	}
	entries := slices.DeleteFunc(accessor.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool { return !isOwn(e) && !isSettled(e) })
	for i := range entries {
		if isSettled(entries[i]) {
			entries[i].FieldsV1 = nil
			continue
		}
		if encoded, err := json.Marshal(compacted(fieldsOf(entries[i]), entries[i].APIVersion)); err == nil {
			entries[i].FieldsV1 = metav1.NewFieldsV1(string(encoded))
		}
	}
	accessor.SetManagedFields(slices.Clip(entries))
}

// compactMap does it in place: the accessors of unstructured objects copy every entry to and fro.
func compactMap(object *unstructured.Unstructured) {
	metadata, _ := object.Object["metadata"].(map[string]any)
	entries, _ := metadata["managedFields"].([]any)
	delete(metadata, "managedFields")
	var kept []any
	for _, raw := range entries {
		entry, _ := raw.(map[string]any)
		fields, _ := entry["fieldsV1"].(map[string]any)
		switch operation := entry["operation"]; {
		case entry["manager"] != FieldManager || entry["subresource"] != nil:
			continue
		case operation == string(metav1.ManagedFieldsOperationUpdate):
			delete(entry, "fieldsV1")
		case operation != string(metav1.ManagedFieldsOperationApply) || fields == nil:
			continue
		default:
			version, _ := entry["apiVersion"].(string)
			entry["fieldsV1"] = map[string]any(compacted(fields, version))
		}
		kept = append(kept, entry)
	}
	if kept != nil {
		metadata["managedFields"] = kept
	}
}

func compacted(fields fieldSet, apiVersion string) fieldSet {
	digest := fields.digest(apiVersion)
	if digest == "" {
		return fields
	}
	short := fieldSet{digestKey + digest: map[string]any{}}
	for _, path := range keptFields {
		if !fields.has(path...) {
			continue
		}
		nested := map[string]any(fields.at(path...))
		for i := len(path) - 1; i > 0; i-- {
			nested = map[string]any{path[i]: nested}
		}
		short.add(fieldSet{path[0]: nested})
	}
	return short
}

// fromCompact returns the digest a compacted set carries; empty if it is a set of the API server.
func (s fieldSet) fromCompact() string {
	for key := range s {
		if digest, found := strings.CutPrefix(key, digestKey); found {
			return digest
		}
	}
	return ""
}
