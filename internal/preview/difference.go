// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"github.com/pmezard/go-difflib/difflib"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/apply"
)

// contextLines are the equal lines shown around a change.
const contextLines = 3

// difference is the unified diff of an object, empty if there is none. Nil is an object that is not there.
func difference(ref apply.Ref, before, after *unstructured.Unstructured) (string, error) {
	before, after = comparable(before), comparable(after)
	mask(before, after)
	from, err := text(before)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", ref, err)
	}
	to, err := text(after)
	if err != nil {
		return "", fmt.Errorf("encode %s: %w", ref, err)
	}
	name := func(object *unstructured.Unstructured, side string) string {
		if object == nil {
			return side + " (no " + ref.String() + ")"
		}
		return side + " " + ref.String()
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: lines(from), B: lines(to), Context: contextLines,
		FromFile: name(before, "live"), ToFile: name(after, "rendered")})
}

func lines(text string) []string {
	if text == "" {
		return nil
	}
	split := difflib.SplitLines(text)
	return split[:len(split)-1] // the last is empty: the text ends with a newline
}

func text(object *unstructured.Unstructured) (string, error) {
	if object == nil {
		return "", nil
	}
	encoded, err := yaml.Marshal(object.Object)
	return string(encoded), err
}

// comparable returns a copy without what the API server and controllers write into it.
func comparable(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return nil
	}
	object = object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "status")
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return object
}

// mask hides the values of a Secret; where they differ that is still to be seen.
func mask(before, after *unstructured.Unstructured) {
	if !isSecret(before) && !isSecret(after) {
		return
	}
	for _, path := range [][]string{{"data"}, {"stringData"}, {"metadata", "annotations"}} {
		old, next := entries(before, path), entries(after, path)
		for _, key := range slices.Sorted(maps.Keys(merged(old, next))) {
			if len(path) > 1 && key != corev1.LastAppliedConfigAnnotation { // the only annotation that repeats the values
				continue
			}
			hide(old, next, key)
		}
	}
}

func hide(old, next map[string]any, key string) {
	was, had := old[key]
	is, has := next[key]
	differs := had && has && !reflect.DeepEqual(was, is)
	for side, values := range map[string]map[string]any{"before": old, "after": next} {
		if _, found := values[key]; !found {
			continue
		}
		values[key] = "***"
		if differs {
			values[key] = "*** (" + side + ")"
		}
	}
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GroupVersionKind().GroupKind() == corev1.SchemeGroupVersion.WithKind("Secret").GroupKind()
}

// entries is the map at a path of an object, not a copy; nil if there is none.
func entries(object *unstructured.Unstructured, path []string) map[string]any {
	if object == nil {
		return nil
	}
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	values, _ := found.(map[string]any)
	return values
}

func merged(a, b map[string]any) map[string]any {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]any{}
	}
	maps.Copy(all, b)
	return all
}
