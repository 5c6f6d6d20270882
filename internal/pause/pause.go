// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pause says whether a person asked to leave an object and its children as they are. It reads the annotation as
// operator-lib's predicate does, which itself is not used: it keeps every event of a paused object from the controller, the one of
// its deletion too, so that nobody would learn that it is paused.
package pause

import (
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotation with a true value ("true", "1", …) pauses an object.
const Annotation = "middleware.hc.cn/pause"

// Reasons of the condition Paused.
const (
	ReasonPaused    = "PauseReconcileAnnotationTrue"
	ReasonNotPaused = "NotPaused"
)

// Asked reports whether the object is to be left as it is. What is neither true nor false pauses nothing.
func Asked(object metav1.Object) bool {
	asked, err := strconv.ParseBool(object.GetAnnotations()[Annotation])
	return err == nil && asked
}

// Message is that of the condition Paused.
func Message(object metav1.Object) string {
	value, set := object.GetAnnotations()[Annotation]
	if Asked(object) {
		return "annotation " + Annotation + " is true: nothing is changed"
	}
	if _, err := strconv.ParseBool(value); set && err != nil {
		return "the value of annotation " + Annotation + " is neither true nor false, and pauses nothing"
	}
	return ""
}
