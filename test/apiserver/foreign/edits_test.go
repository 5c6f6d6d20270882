// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package foreign

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// Every field that the operator sets on a child, and that the API server lets anybody change, is put back when somebody changes it;
// what they add beside it stays. All fields of one child are changed one after the other, and then looked at together.
func TestFieldsThatAreEdited(t *testing.T) {
	t.Parallel()
	for file := range kinds {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			resource, made := making(t, file)
			for _, child := range made {
				if child.GetKind() == "Secret" {
					continue // a change of the password is one that is asked for
				}
				t.Run(child.GetKind()+" "+child.GetName(), func(t *testing.T) {
					t.Parallel()
					edited(t, resource, child)
				})
			}
		})
	}
}

func edited(t *testing.T, resource, child *unstructured.Unstructured) {
	t.Helper()
	was := child.DeepCopy()
	owned := ownedFields(t, child)
	var changed [][]string
	for _, path := range owned {
		if child.GetKind() == "StatefulSet" && slices.Equal(path, []string{"spec", "replicas"}) {
			continue // instances that exist go in the plan's order, see TestStatefulSetScaledByHand
		}
		if change(t, child, path, client.DryRunAll) && change(t, child, path) {
			changed = append(changed, path)
		}
	}
	theirs := []string{"metadata", "annotations", "example.com/theirs"}
	environment.Check(t, api.Patch(context.Background(), child.DeepCopy(),
		client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"example.com/theirs":"yes"}}}`))))
	t.Logf("%d of %d fields were changed", len(changed), len(owned))
	if len(changed) < 2 {
		t.Errorf("of the fields %v only %v could be changed", owned, changed)
	}
	environment.Eventually(t, "the fields are put back", func() string {
		environment.Get(t, api, child)
		for _, path := range changed {
			if want, got := at(was.Object, path), at(child.Object, path); !reflect.DeepEqual(want, got) {
				return fmt.Sprintf("%s is %v, want %v; %s", strings.Join(path, "."), got, want, statusOf(t, resource))
			}
		}
		return ""
	})
	if at(child.Object, theirs) != "yes" {
		t.Error("what somebody added is gone")
	}
}

// change gives a field another value; it returns false if the API server refuses each.
func change(t *testing.T, child *unstructured.Unstructured, path []string, how ...client.PatchOption) bool {
	t.Helper()
	var others []any
	switch value := at(child.Object, path).(type) {
	case string:
		others = []any{value + "x", "77", "x" + value}
	case int64:
		others = []any{value + 1, max(value-1, 0)}
	case bool:
		others = []any{!value}
	}
	var pointer strings.Builder
	for _, step := range path {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(step))
	}
	for _, other := range others {
		patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": pointer.String(), "value": other}})
		environment.Check(t, err)
		how := append([]client.PatchOption{client.FieldOwner("another-client")}, how...)
		if api.Patch(context.Background(), child.DeepCopy(), client.RawPatch(types.JSONPatchType, patch), how...) == nil {
			return true
		}
	}
	return false
}

// ownedFields are the paths of the single values that the operator applied.
func ownedFields(t *testing.T, child *unstructured.Unstructured) [][]string {
	t.Helper()
	var paths [][]string
	for _, entry := range child.GetManagedFields() {
		if entry.Manager != apply.FieldManager || entry.Subresource != "" {
			continue
		}
		var fields map[string]any
		environment.Check(t, json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields))
		paths = append(paths, leaves(fields, child.Object, nil)...)
	}
	return paths
}

// leaves follows the form of managed fields: f: is a field, k: an item of a list by its keys.
func leaves(fields map[string]any, value any, path []string) (found [][]string) {
	inner := false
	for key, below := range fields {
		step := ""
		switch kind, name, _ := strings.Cut(key, ":"); kind {
		case "f":
			step = name
		case "k": // who changes what identifies an item removes it and adds one of theirs
			step = itemOf(value, name)
			below = withoutKeys(below.(map[string]any), name)
		}
		if step == "" {
			continue
		}
		inner = true
		found = append(found, leaves(below.(map[string]any), at(value, []string{step}), append(append([]string{}, path...), step))...)
	}
	if inner {
		return found
	}
	switch value.(type) {
	case string, int64, bool:
		return [][]string{path}
	}
	return nil
}

// withoutKeys leaves out the fields by which an item of a list is known.
func withoutKeys(item map[string]any, keys string) map[string]any {
	others := maps.Clone(item)
	maps.DeleteFunc(others, func(field string, _ any) bool {
		return strings.Contains(keys, strconv.Quote(strings.TrimPrefix(field, "f:"))+":")
	})
	return others
}

// itemOf is the index of the item of a list that has these keys.
func itemOf(list any, keys string) string {
	var wanted map[string]any
	items, _ := list.([]any)
	if json.Unmarshal([]byte(keys), &wanted) != nil {
		return ""
	}
	for i, item := range items {
		item, _ := item.(map[string]any)
		same := true
		for key, value := range wanted {
			same = same && fmt.Sprint(item[key]) == fmt.Sprint(value)
		}
		if same {
			return strconv.Itoa(i)
		}
	}
	return ""
}

// at is the value at a path; nil if there is none.
func at(value any, path []string) any {
	for _, step := range path {
		switch parent := value.(type) {
		case map[string]any:
			value = parent[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i >= len(parent) {
				return nil
			}
			value = parent[i]
		default:
			return nil
		}
	}
	return value
}
