// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestOutcomesOfTwoRunsThatAreAlike: what chance decides makes no difference, whatever it reads like: YAML has a number in quotes.
func TestOutcomesOfTwoRunsThatAreAlike(t *testing.T) {
	outcome := func(namespace, digest string) string {
		t.Helper()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web", UID: types.UID("uid-" + digest)},
			Data: map[string]string{"digest": digest, "in-" + namespace: "2026-11-28T16:30:00Z"}}
		world := World{API: fake.NewClientBuilder().WithObjects(object).Build(), Namespaces: []string{namespace},
			Kinds: []schema.GroupVersionKind{{Version: "v1", Kind: "ConfigMap"}}, Normalise: func(*unstructured.Unstructured) error { return nil }}
		text, err := world.Outcome(t.Context(), digest, "DIGEST")
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	if one, other := outcome("crash-1", "8fac4ea29677f466"), outcome("crash-2", "3141592653589e79"); one != other {
		t.Errorf("%s\n%s", one, other)
	}
}
