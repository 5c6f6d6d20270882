// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Size is how large a part of an object is, which decides what it costs to render: the bytes of its JSON, and the entries of
// its lists and maps at any depth, each of which costs about as much as a hundred bytes.
type Size struct{ Bytes, Entries int }

// SizeOf measures what can be written as JSON.
func SizeOf(part any) Size {
	encoded, err := json.Marshal(part)
	if err != nil {
		return Size{} // what came out of JSON goes back into it
	}
	return Size{Bytes: len(encoded), Entries: entries(encoded)}
}

// entries counts the items and fields of compact JSON: one behind each comma, and one in each list or map that is not empty.
func entries(encoded []byte) int {
	n, inText := 0, false
	for i := 0; i < len(encoded); i++ {
		switch c := encoded[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == ',', (c == '{' || c == '[') && encoded[i+1] != '}' && encoded[i+1] != ']':
			n++
		}
	}
	return n
}

// Times is the size of so many copies.
func (s Size) Times(copies int) Size { return Size{s.Bytes * copies, s.Entries * copies} }

// Within reports whether a size is within a limit.
func (s Size) Within(limit Size) bool { return s.Bytes <= limit.Bytes && s.Entries <= limit.Entries }

func (s Size) String() string { return fmt.Sprintf("%d bytes in %d entries", s.Bytes, s.Entries) }

// AtMost refuses a part that is larger than a limit.
func AtMost(at *field.Path, part any, limit Size) field.ErrorList {
	size := SizeOf(part)
	if size.Within(limit) {
		return nil
	}
	return field.ErrorList{
		field.Invalid(at, size.String(),
			fmt.Sprintf("must be at most %s (of lists and maps, at any depth): what is made of it keeps the operator busy for others; shorten it, "+
				"or put large texts into a ConfigMap that the pods mount", limit))}
}
