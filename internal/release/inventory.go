// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/watches"
)

// The fields of status that belong to the engine. api/chart/v1 describes them.
const (
	fieldConditions         = "conditions"
	fieldDeployedRelease    = "deployedRelease"
	fieldInventory          = "inventory"
	fieldHooks              = "hooks"
	fieldObservedGeneration = "observedGeneration"

	fieldTurn = "turn" // of deployedRelease
)

func toUnstructured(object any) (map[string]any, error) {
	return runtime.DefaultUnstructuredConverter.ToUnstructured(object)
}

func fromUnstructured(content map[string]any, object any) error {
	return runtime.DefaultUnstructuredConverter.FromUnstructured(content, object)
}

func readDeployed(cr *unstructured.Unstructured) Deployed {
	m, _, _ := unstructured.NestedMap(cr.Object, "status", fieldDeployedRelease)
	var d Deployed
	d.Name, _ = m["name"].(string)
	d.Revision, _ = m["revision"].(int64)
	d.Digest, _ = m["digest"].(string)
	d.Revision = min(max(d.Revision, 0), math.MaxInt32) // what else a status says is none that was ever deployed
	d.Chart, _ = m["chart"].(string)
	d.Spec, _ = m["spec"].(string)
	turn, _ := m[fieldTurn].(map[string]any)
	d.Turn = readTurn(turn)
	return d
}

func readTurn(m map[string]any) (t Turn) {
	t.Chart, _ = m["chart"].(string)
	t.Spec, _ = m["spec"].(string)
	t.Wave, _ = m["wave"].(int64)
	t.Wave = min(max(t.Wave, 0), math.MaxInt32)
	t.At, t.DoneAt = readTime(m["time"]), readTime(m["doneTime"])
	return t
}

// readTime is the zero time for what is none.
func readTime(value any) time.Time {
	text, _ := value.(string)
	at, _ := time.Parse(time.RFC3339, text)
	return at.UTC()
}

func (d Deployed) write() any {
	m := map[string]any{"name": d.Name, "revision": d.Revision, "digest": d.Digest}
	if d.Chart != "" {
		m["chart"], m["spec"] = d.Chart, d.Spec
	}
	if t := d.Turn; t.Chart != "" {
		turn := map[string]any{"chart": t.Chart, "spec": t.Spec, "wave": t.Wave, "time": t.At.UTC().Format(time.RFC3339)}
		if !t.DoneAt.IsZero() {
			turn["doneTime"] = t.DoneAt.UTC().Format(time.RFC3339)
		}
		m[fieldTurn] = turn
	}
	return m
}

// readProgress reads status.hooks.
func readProgress(cr *unstructured.Unstructured) Progress {
	m, _, _ := unstructured.NestedMap(cr.Object, "status", fieldHooks)
	var p Progress
	p.Event, _ = m["event"].(string)
	p.Revision, _ = m["revision"].(int64)
	p.Digest, _ = m["digest"].(string)
	p.Completed, _ = m["completed"].(int64)
	p.Failures, _ = m["failures"].(int64)
	p.Message, _ = m["message"].(string)
	p.FailedAt = readTime(m["failedAt"]) // nonsense is the zero time: tried again at once
	p.Completed, p.Failures = max(p.Completed, 0), max(p.Failures, 0)
	return p
}

func (p Progress) write() any {
	m := map[string]any{"event": p.Event, "revision": p.Revision, "digest": p.Digest, "completed": p.Completed}
	if p.Failures > 0 {
		m["failures"], m["message"], m["failedAt"] = p.Failures, p.Message, p.FailedAt.UTC().Format(time.RFC3339)
	}
	return m
}

// readInventory reads status.inventory. Only objects where the watch lets a resource make any are believed: whoever may write
// a status does not thereby point the operator elsewhere.
func readInventory(cr *unstructured.Unstructured, allow watches.Allow) []apply.Known {
	list, _, _ := unstructured.NestedSlice(cr.Object, "status", fieldInventory)
	var inventory []apply.Known
	for _, entry := range list {
		m, _ := entry.(map[string]any) // what is none has no name
		text := func(key string) string { s, _ := m[key].(string); return s }
		ref := apply.Ref{
			GroupVersionKind: schema.GroupVersionKind{Group: text("group"), Version: text("version"), Kind: text("kind")},
			Namespace:        text("namespace"), Name: text("name"), UID: types.UID(text("uid")),
		}
		if ref.Kind == "" || ref.Version == "" || ref.Name == "" || !mayReach(cr, allow, ref.Namespace) {
			continue
		}
		inventory = append(inventory, apply.Known{Ref: ref, Fields: text("fields")})
	}
	return inventory
}

// mayReach reports whether a resource may have objects in a namespace; the empty one stands for cluster-scoped objects.
func mayReach(cr *unstructured.Unstructured, allow watches.Allow, namespace string) bool {
	switch {
	case namespace == cr.GetNamespace():
		return true
	case namespace == "":
		return allow.ClusterScoped
	default:
		return slices.Contains(allow.Namespaces, namespace) || slices.Contains(allow.Namespaces, "*")
	}
}

func writeInventory(inventory []apply.Known) any {
	list := make([]any, 0, len(inventory))
	for _, known := range inventory {
		entry := map[string]any{"version": known.Version, "kind": known.Kind, "name": known.Name}
		for key, value := range map[string]string{"group": known.Group, "namespace": known.Namespace, "uid": string(known.UID),
			"fields": known.Fields} {
			if value != "" {
				entry[key] = value
			}
		}
		list = append(list, entry)
	}
	return list
}

// union returns old and, after it, what of more is not in it.
func union(old []apply.Known, more []apply.Ref) []apply.Known {
	all := slices.Clone(old)
	for _, ref := range more {
		if !slices.ContainsFunc(all, func(known apply.Known) bool { return known.Same(ref) }) {
			all = append(all, apply.Known{Ref: ref})
		}
	}
	return all
}

func refsIn(inventory []apply.Known) []apply.Ref {
	refs := make([]apply.Ref, 0, len(inventory))
	for _, known := range inventory {
		refs = append(refs, known.Ref)
	}
	return refs
}
