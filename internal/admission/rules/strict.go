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

// Strict converts an object to its type. A field that the type does not know, one
// that is there twice, a value of the wrong type and a quantity that cannot be read are refused.
func Strict[T any](object *unstructured.Unstructured) (*T, field.ErrorList) {
	if refused := Quantities[T](object.Object); len(refused) > 0 {
		return nil, refused
	}
	encoded, err := object.MarshalJSON()
	if err != nil {
		return nil, refuse(fmt.Errorf("cannot be read: %w", err))
	}
	typed := new(T)
	unknown, err := json.UnmarshalStrict(encoded, typed)
	if err != nil {
		return nil, Mistyped(err)
	}
	var refused field.ErrorList
	for _, e := range unknown {
		refused = append(refused, refuse(fmt.Errorf("holds an %w; see the API reference for the fields there are", e))...)
	}
	if refused != nil {
		return nil, refused
	}
	return typed, nil
}

// Mistyped refuses an object that could not be read as its type. It names the field if the error of the decoder does.
func Mistyped(err error) field.ErrorList {
	at := field.NewPath("spec")
	var wrong *encodingjson.UnmarshalTypeError
	if errors.As(err, &wrong) && strings.HasPrefix(wrong.Field, "spec.") {
		at = field.NewPath(wrong.Field)
	}
	return field.ErrorList{
		field.Invalid(at, field.OmitValueType{}, fmt.Sprintf("has a value of the wrong type (%v); see the API reference for its type", err))}
}

func refuse(err error) field.ErrorList {
	return field.ErrorList{field.Invalid(field.NewPath("spec"), field.OmitValueType{}, err.Error())}
}
