// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"strings"
	"testing"

	"github.com/operator-framework/operator-lib/predicate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestAsked(t *testing.T) {
	theirs, err := predicate.NewPause[client.Object](Annotation)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[string]struct {
		asked   bool
		message string
	}{
		"true":                     {true, "is true: nothing is changed"},
		"True":                     {true, "is true: nothing is changed"},
		"1":                        {true, "is true: nothing is changed"},
		"false":                    {false, ""},
		"0":                        {false, ""},
		"yes":                      {false, "is neither true nor false"},
		"":                         {false, "is neither true nor false"},
		strings.Repeat("x", 1<<18): {false, "is neither true nor false"},
	} {
		object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{Annotation: value}}}
		asked, message := Asked(object), Message(object)
		if asked != want.asked || !strings.Contains(message, want.message) || (message == "") != (want.message == "") || len(message) > 200 {
			t.Errorf("%.10q: asked %v, %.200q", value, asked, message)
		}
		if passes := theirs.Generic(event.TypedGenericEvent[client.Object]{Object: object}); passes == asked {
			t.Errorf("%.10q: operator-lib reads it otherwise", value)
		}
	}
	if none := (&metav1.PartialObjectMetadata{}); Asked(none) || Message(none) != "" {
		t.Error("paused without the annotation")
	}
}
