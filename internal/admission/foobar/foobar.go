// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package foobar sets the defaults of a FooBar and says what is wrong with one.
// The webhook and the operator call the same functions.
package foobar

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	foobarv1 "middleware.hc.cn/operator/api/foobar/v1"
	"middleware.hc.cn/operator/internal/admission/images"
	"middleware.hc.cn/operator/internal/admission/rules"
)

const (
	// maxName leaves room for the 11 characters that the Job's name appends: a name
	// that becomes a label has at most 63.
	maxName = 52
	// maxFoo and maxCommand are the lengths that the schema gives too.
	maxFoo     = 4096
	maxCommand = 16384
)

// DefaultImage writes the default image into a FooBar that names none, at its making. On an
// update it keeps what the object had, so that a default that has moved runs no command again.
func DefaultImage(before, f *foobarv1.FooBar, image string) {
	if f.Spec.Image == "" && before != nil {
		f.Spec.Image = before.Spec.Image
	}
	if f.Spec.Image == "" {
		f.Spec.Image = image
	}
}

// Default sets what the CRD's schema and the chart set too; a test holds them together.
func Default(f *foobarv1.FooBar) {
	if f.Spec.Barz == "" {
		f.Spec.Barz = "false"
	}
	if f.Spec.Image == "" {
		f.Spec.Image = images.FooBar
	}
}

// Validate says everything that is wrong with a FooBar.
func Validate(f *foobarv1.FooBar) field.ErrorList {
	spec, at := &f.Spec, field.NewPath("spec")
	var refused field.ErrorList
	if len(f.Name) > maxName {
		refused = append(refused, field.Invalid(field.NewPath("metadata", "name"), f.Name,
			fmt.Sprintf("must have at most %d characters, because the name of its Job appends 11; choose a shorter name", maxName)))
	}
	if len(spec.Foo) > maxFoo {
		refused = append(refused, field.TooLongMaxLength(at.Child("foo"), spec.Foo, maxFoo))
	}
	refused = append(refused, rules.Text(at.Child("foo"), spec.Foo)...)
	refused = append(refused, rules.OneOf(at.Child("barz"), spec.Barz, "true", "false")...)
	if strings.TrimSpace(spec.Command) == "" {
		refused = append(refused, field.Required(at.Child("command"), "write a shell command, such as \"echo foobar\""))
	}
	if len(spec.Command) > maxCommand {
		refused = append(refused, field.TooLongMaxLength(at.Child("command"), spec.Command, maxCommand))
	}
	refused = append(refused, rules.Text(at.Child("command"), spec.Command)...)
	if spec.Image != "" { // the default sets an empty one
		refused = append(refused, rules.Image(at.Child("image"), spec.Image)...)
	}
	refused = append(refused, rules.Placement(at, spec.PodPlacement)...)
	refused = append(refused, rules.PodVolumes(at, spec.PodVolumes)...)
	return refused
}

// ValidateUpdate says everything that is wrong with a change. Every field may
// change.
func ValidateUpdate(_, updated *foobarv1.FooBar) field.ErrorList { return Validate(updated) }

// Warnings says what is allowed and probably not meant.
func Warnings(f *foobarv1.FooBar) []string {
	return rules.UntaggedImage(field.NewPath("spec", "image"), f.Spec.Image)
}
