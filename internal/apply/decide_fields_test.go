// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The API server orders the elements of a list of ports by number, Go by text. A Service
// with ports 6379 and 16379 was applied in every pass.
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
