// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldSet is a set of fields as metadata.managedFields writes it (FieldsV1): nested objects whose keys are "f:" and a field, or
// "k:" and the keys of a list's element.
type fieldSet map[string]any

// fieldsOf reads the set of an entry; nil if it has none that can be read.
func fieldsOf(entry metav1.ManagedFieldsEntry) fieldSet {
	var fields fieldSet
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
		return nil
	}
	return fields
}

// has reports whether a field is in the set. The path is written as in the set: "f:spec", "f:replicas".
func (s fieldSet) has(path ...string) bool {
	var at any = map[string]any(s)
	for _, step := range path {
		fields, _ := at.(map[string]any)
		if at = fields[step]; at == nil {
			return false
		}
	}
	return true
}

// at is the set below a field.
func (s fieldSet) at(path ...string) fieldSet {
	at := map[string]any(s)
	for _, step := range path {
		at, _ = at[step].(map[string]any)
	}
	return at
}

// add puts the fields of another set into this one.
func (s fieldSet) add(other fieldSet) {
	for step, theirs := range other {
		mine, both := s[step].(map[string]any)
		if !both {
			s[step] = theirs
			continue
		}
		if nested, ok := theirs.(map[string]any); ok {
			fieldSet(mine).add(nested)
		}
	}
}

// remove takes a field out of the set. The path is written as in the set.
func (s fieldSet) remove(path ...string) {
	at := map[string]any(s)
	for _, step := range path[:len(path)-1] {
		at, _ = at[step].(map[string]any)
	}
	delete(at, path[len(path)-1])
}

// isOwn reports whether an entry is that of our applies.
func isOwn(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply && entry.Subresource == ""
}

// isSettled reports whether an entry is of what resolveConflict writes before it applies. It is folded into our own at once, unless the
// process ends in between.
func isSettled(entry metav1.ManagedFieldsEntry) bool {
	return entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationUpdate && entry.Subresource == ""
}

// ownFields is the set of fields we own by having applied them; nil if there are none.
func ownFields(entries []metav1.ManagedFieldsEntry) fieldSet {
	i := slices.IndexFunc(entries, isOwn)
	if i < 0 {
		return nil
	}
	return fieldsOf(entries[i])
}

// Owned are the names of the fields that the operator owns below a field of an object by having applied them: whoever changes or removes
// one takes it away. It is known only for the security contexts of pod templates in objects of a cache that TrimManagedFields trims; known
// is false if nothing of the object is the operator's.
func Owned(object metav1.Object, path ...string) (names []string, known bool) {
	own := ownFields(object.GetManagedFields())
	steps := make([]string, len(path))
	for i, name := range path {
		steps[i] = "f:" + name
	}
	for step := range own.at(steps...) {
		if name, isField := strings.CutPrefix(step, "f:"); isField {
			names = append(names, name)
		}
	}
	return names, own != nil
}

// fieldsDigest is the digest of the set of fields we own, as the API server keeps it: whoever changes or removes one of them
// takes it out of that set. It is empty if we own nothing. The set is JSON whose keys the API server orders by value and Go
// by text, and an answer that went through a map has lost the former: so the digest is of Go's order.
func fieldsDigest(entries []metav1.ManagedFieldsEntry) string {
	i := slices.IndexFunc(entries, isOwn)
	if i < 0 {
		return ""
	}
	return fieldsOf(entries[i]).digest(entries[i].APIVersion)
}

func (s fieldSet) digest(apiVersion string) string {
	if s == nil {
		return ""
	}
	if known := s.fromCompact(); known != "" {
		return known
	}
	ordered, err := json.Marshal(s)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(append([]byte(apiVersion+"\n"), ordered...))
	return hex.EncodeToString(sum[:])
}

// markOf tells one apply of ours from the next: it is the digest of the set of fields we own and of the time (whole seconds) at
// which we last changed the object. Unlike fieldsDigest it differs when values changed and fields did not. It is empty if we
// own nothing. 32 hexadecimal digits are plenty against accidents, and go into a status for each child.
func markOf(entries []metav1.ManagedFieldsEntry) string {
	fields := fieldsDigest(entries)
	if fields == "" {
		return ""
	}
	var at int64
	if entry := entries[slices.IndexFunc(entries, isOwn)]; entry.Time != nil {
		at = entry.Time.Unix()
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", fields, at))
	return hex.EncodeToString(sum[:16])
}

// fold makes the fields of some entries our own, as if we had applied them: what we do not apply the next time is then removed
// from the object. Helm's own annotations become nobody's and stay: their removal would count as a new generation of a
// Deployment. Entries written in another version of the API than our own (or than the first of them) stay, because their
// fields may have other names there. It returns nil if there is nothing to fold.
func fold(entries []metav1.ManagedFieldsEntry, theirs func(metav1.ManagedFieldsEntry) bool) ([]metav1.ManagedFieldsEntry, error) {
	target := slices.IndexFunc(entries, isOwn)
	if target < 0 {
		target = slices.IndexFunc(entries, theirs)
	}
	if target < 0 {
		return nil, nil
	}
	own, fields, changed := entries[target], fieldSet{}, false
	var rest []metav1.ManagedFieldsEntry
	for i, entry := range entries {
		if i != target && (!theirs(entry) || entry.APIVersion != own.APIVersion) {
			rest = append(rest, entry)
			continue
		}
		fields.add(fieldsOf(entry))
		changed = changed || !isOwn(entry)
	}
	if !changed {
		return nil, nil
	}
	for _, annotation := range helmAnnotations {
		fields.remove("f:metadata", "f:annotations", "f:"+annotation)
	}
	// Who owns the map itself, which an empty set means too, and applies none removes all of it.
	fields.remove("f:metadata", "f:annotations", ".")
	if len(fields.at("f:metadata", "f:annotations")) == 0 {
		fields.remove("f:metadata", "f:annotations")
	}
	encoded, err := json.Marshal(fields)
	if err != nil {
		return nil, fmt.Errorf("encode the fields of %s: %w", own.Manager, err)
	}
	own.Manager, own.Operation, own.FieldsV1 = FieldManager, metav1.ManagedFieldsOperationApply, metav1.NewFieldsV1(string(encoded))
	return append(rest, own), nil
}
