// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// maxDuplicates bounds how often one object is sent again because of duplicates; the API server names all it finds at once.
const maxDuplicates = 3

// duplicateWording is between the list and the key in the API server's refusal of an apply (k8s.io structured-merge-diff):
// `.spec.template.spec.containers[name="web"].env: duplicate entries for key [name="A"]`.
const duplicateWording = ": duplicate entries for key ["

// duplicate names elements that a list has more than once.
type duplicate struct {
	list string
	key  map[string]any // by field; of a set of values, the value under ""
}

// duplicatesIn reads the duplicates that a refusal names.
func duplicatesIn(refusal error) []duplicate {
	if !isMalformed(refusal) {
		return nil
	}
	var found []duplicate
	for line := range strings.Lines(refusal.Error()) {
		list, key, ok := strings.Cut(line, duplicateWording)
		if !ok {
			continue
		}
		list = list[strings.LastIndex(list, " ")+1:]
		found = append(found, duplicate{list: list, key: keyIn(key)})
	}
	return found
}

// keyIn reads `containerPort=80,protocol="TCP"]`, and `="value"]` of a set.
func keyIn(text string) map[string]any {
	key := map[string]any{}
	for {
		name, rest, _ := strings.Cut(text, "=")
		decoder := json.NewDecoder(strings.NewReader(rest))
		var value any
		if decoder.Decode(&value) != nil {
			return key
		}
		key[name] = value
		text = strings.TrimPrefix(rest[decoder.InputOffset():], ",")
	}
}

// withoutDuplicates returns a copy of an object in which each list has the elements that a refusal names only once, as Kubernetes
// itself understands them: of several values of an environment variable the last counts, and identical elements are one. Others
// contradict each other: the error says which. Helm lets charts render duplicates because a create and a patch take them.
func withoutDuplicates(object *unstructured.Unstructured, duplicates []duplicate) (*unstructured.Unstructured, error) {
	single := object.DeepCopy()
	for _, d := range duplicates {
		path := pathOf(d.list)
		if len(path) == 0 || !d.thin(single.Object, path) {
			return nil, fmt.Errorf("the chart renders different elements of one key (%s) in %s; take all but one out", d.keyText(),
				strings.TrimPrefix(d.list, "."))
		}
	}
	return single, nil
}

// thin removes the duplicates from the lists at a path. It returns false if they contradict each other.
func (d duplicate) thin(at map[string]any, path []string) bool {
	list, isList := at[path[0]].([]any)
	if len(path) == 1 {
		thinned, ok := d.once(list, path[0] == "env")
		if isList {
			at[path[0]] = thinned
		}
		return ok
	}
	if next, isObject := at[path[0]].(map[string]any); isObject {
		return d.thin(next, path[1:])
	}
	for _, item := range list {
		next, _ := item.(map[string]any)
		if len(path) > 2 && !d.thin(next, path[2:]) {
			return false
		}
	}
	return true
}

// once keeps the last of the elements that have the key.
func (d duplicate) once(list []any, lastCounts bool) (kept []any, ok bool) {
	var last any
	for _, item := range slices.Backward(list) {
		if !d.is(item) || last == nil {
			kept = append(kept, item)
			if d.is(item) {
				last = item
			}
			continue
		}
		if !lastCounts && !reflect.DeepEqual(item, last) {
			return list, false
		}
	}
	slices.Reverse(kept)
	return kept, true
}

// is reports whether an element has the key. A field of it that is not rendered has its default, which the key shows.
func (d duplicate) is(item any) bool {
	if value, isSet := d.key[""]; isSet {
		return reflect.DeepEqual(item, value)
	}
	object, isObject := item.(map[string]any)
	if !isObject || len(d.key) == 0 {
		return false
	}
	for name, value := range d.key {
		if has, rendered := object[name]; rendered && fmt.Sprint(has) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

func (d duplicate) keyText() string {
	var parts []string
	for name, value := range d.key {
		parts = append(parts, fmt.Sprintf("%s: %v", name, value))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}
