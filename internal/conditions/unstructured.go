// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Read returns status.conditions of an object. An entry that is not a condition (no type) is left out; Write keeps it.
func Read(object *unstructured.Unstructured) []metav1.Condition {
	var list []metav1.Condition
	for _, entry := range entries(object.Object) {
		c, ok := decode(entry)
		if ok {
			list = append(list, c)
		}
	}
	return list
}

// Write puts the conditions into status.conditions: entries of the same type are replaced in place,
// others, and fields of an entry that metav1.Condition does not know, are kept. The rest of the status is not touched.
func Write(object *unstructured.Unstructured, list []metav1.Condition) error {
	return WriteStatus(object.Object, list)
}

// WriteStatus is Write for the content of an object.
func WriteStatus(content map[string]any, list []metav1.Condition) error {
	old := entries(content)
	merged := make([]any, 0, len(old)+len(list))
	written := map[string]bool{}
	for _, entry := range old {
		have, ok := decode(entry)
		if !ok {
			merged = append(merged, entry)
			continue
		}
		c := meta.FindStatusCondition(list, have.Type)
		if c == nil || written[c.Type] {
			merged = append(merged, entry)
			continue
		}
		encoded, err := encode(*c, entry)
		if err != nil {
			return err
		}
		merged = append(merged, encoded)
		written[c.Type] = true
	}
	for _, c := range list {
		if written[c.Type] {
			continue
		}
		encoded, err := encode(c, nil)
		if err != nil {
			return err
		}
		merged = append(merged, encoded)
	}
	return unstructured.SetNestedSlice(content, merged, "status", "conditions")
}

func entries(content map[string]any) []any {
	status, _ := content["status"].(map[string]any)
	list, _ := status["conditions"].([]any)
	return list
}

// decode reads a condition; one with a field of another type, or without a type, is none. Integers are int64, as Kubernetes decodes JSON.
// Ten thousand objects with six each are read when metrics are asked for, so no field is looked for by reflection.
func decode(entry any) (c metav1.Condition, ok bool) {
	m, ok := entry.(map[string]any)
	text := func(field string) string {
		value, is := m[field].(string)
		ok = ok && (is || m[field] == nil)
		return value
	}
	c = metav1.Condition{Type: text("type"), Status: metav1.ConditionStatus(text("status")), Reason: text("reason"), Message: text("message")}
	if m["lastTransitionTime"] != nil {
		changed, err := time.Parse(time.RFC3339, text("lastTransitionTime"))
		ok = ok && err == nil
		c.LastTransitionTime = metav1.NewTime(changed.Local())
	}
	switch n := m["observedGeneration"].(type) {
	case nil:
	case int64:
		c.ObservedGeneration = n
	default:
		ok = false
	}
	if ok = ok && c.Type != ""; !ok {
		return metav1.Condition{}, false
	}
	return c, true
}

func encode(c metav1.Condition, over any) (map[string]any, error) {
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&c)
	if err != nil {
		return nil, fmt.Errorf("encode condition %s: %w", c.Type, err)
	}
	if c.ObservedGeneration == 0 {
		delete(m, "observedGeneration")
	}
	had, _ := over.(map[string]any)
	for k, v := range had {
		if _, known := conditionFields[k]; !known {
			m[k] = v
		}
	}
	return m, nil
}

var conditionFields = map[string]struct{}{
	"type": {}, "status": {}, "observedGeneration": {}, "lastTransitionTime": {}, "reason": {}, "message": {},
}
