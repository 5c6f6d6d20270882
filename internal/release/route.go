// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"cmp"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"middleware.hc.cn/operator/internal/conditions"
)

// parentRef is what an HTTPRoute is attached to, as its spec and its status name it. Controllers may write out in the status what
// the spec leaves to defaults.
type parentRef struct {
	kind, namespace, name, sectionName string
	port                               int64
}

func parentOf(entry any, namespace string) parentRef {
	m, _ := entry.(map[string]any)
	text := func(key string) string { s, _ := m[key].(string); return s }
	port, _ := m["port"].(int64)
	return parentRef{kind: cmp.Or(text("kind"), "Gateway"), namespace: cmp.Or(text("namespace"), namespace), name: text("name"),
		sectionName: text("sectionName"), port: port}
}

// routeReadiness asks that each Gateway the route names has accepted it. The Gateway API has their controllers say so in the route's
// status.
func routeReadiness(o *unstructured.Unstructured) readiness {
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "parentRefs")
	answers, _, _ := unstructured.NestedSlice(o.Object, "status", "parents")
	for _, ref := range refs {
		wanted := parentOf(ref, o.GetNamespace())
		state := waiting("has no answer from %s %s/%s: is it there, and does a controller run it?", wanted.kind, wanted.namespace, wanted.name)
		for _, entry := range answers {
			answer, _ := entry.(map[string]any)
			if state.progress != ready && parentOf(answer["parentRef"], o.GetNamespace()) == wanted {
				state = answerReadiness(answer, wanted, o.GetGeneration())
			}
		}
		if state.progress != ready {
			return state
		}
	}
	return isReady
}

// answerReadiness reads what one controller says about one parent of a route.
func answerReadiness(answer map[string]any, of parentRef, generation int64) readiness {
	said := conditions.Read(&unstructured.Unstructured{Object: map[string]any{"status": answer}})
	for _, name := range []string{"Accepted", "ResolvedRefs"} {
		c := meta.FindStatusCondition(said, name)
		switch {
		case c == nil, c.ObservedGeneration != 0 && c.ObservedGeneration < generation:
			return waiting("has no answer from %s %s/%s since it changed", of.kind, of.namespace, of.name)
		case c.Status != metav1.ConditionTrue:
			return waiting("is not accepted by %s %s/%s: %s: %s", of.kind, of.namespace, of.name, c.Reason, c.Message)
		}
	}
	return isReady
}
