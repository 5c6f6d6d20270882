// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions adds to apimachinery's functions on lists of metav1.Condition what those leave out (a clock that is given,
// limits of the API server, comparing), and reads and writes such lists in the status of
// unstructured objects without touching what others keep there.
package conditions

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxMessage is the length at which metav1.Condition refuses a message.
const maxMessage = 32768

// Condition is short for making one: status True, False or Unknown, a CamelCase reason and a sentence.
func Condition(conditionType string, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: conditionType, Status: status, Reason: reason, Message: message}
}

// Status turns a bool into a condition status.
func Status(holds bool) metav1.ConditionStatus {
	if holds {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// Set returns the list with the given conditions in it; the list that was passed is not changed. A condition keeps its
// lastTransitionTime as long as its status does not change; now is the time of those that did. Conditions of other types
// stay where they are. An empty reason, which the API server refuses, becomes the condition's type.
func Set(list []metav1.Condition, now time.Time, observedGeneration int64, set ...metav1.Condition) []metav1.Condition {
	result := slices.Clone(list)
	for _, c := range set {
		c.ObservedGeneration = observedGeneration
		c.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
		if c.Reason == "" {
			c.Reason = c.Type
		}
		if len(c.Message) > maxMessage {
			c.Message = c.Message[:maxMessage-3] + "..."
		}
		if was := meta.FindStatusCondition(result, c.Type); was != nil && was.LastTransitionTime.IsZero() {
			was.LastTransitionTime = c.LastTransitionTime // the API server refuses one without
		}
		meta.SetStatusCondition(&result, c)
	}
	return result
}

// Differ reports whether two lists say different things. The order of conditions does not count; times do, to the second,
// which is what the API server keeps.
func Differ(a, b []metav1.Condition) bool {
	if len(a) != len(b) {
		return true
	}
	for i := range a {
		other := meta.FindStatusCondition(b, a[i].Type)
		if other == nil || !equality.Semantic.DeepEqual(atSecond(a[i]), atSecond(*other)) {
			return true
		}
	}
	return false
}

func atSecond(c metav1.Condition) metav1.Condition {
	c.LastTransitionTime = metav1.NewTime(c.LastTransitionTime.UTC().Truncate(time.Second))
	return c
}
