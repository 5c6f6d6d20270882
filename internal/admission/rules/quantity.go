// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxQuantity is how long the text of a quantity may be; the largest that Kubernetes computes with has 19 digits.
const maxQuantity = 64

var (
	quantityType = reflect.TypeFor[resource.Quantity]()
	// longExponent: an exponent of two digits is more than any quantity needs.
	longExponent = regexp.MustCompile(`[eE][+-]?[0-9]{3}`)
)

// Quantities refuses what takes for ever to read as T: resource.Quantity writes out all digits of 1e1000000000 before it looks at
// its size. It must be asked before an object of users is decoded. Object is its JSON; keys count whatever their case, as they do
// for encoding/json.
func Quantities[T any](object map[string]any) field.ErrorList {
	return quantities(nil, reflect.TypeFor[T](), object)
}

func quantities(at *field.Path, as reflect.Type, value any) (refused field.ErrorList) {
	for as.Kind() == reflect.Pointer {
		as = as.Elem()
	}
	switch value := value.(type) {
	case string:
		if as == quantityType && (len(value) > maxQuantity || longExponent.MatchString(value)) {
			return field.ErrorList{field.Invalid(at, fmt.Sprintf("%.*s", maxQuantity, value),
				"is no quantity that can be read in time; write one such as 500m or 10Gi")}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if as.Kind() == reflect.Map {
				refused = append(refused, quantities(at.Key(name), as.Elem(), value[name])...)
			} else if known := fieldOf(as, name); known != nil {
				refused = append(refused, quantities(below(at, name), known, value[name])...)
			}
		}
	case []any:
		if as.Kind() == reflect.Slice {
			for i := range value {
				refused = append(refused, quantities(at.Index(i), as.Elem(), value[i])...)
			}
		}
	}
	return refused
}

// below is the path of a field of what is at a path; nil is the object itself.
func below(at *field.Path, name string) *field.Path {
	if at == nil {
		return field.NewPath(name)
	}
	return at.Child(name)
}

// fieldOf is the type of the field that JSON calls by a name; nil if there is none, or no struct.
func fieldOf(as reflect.Type, name string) reflect.Type {
	if as.Kind() != reflect.Struct {
		return nil
	}
	for i := range as.NumField() {
		f := as.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" {
			inline := f.Type
			if inline.Kind() == reflect.Pointer {
				inline = inline.Elem()
			}
			if known := fieldOf(inline, name); known != nil {
				return known
			}
			continue
		}
		if strings.EqualFold(tag, name) {
			return f.Type
		}
	}
	return nil
}
