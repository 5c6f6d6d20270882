// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// element is the step of a path that leads to an element of a list, whichever it is.
const element = "[]"

// allocated are fields that the API server or a scaler gives a value: what is put into the place of another writer's object or
// element keeps them.
var allocated = []string{"nodePort", "healthCheckNodePort", "clusterIP", "clusterIPs", "replicas"}

// resolveConflict applies again after the API server has refused the object that our fields and those of others make together: another
// writer changed the key of a list's element (the port of a Service), which adds a second element of the same name, or chose
// another member of a union (a volume's source, a Deployment's strategy), which leaves two. What is refused is put as it is
// desired first, on condition that the object is still the one that was read; elements and fields that are not refused stay.
// If that is refused too, the desired object is invalid by itself: nothing was written, and refusal is returned.
func (a *Applier) resolveConflict(ctx context.Context, owner client.Object, child child, refusal error) (*unstructured.Unstructured,
	error) {
	ref := RefOf(child.object)
	live, err := a.whole(ctx, ref)
	if apierrors.IsNotFound(err) {
		return nil, refusal
	}
	if err != nil {
		return nil, err
	}
	if err := child.ownedBy(owner, live); err != nil {
		return nil, err
	}
	seen := child.seen[live.GetUID()]
	if seen != "" && seen != live.GetResourceVersion() {
		return nil, conflictAbout(ref, errors.New("it has changed since it was decided what is desired"))
	}
	settled := live.DeepCopy()
	for _, path := range refusedPaths(refusal) {
		settle(settled.Object, child.object.Object, path)
	}
	if reflect.DeepEqual(settled.Object, live.Object) {
		return nil, refusal
	}
	patch := client.MergeFromWithOptions(live, client.MergeFromWithOptimisticLock{})
	if err := a.client.Patch(ctx, settled, patch, client.FieldOwner(FieldManager)); err != nil {
		if apierrors.IsInvalid(err) {
			return nil, refusal
		}
		return nil, err
	}
	if err := a.foldInto(ctx, settled, isSettled); err != nil {
		return nil, err
	}
	if seen != "" {
		seen = settled.GetResourceVersion()
	}
	return a.send(ctx, child.object, live.GetUID(), seen)
}

// refusedPaths are the fields that a refusal names, within the spec (or data, rules, …: never metadata or status).
func refusedPaths(refusal error) [][]string {
	var paths [][]string
	for _, field := range refusedFields(refusal) {
		path := pathOf(field)
		if len(path) > 0 && path[0] != "metadata" && path[0] != "status" {
			paths = append(paths, path)
		}
	}
	return paths
}

// refusedFields are the fields that a refusal names: "spec.ports[1].name".
func refusedFields(refusal error) []string {
	var status apierrors.APIStatus
	if !errors.As(refusal, &status) || status.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range status.Status().Details.Causes {
		fields = append(fields, cause.Field)
	}
	return fields
}

// pathOf splits "spec.ports[1].name" into spec, ports, element, name. A key of a map ("data[a.b]") is a step of its own.
func pathOf(text string) []string {
	var path []string
	for text != "" {
		end := strings.IndexAny(text, ".[")
		switch {
		case end < 0:
			return append(path, text)
		case end > 0:
			path = append(path, text[:end])
		}
		if text[end] == '.' {
			text = text[end+1:]
			continue
		}
		key, rest, _ := strings.Cut(text[end+1:], "]")
		if strings.Trim(key, "0123456789") == "" {
			key = element
		}
		path = append(path, key)
		text = rest
	}
	return path
}

// settle makes live agree with desired where path points. Nothing happens outside of what desired renders. A field that desired
// does not render is removed; otherwise the object it is a member of becomes the desired one, for the members of a union
// exclude each other. The spec as a whole is replaced only if it is refused as a whole, not for the sake of one of its fields.
func settle(live, desired map[string]any, path []string) {
	name, rest := path[0], path[1:]
	theirs, ours := live[name], desired[name]
	theirObject, ourObject, objects := bothObjects(theirs, ours)
	switch {
	case len(rest) == 0 && ours == nil:
		delete(live, name)
	case len(rest) == 0 && objects:
		replace(theirObject, ourObject)
	case len(rest) == 0:
		live[name] = ours
	case rest[0] == element:
		settleElements(theirs, ours, rest[1:])
	case objects && len(rest) == 1 && name != "spec":
		settleMember(theirObject, ourObject, rest[0])
	case objects:
		settle(theirObject, ourObject, rest)
	}
}

// settleElements settles the elements of a list that have the name of a desired one, if there is no doubt which.
func settleElements(theirs, ours any, path []string) {
	theirList, _ := theirs.([]any)
	ourList, _ := ours.([]any)
	for _, their := range theirList {
		theirObject, _ := their.(map[string]any)
		ourObject := onlyNamed(ourList, theirObject["name"])
		if theirObject == nil || ourObject == nil {
			continue
		}
		switch len(path) {
		case 0:
			replace(theirObject, ourObject)
		case 1:
			settleMember(theirObject, ourObject, path[0])
		default:
			settle(theirObject, ourObject, path)
		}
	}
}

// onlyNamed returns the element of a name; nil if there is none, or more than one. Elements may all have no name.
func onlyNamed(list []any, name any) map[string]any {
	var found map[string]any
	for _, item := range list {
		if object, ok := item.(map[string]any); ok && object["name"] == name {
			if found != nil {
				return nil
			}
			found = object
		}
	}
	return found
}

// settleMember settles an object of which one member is refused. A member that is not desired goes, and those that are desired
// take its place; if the refused one is desired, or neither has it, something else of the object is in its way.
func settleMember(live, desired map[string]any, name string) {
	if _, has := live[name]; !has || desired[name] != nil {
		replace(live, desired)
		return
	}
	delete(live, name)
	maps.Copy(live, desired)
}

// replace makes an object the desired one, in its place.
func replace(live, desired map[string]any) {
	for name := range live {
		if _, rendered := desired[name]; !rendered && !slices.Contains(allocated, name) {
			delete(live, name)
		}
	}
	maps.Copy(live, desired)
}

func bothObjects(a, b any) (map[string]any, map[string]any, bool) {
	first, ok1 := a.(map[string]any)
	second, ok2 := b.(map[string]any)
	return first, second, ok1 && ok2
}
