// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// progress is how far an object is, from its status alone.
type progress struct {
	// ready reports whether Ready is True for the present spec.
	ready bool
	// observed reports whether the operator has written a status at all.
	observed bool
	// says is the state in one line.
	says string
}

// progressOf reads the conditions that every kind of the operator has.
func progressOf(object *unstructured.Unstructured) progress {
	generation := object.GetGeneration()
	observed, found, _ := unstructured.NestedInt64(object.Object, "status", "observedGeneration")
	if !found {
		return progress{says: "the operator has not looked at it"}
	}
	if observed < generation {
		return progress{observed: true, says: fmt.Sprintf("the operator has seen generation %d, not %d yet", observed, generation)}
	}
	list, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, entry := range list {
		condition, ok := entry.(map[string]any)
		if !ok || condition["type"] != "Ready" {
			continue
		}
		if of, ok := condition["observedGeneration"].(int64); ok && of < generation {
			return progress{observed: true, says: fmt.Sprintf("Ready is about generation %d, not %d yet", of, generation)}
		}
		says := fmt.Sprintf("Ready is %v (%v)", condition["status"], condition["reason"])
		if message, _ := condition["message"].(string); message != "" {
			says += ": " + message
		}
		return progress{ready: condition["status"] == "True", observed: true, says: says}
	}
	return progress{observed: true, says: "it has no condition Ready"}
}

// hint is what helps when the last state or an Event of a failed run contains a text.
type hint struct{ sign, remedy string }

var hints = []hint{
	{"rolebinding", "let the operator keep Secrets in this namespace: the message has the command"},
	{"ErrImagePull", "see that the nodes can pull the images of the example"},
	{"ImagePullBackOff", "see that the nodes can pull the images of the example"},
	{"Failed to pull image", "see that the nodes can pull the images of the example"},
	{"FailedScheduling",
		"the Events say what keeps pods from being scheduled: nodes with room for their requests, or volumes of the example's storage class"},
	{"FailedCreate", "the Events say what keeps pods from being created: a quota, or the namespace's pod security level"},
}

// suggestions are the remedies for what a failed run last saw.
func suggestions(last progress, events []corev1.Event, namespace string) []string {
	if !last.observed {
		return []string{
			fmt.Sprintf("see that the operator runs and watches the namespace %s: kubectl get pods -A -l app.kubernetes.io/name=middleware-operator",
				namespace)}
	}
	text := last.says
	for _, event := range events {
		text += "\n" + event.Reason + " " + event.Message
	}
	var list []string
	for _, h := range hints {
		if strings.Contains(text, h.sign) && !slices.Contains(list, h.remedy) {
			list = append(list, h.remedy)
		}
	}
	return list
}
