// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// World is a part of an API server: the objects of some kinds in some namespaces.
type World struct {
	API        client.Client
	Kinds      []schema.GroupVersionKind
	Namespaces []string
	// Normalise takes out of an object what differs between two runs that are alike, besides what always does.
	Normalise func(*unstructured.Unstructured) error
}

// Objects are all that there are.
func (w World) Objects(ctx context.Context) (all []*unstructured.Unstructured, err error) {
	for _, namespace := range w.Namespaces {
		for _, kind := range w.Kinds {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind)
			if err := w.API.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return nil, err
			}
			for i := range list.Items {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all, nil
}

// Collect does what the garbage collector does: what belongs to nobody any more goes, and what waits for its dependents does not
// wait. It returns what is left.
func (w World) Collect(ctx context.Context) (left []*unstructured.Unstructured, err error) {
	objects, err := w.Objects(ctx)
	if err != nil {
		return nil, err
	}
	exists := map[types.UID]bool{}
	for _, object := range objects {
		exists[object.GetUID()] = true
	}
	for _, object := range objects {
		orphaned := len(object.GetOwnerReferences()) > 0
		for _, owner := range object.GetOwnerReferences() {
			orphaned = orphaned && !exists[owner.UID]
		}
		if orphaned && object.GetDeletionTimestamp() == nil {
			if err := w.API.Delete(ctx, object, client.PropagationPolicy("Background")); client.IgnoreNotFound(err) != nil {
				return nil, err
			}
		}
		waits := slices.DeleteFunc(slices.Clone(object.GetFinalizers()),
			func(f string) bool { return f == "foregroundDeletion" || f == "orphan" })
		if object.GetDeletionTimestamp() != nil && len(waits) < len(object.GetFinalizers()) {
			object.SetFinalizers(waits)
			_ = w.API.Update(ctx, object) // the next look tries again
		}
		if !orphaned {
			left = append(left, object)
		}
	}
	return left, nil
}

// Clear removes everything, so that nobody has to list it any more.
func (w World) Clear(ctx context.Context) error {
	objects, err := w.Objects(ctx)
	for _, object := range objects {
		object.SetFinalizers(nil)
		_ = w.API.Update(ctx, object)
		_ = w.API.Delete(ctx, object, client.GracePeriodSeconds(0), client.PropagationPolicy("Background"))
	}
	return err
}

var (
	aUID  = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	aTime = regexp.MustCompile(`(\d{4}-\d\d-\d\dT)?\d\d:\d\d:\d\dZ?`)
)

// Outcome is all that there is, after the garbage collector, without what chance and the clock decide. Names are told by what they
// stand for, in pairs: what is to be replaced, and by what.
func (w World) Outcome(ctx context.Context, names ...string) (string, error) {
	objects, err := w.Collect(ctx)
	if err != nil {
		return "", err
	}
	for _, object := range objects {
		names = append(names, string(object.GetUID()), "UID of "+object.GetKind()+" "+object.GetName())
	}
	for i, namespace := range w.Namespaces {
		names = append(names, namespace, "NAMESPACE"+strings.Repeat("'", i))
	}
	replacer := strings.NewReplacer(names...)
	tell := func(s string) string {
		return aTime.ReplaceAllString(aUID.ReplaceAllString(replacer.Replace(s), "UID of what is gone"), "TIME")
	}
	var texts []string
	for _, object := range objects {
		title := tell(object.GetNamespace() + " " + object.GetKind() + " " + object.GetName())
		normalise(object)
		if err := w.Normalise(object); err != nil {
			return "", err
		}
		text, err := yaml.Marshal(Rewritten(object.Object, tell)) // a digest that reads like a number would be quoted otherwise
		if err != nil {
			return "", err
		}
		texts = append(texts, "# "+title+"\n"+string(text))
	}
	slices.Sort(texts)
	return strings.Join(texts, ""), nil
}

// Rewritten is a value of JSON with each string in it, names of fields among them, as rewrite returns it.
func Rewritten(value any, rewrite func(string) string) any {
	switch v := value.(type) {
	case map[string]any:
		fields := make(map[string]any, len(v))
		for name, entry := range v {
			fields[rewrite(name)] = Rewritten(entry, rewrite)
		}
		return fields
	case []any:
		entries := make([]any, len(v))
		for i, entry := range v {
			entries[i] = Rewritten(entry, rewrite)
		}
		return entries
	case string:
		return rewrite(v)
	}
	return value
}

// normalise takes out of an object what always differs.
func normalise(object *unstructured.Unstructured) {
	for _, path := range [][]string{
		{"metadata", "uid"}, {"metadata", "resourceVersion"}, {"metadata", "creationTimestamp"}, {"spec", "clusterIP"}, {"spec", "clusterIPs"},
	} {
		unstructured.RemoveNestedField(object.Object, path...)
	}
	each(object, func(entry map[string]any) { delete(entry, "time") }, "metadata", "managedFields")
	each(object, func(entry map[string]any) {
		delete(entry, "lastTransitionTime")
		delete(entry, "lastProbeTime")
	}, "status", "conditions")
	each(object, func(entry map[string]any) { // a digest that UIDs are part of
		if entry["fields"] != nil {
			entry["fields"] = "DIGEST"
		}
	}, "status", "inventory")
}

// keyOf is by what a condition or a manager of fields is found: their order says nothing.
func keyOf(entry any) string {
	fields, _ := entry.(map[string]any)
	return fmt.Sprint(fields["type"], fields["manager"], fields["operation"], fields["subresource"], fields["apiVersion"])
}

// each does something to each entry of a list.
func each(object *unstructured.Unstructured, do func(map[string]any), path ...string) {
	list, found, err := unstructured.NestedSlice(object.Object, path...)
	if err != nil || !found {
		return
	}
	for _, entry := range list {
		if entry, ok := entry.(map[string]any); ok {
			do(entry)
		}
	}
	if path[len(path)-1] != "inventory" {
		slices.SortStableFunc(list, func(a, b any) int { return cmp.Compare(keyOf(a), keyOf(b)) })
	}
	_ = unstructured.SetNestedSlice(object.Object, list, path...)
}
