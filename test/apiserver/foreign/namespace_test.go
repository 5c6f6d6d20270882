// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"middleware.hc.cn/operator/test/apiserver/environment"
	"middleware.hc.cn/operator/test/crash"
)

// most is how many requests about five resources may be refused while their namespace goes: each of some twenty objects that go may
// bring one or two. What is tried again at once would bring thousands.
const most = 100

// TestNamespaceIsDeleted: a namespace that is deleted with resources of all five kinds in it goes, whether they or what was made of them
// goes first. The operator does not try again and again to make what is gone, ends no reconciliation with an error, and warns of
// nothing. With instances that run: the test of this name for a RedisCluster.
func TestNamespaceIsDeleted(t *testing.T) {
	for name, ordered := range map[string]func(owners, made []schema.GroupVersionKind) []schema.GroupVersionKind{
		"they first":                  func(owners, made []schema.GroupVersionKind) []schema.GroupVersionKind { return append(owners, made...) },
		"what was made of them first": func(owners, made []schema.GroupVersionKind) []schema.GroupVersionKind { return append(made, owners...) },
	} {
		t.Run(name, func(t *testing.T) {
			namespace := environment.NewNamespace(t, api, "deleted")
			var owners []schema.GroupVersionKind
			for _, file := range slices.Sorted(maps.Keys(kinds)) {
				resource := newResource(t, file)
				resource.SetNamespace(namespace)
				owners = append(owners, resource.GroupVersionKind())
				environment.Check(t, api.Create(t.Context(), resource))
				environment.Eventually(t, "the children of "+file, func() string {
					if len(children(t, resource)) < kinds[file] {
						return statusOf(t, resource)
					}
					return ""
				})
			}
			errors, refused, warnings := environment.Errors(t), len(requests.Refused()), len(requests.Warnings())
			world := crash.World{API: api, Kinds: ordered(owners, slices.Clone(childKinds)), Namespaces: []string{namespace},
				Normalise: func(*unstructured.Unstructured) error { return nil }}
			environment.DeleteNamespace(t, world)
			if n := environment.Errors(t) - errors; n > 0 {
				t.Errorf("%v reconciliations ended with an error", n)
			}
			if warned := requests.Warnings()[warnings:]; len(warned) > 0 {
				t.Errorf("the operator warned: %s", strings.Join(warned, "\n"))
			}
			if again := requests.Refused()[refused:]; len(again) > most {
				t.Errorf("%d requests were refused: %v", len(again), again)
			}
		})
	}
}
