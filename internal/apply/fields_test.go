// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server orders the elements of a list of ports by number, Go by text. A Service
// with ports 6379 and 16379 was applied in every reconciliation.
func TestFieldsDigestDoesNotDependOnOrder(t *testing.T) {
	digest := func(fields string) string {
		return fieldsDigest([]metav1.ManagedFieldsEntry{{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply,
			APIVersion: "v1", FieldsV1: metav1.NewFieldsV1(fields)}})
	}
	byNumber := digest(`{"f:spec":{"f:ports":{"k:{\"port\":6379}":{".":{}},"k:{\"port\":16379}":{".":{}}}}}`)
	byText := digest(`{"f:spec":{"f:ports":{"k:{\"port\":16379}":{".":{}},"k:{\"port\":6379}":{".":{}}}}}`)
	if byNumber == "" || byNumber != byText {
		t.Errorf("digests differ: %q and %q", byNumber, byText)
	}
}

func TestFold(t *testing.T) {
	managed := func(manager, version string, operation metav1.ManagedFieldsOperationType, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, APIVersion: version, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	const update, applied = metav1.ManagedFieldsOperationUpdate, metav1.ManagedFieldsOperationApply
	isHelms := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == "helm" }
	kubectl := managed("kubectl", "v1", update, `{"f:data":{"f:x":{}}}`)
	for name, tc := range map[string]struct{ entries, want []metav1.ManagedFieldsEntry }{
		"nothing of theirs": {[]metav1.ManagedFieldsEntry{kubectl}, nil},
		"theirs becomes ours": {
			[]metav1.ManagedFieldsEntry{managed("helm", "v1", update, `{"f:data":{"f:a":{}}}`), kubectl},
			[]metav1.ManagedFieldsEntry{kubectl, managed(FieldManager, "v1", applied, `{"f:data":{"f:a":{}}}`)},
		},
		"theirs joins ours": {
			[]metav1.ManagedFieldsEntry{managed("helm", "v1", update, `{"f:data":{".":{},"f:a":{}},"f:b":{}}`),
				managed(FieldManager, "v1", applied, `{"f:data":{"f:c":{}}}`)},
			[]metav1.ManagedFieldsEntry{managed(FieldManager, "v1", applied, `{"f:b":{},"f:data":{".":{},"f:a":{},"f:c":{}}}`)},
		},
		"theirs of another version than ours stays": {
			[]metav1.ManagedFieldsEntry{managed(FieldManager, "v1", applied, `{"f:a":{}}`), managed("helm", "v1beta1", update, `{"f:b":{}}`)}, nil},
		"another version stays": {
			[]metav1.ManagedFieldsEntry{managed("helm", "v1", update, `{"f:a":{}}`), managed("helm", "v1beta1", update, `{"f:b":{}}`)},
			[]metav1.ManagedFieldsEntry{managed("helm", "v1beta1", update, `{"f:b":{}}`), managed(FieldManager, "v1", applied, `{"f:a":{}}`)},
		},
		"Helm's annotations are nobody's": {
			[]metav1.ManagedFieldsEntry{
				managed("helm", "v1", update, `{"f:metadata":{"f:annotations":{"f:a":{},"f:meta.helm.sh/release-name":{}}}}`)},
			[]metav1.ManagedFieldsEntry{managed(FieldManager, "v1", applied, `{"f:metadata":{"f:annotations":{"f:a":{}}}}`)},
		},
		"nor is the map that holds nothing else": { // an empty set would be the whole map
			[]metav1.ManagedFieldsEntry{
				managed("helm", "v1", update,
					`{"f:data":{},"f:metadata":{"f:annotations":{".":{},"f:meta.helm.sh/release-name":{},"f:meta.helm.sh/release-namespace":{}}}}`)},
			[]metav1.ManagedFieldsEntry{managed(FieldManager, "v1", applied, `{"f:data":{},"f:metadata":{}}`)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := fold(tc.entries, isHelms)
			if diff := cmp.Diff(describeEntries(tc.want), describeEntries(got)); diff != "" || err != nil {
				t.Errorf("%v\n%s", err, diff)
			}
		})
	}
}

func describeEntries(entries []metav1.ManagedFieldsEntry) []string {
	var described []string
	for _, e := range entries {
		described = append(described, e.Manager+" "+string(e.Operation)+" "+e.APIVersion+" "+string(e.FieldsV1.GetRawBytes()))
	}
	return described
}

// Ours are the fields that we applied: not those of others, of our patches, or of a status.
func TestOwnFields(t *testing.T) {
	change := func(change func(*metav1.ManagedFieldsEntry)) metav1.ManagedFieldsEntry {
		e := entry(`{"f:data":{"f:text":{}}}`)
		change(&e)
		return e
	}
	for name, tt := range map[string]struct {
		entry metav1.ManagedFieldsEntry
		ours  bool
	}{
		"applied":        {entry(`{"f:data":{"f:text":{}}}`), true},
		"another's":      {change(func(e *metav1.ManagedFieldsEntry) { e.Manager = "kubectl" }), false},
		"patched":        {change(func(e *metav1.ManagedFieldsEntry) { e.Operation = metav1.ManagedFieldsOperationUpdate }), false},
		"of a status":    {change(func(e *metav1.ManagedFieldsEntry) { e.Subresource = "status" }), false},
		"without fields": {change(func(e *metav1.ManagedFieldsEntry) { e.FieldsV1 = nil }), false},
	} {
		entries := []metav1.ManagedFieldsEntry{change(func(e *metav1.ManagedFieldsEntry) { e.Manager = "kubelet" }), tt.entry}
		own := ownFields(entries)
		if own.has("f:data", "f:text") != tt.ours || own.has("f:data", "f:more") || own.has("f:spec", "f:text") ||
			(fieldsDigest(entries) != "") != tt.ours || (markOf(entries) != "") != tt.ours {
			t.Errorf("%s: %v, digest %q", name, own, fieldsDigest(entries))
		}
	}
}

// Owned names what is ours right below a field, and tells that nothing of an object is from that nothing of the field is.
func TestOwned(t *testing.T) {
	ours := metadataOf("a", "1", entry(`{"f:spec":{"f:a":{},"f:template":{".":{},"f:b":{"f:c":{}},"f:d":{}}},"f:template":{"f:e":{}}}`))
	for name, tt := range map[string]struct {
		object *metav1.PartialObjectMetadata
		path   []string
		want   []string
		known  bool
	}{
		"some":              {ours, []string{"spec", "template"}, []string{"b", "d"}, true},
		"none of the field": {ours, []string{"spec", "more"}, nil, true},
		"none at all":       {metadataOf("a", "1"), []string{"spec", "template"}, nil, false},
	} {
		names, known := Owned(tt.object, tt.path...)
		if slices.Sort(names); !slices.Equal(names, tt.want) || known != tt.known {
			t.Errorf("%s: %v, known %t", name, names, known)
		}
	}
}
