// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rules

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Env checks environment variables of a container.
func Env(at *field.Path, vars []corev1.EnvVar) field.ErrorList {
	var refused field.ErrorList
	seen := map[string]bool{}
	for i, v := range vars {
		at := at.Index(i)
		if v.Name == "" {
			refused = append(refused, field.Required(at.Child("name"), "name the environment variable"))
		}
		if seen[v.Name] {
			refused = append(refused, field.Duplicate(at.Child("name"), v.Name))
		}
		seen[v.Name] = true
		for _, problem := range validation.IsRelaxedEnvVarName(v.Name) {
			if v.Name != "" {
				refused = append(refused, field.Invalid(at.Child("name"), v.Name, problem))
			}
		}
		refused = append(refused, Text(at.Child("value"), v.Value)...)
		if v.Value != "" && v.ValueFrom != nil {
			refused = append(refused, field.Forbidden(at.Child("valueFrom"), "a variable has a value or a valueFrom; remove one"))
		}
	}
	return refused
}

// EnvFrom checks where a container has further variables from.
func EnvFrom(at *field.Path, sources []corev1.EnvFromSource) field.ErrorList {
	var refused field.ErrorList
	for i, s := range sources {
		if (s.ConfigMapRef == nil) == (s.SecretRef == nil) {
			refused = append(refused, field.Invalid(at.Index(i), field.OmitValueType{}, "must name either a configMapRef or a secretRef"))
		}
	}
	return refused
}
