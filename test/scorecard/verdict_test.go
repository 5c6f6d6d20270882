// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(content); err != nil { // numbers as the client reads them
		t.Fatal(err)
	}
	return object
}

func TestProgressOf(t *testing.T) {
	tests := map[string]struct {
		rest string
		want progress
	}{
		"new":           {`{}`, progress{says: "the operator has not looked at it"}},
		"no conditions": {`{status: {observedGeneration: 2}}`, progress{observed: true, says: "it has no condition Ready"}},
		"an older spec": {`{status: {observedGeneration: 1, conditions: [{type: Ready, status: "True"}]}}`,
			progress{observed: true, says: "the operator has seen generation 1, not 2 yet"}},
		"an older Ready": {`{status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", observedGeneration: 1}]}}`,
			progress{observed: true, says: "Ready is about generation 1, not 2 yet"}},
		"not ready": {
			`{status: {observedGeneration: 2, conditions: [{type: Deployed, status: "True"}, {type: Ready, status: "False", reason: Progressing, message: "0 of 1", observedGeneration: 2}]}}`, progress{observed: true, says: "Ready is False (Progressing): 0 of 1"}},
		"unknown": {`{status: {observedGeneration: 2, conditions: [{type: Ready, status: Unknown, reason: R, observedGeneration: 2}]}}`,
			progress{observed: true, says: "Ready is Unknown (R)"}},
		"ready": {
			`{status: {observedGeneration: 2, conditions: [{type: Ready, status: "True", reason: Serving, observedGeneration: 2}]}}`,
			progress{ready: true, observed: true, says: "Ready is True (Serving)"}},
		"a strange status":  {`{status: {observedGeneration: 2, conditions: [5]}}`, progress{observed: true, says: "it has no condition Ready"}},
		"conditions not so": {`{status: {observedGeneration: 2, conditions: no}}`, progress{observed: true, says: "it has no condition Ready"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			o := object(t, `{apiVersion: v1, kind: X, metadata: {name: x, generation: 2}}`)
			if status, ok := object(t, `{apiVersion: v1, kind: X, `+test.rest[1:]).Object["status"]; ok {
				o.Object["status"] = status
			}
			if got := progressOf(o); got != test.want {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestSuggestions(t *testing.T) {
	observed := func(says string) progress { return progress{observed: true, says: says} }
	tests := map[string]struct {
		last   progress
		events []corev1.Event
		want   []string
	}{
		"no operator": {last: progress{}, want: []string{"see that the operator runs and watches the namespace shop: kubectl get pods -A -l app.kubernetes.io/name=middleware-operator"}},
		"no right to Secrets": {last: observed("Ready is False (PasswordUnavailable): … kubectl create rolebinding …"),
			want: []string{"let the operator keep Secrets in this namespace: the message has the command"}},
		"an image that is not there, said twice": {last: observed("Ready is False (Forming)"),
			events: []corev1.Event{{Reason: "Failed", Message: "Error: ErrImagePull"}, {Reason: "Failed", Message: "Failed to pull image"}},
			want:   []string{"see that the nodes can pull the images of the example"}},
		"nothing known": {last: observed("Ready is False (Forming)"), events: []corev1.Event{{Reason: "Unhealthy", Message: "probe failed"}}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, suggestions(test.last, test.events, "shop")); diff != "" {
				t.Error(diff)
			}
		})
	}
}
