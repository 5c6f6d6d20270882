// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	encodingjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/json"
)

// Strict converts an object to its type. A field of the spec that the type does not know, one that is there twice, a value of the
// wrong type and a quantity that cannot be read are refused.
func Strict[T any](object *unstructured.Unstructured) (*T, field.ErrorList) {
	if refused := Quantities[T](object.Object); len(refused) > 0 {
		return nil, refused
	}
	encoded, err := object.MarshalJSON()
	if err != nil {
		return nil, field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, "cannot be read: "+err.Error())}
	}
	typed := new(T)
	if refused := Read(encoded, typed); len(refused) > 0 {
		return nil, refused
	}
	return typed, nil
}

// Read is Strict for an object as JSON. Where the decoder says which field is wrong, the refusal names it.
func Read(encoded []byte, typed any) field.ErrorList {
	unknown, err := json.UnmarshalStrict(encoded, typed)
	if err != nil {
		at := ""
		var wrong *encodingjson.UnmarshalTypeError
		if errors.As(err, &wrong) {
			at = wrong.Field
		}
		return field.ErrorList{refuse(at, fmt.Sprintf("has a value of the wrong type (%v); see the API reference for its type", err))}
	}
	var refused field.ErrorList
	for _, e := range unknown {
		_, quoted, _ := strings.Cut(e.Error(), " field ")
		at := strings.Trim(quoted, `"`)
		if !strings.HasPrefix(at, "spec") {
			continue // metadata and status are not what users are told about
		}
		refused = append(refused, refuse(at, fmt.Sprintf("holds an %v; see the API reference for the fields there are", e)))
	}
	return refused
}

// refuse names a field of the spec, or the spec.
func refuse(at, why string) *field.Error {
	if !strings.HasPrefix(at, "spec.") {
		at = "spec"
	}
	return field.Invalid(field.NewPath(at), field.OmitValueType{}, why)
}
