// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// An object that has the name of a child is written only if it is the owner's: one that the cache shows, and one that the API
// server has although the cache does not show it.
func TestAdoptsNothing(t *testing.T) {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(configs, meta.RESTScopeNamespace)
	for name, tt := range map[string]struct {
		// made is what there is, shown whether the cache has it, too.
		made  *corev1.ConfigMap
		shown bool
		// applies is how often something is sent; the first time, the API server says that the name is taken.
		applies int
		action  Action
		foreign bool
	}{
		"its own":                         {made: owned("a", unchanged), applies: 2, action: Configured},
		"its own, shown, and gone by now": {made: owned("a", unchanged), shown: true, applies: 2, action: Created},
		"its own, which is going":         {made: owned("a", going), applies: 1, action: Deleting},
		"its own, which is shown going":   {made: owned("a", going), shown: true, applies: 0, action: Deleting},
		"another's":                       {made: owned("a", foreign), applies: 1, foreign: true},
		"another's, shown":                {made: owned("a", foreign), shown: true, applies: 0, foreign: true},
		"nobody's":                        {made: owned("a", nobodys), applies: 1, foreign: true},
		"nobody's, shown":                 {made: owned("a", nobodys), shown: true, applies: 0, foreign: true},
		"another's, which is going":       {made: owned("a", func(o *corev1.ConfigMap) { going(o); foreign(o) }), applies: 1, foreign: true},
	} {
		t.Run(name, func(t *testing.T) {
			applies := 0
			live := fake.NewClientBuilder().WithRESTMapper(mapper).WithObjects(tt.made).WithInterceptorFuncs(interceptor.Funcs{
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					if applies++; applies == 1 {
						return apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "a", errors.New("it exists"))
					}
					return nil
				}}).Build()
			cache := fake.NewClientBuilder()
			if tt.shown {
				cache = cache.WithObjects(tt.made)
			}
			desired := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{"name": "a"}}}
			changes, err := New(live, cache.Build()).Apply(t.Context(), shop, []*unstructured.Unstructured{desired})
			var notOurs *NotOursError
			if errors.As(err, &notOurs) != tt.foreign || err != nil && !tt.foreign || applies != tt.applies {
				t.Fatalf("%v after %d requests, want %d and foreign %t", err, applies, tt.applies, tt.foreign)
			}
			if !tt.foreign && (len(changes) != 1 || changes[0].Action != tt.action || tt.action == Deleting && changes[0].UID != "a") {
				t.Errorf("told %v, want %v", changes, tt.action)
			}
		})
	}
}
