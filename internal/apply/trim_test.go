// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// What a cache keeps must tell the same as the whole: or every object would count as changed.
func TestCompactKeepsWhatIsRead(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC))
	for _, fields := range []string{
		`{"f:data":{"f:b":{},"f:a":{}}}`,
		`{"f:spec":{"f:replicas":{},"f:ports":{"k:{\"port\":80,\"protocol\":\"TCP\"}":{".":{},"f:port":{}}}}}`,
		`{"f:spec":{"f:replicas":{},"f:template":{"f:metadata":{},"f:spec":{"f:ports":{},"f:securityContext":{"f:fsGroup":{}}}}}}`,
	} {
		typed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", ManagedFields: []metav1.ManagedFieldsEntry{
			{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: "kubectl", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", Time: &at, FieldsType: "FieldsV1",
				FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationApply, Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: FieldManager, Operation: metav1.ManagedFieldsOperationUpdate, FieldsV1: metav1.NewFieldsV1(fields)},
			{Manager: "another", Operation: metav1.ManagedFieldsOperationApply, FieldsV1: metav1.NewFieldsV1(fields)},
		}}}
		encoded, err := json.Marshal(typed)
		if err != nil {
			t.Fatal(err)
		}
		whole := &unstructured.Unstructured{}
		if err := json.Unmarshal(encoded, &whole.Object); err != nil {
			t.Fatal(err)
		}
		before := typed.ManagedFields
		digest, mark, replicas := fieldsDigest(before), markOf(before), ownFields(before).has("f:spec", "f:replicas")
		owned, _ := Owned(typed, "spec", "template", "spec", "securityContext")
		for range 2 { // a cache may transform an object again
			for _, object := range []metav1.Object{typed, whole} {
				TrimManagedFields(object)
				entries := object.GetManagedFields()
				if len(entries) != 2 || !isSettled(entries[1]) || entries[1].FieldsV1 != nil {
					t.Fatalf("%T: %v", object, entries)
				}
				if kept := string(entries[0].FieldsV1.GetRawBytes()); strings.Contains(kept, "f:ports") || !strings.Contains(kept, digestKey) ||
					fieldsDigest(entries) != digest ||
					markOf(entries) != mark || ownFields(entries).has("f:spec", "f:replicas") !=
					replicas {
					t.Errorf("%T: %v", object, entries)
				}
				if names, known := Owned(object, "spec", "template", "spec", "securityContext"); !known || !slices.Equal(names, owned) {
					t.Errorf("%T: of the security context we own %v, want %v", object, names, owned)
				}
			}
		}
	}
}

// Of an object of which nothing is ours, no managed fields are kept; an entry of ours without fields owns nothing.
func TestCompactOfAnothers(t *testing.T) {
	theirs := metav1.ManagedFieldsEntry{Manager: "kubelet", Operation: metav1.ManagedFieldsOperationUpdate,
		FieldsV1: metav1.NewFieldsV1(`{"f:a":{}}`)}
	bare := entry("")
	bare.FieldsV1 = nil
	whole := existing(t, configText, managed(theirs, bare))
	typed := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{theirs}}}
	for _, object := range []metav1.Object{whole, typed} {
		if TrimManagedFields(object); len(object.GetManagedFields()) != 0 {
			t.Errorf("%T: %v", object, object.GetManagedFields())
		}
	}
	typed.ManagedFields = []metav1.ManagedFieldsEntry{bare}
	if TrimManagedFields(typed); markOf(typed.ManagedFields) != "" {
		t.Errorf("without fields: %v", typed.ManagedFields)
	}
	TrimManagedFields("no object") // a cache may be given what stands for one that is gone
}
