// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// mostShared is how many strings are kept to be shared, of longestShared bytes at most: 1 MiB.
const mostShared, longestShared = 4096, 253

var shared = struct {
	mu sync.Mutex
	by map[string]string
}{by: map[string]string{}}

// shareStrings has an object's metadata share with that of others the strings that are the same. A decoder makes a new one for each label
// of each object. The others are strings of the object besides.
func shareStrings(object metav1.Object, others ...*string) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	one := func(s string) string {
		if known, is := shared.by[s]; is {
			return known
		}
		if len(s) > longestShared {
			return s
		}
		if len(shared.by) >= mostShared { // what is common comes back at once
			clear(shared.by)
		}
		shared.by[s] = s
		return s
	}
	all := func(pairs map[string]string) map[string]string {
		if pairs == nil {
			return nil
		}
		same := make(map[string]string, len(pairs))
		for key, value := range pairs {
			same[one(key)] = one(value)
		}
		return same
	}
	for _, other := range others {
		*other = one(*other)
	}
	object.SetNamespace(one(object.GetNamespace()))
	object.SetLabels(all(object.GetLabels()))
	object.SetAnnotations(all(object.GetAnnotations()))
	references := object.GetOwnerReferences()
	for i := range references {
		r := &references[i]
		r.APIVersion, r.Kind, r.Name = one(r.APIVersion), one(r.Kind), one(r.Name)
		r.UID = types.UID(one(string(r.UID)))
	}
	object.SetOwnerReferences(references)
	entries := object.GetManagedFields()
	for i := range entries {
		e := &entries[i]
		e.Manager, e.APIVersion, e.FieldsType = one(e.Manager), one(e.APIVersion), one(e.FieldsType)
		e.Operation = metav1.ManagedFieldsOperationType(one(string(e.Operation)))
	}
	object.SetManagedFields(entries)
}
