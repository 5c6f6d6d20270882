// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// Ref names one child. UID is empty as long as the object was not seen.
type Ref struct {
	schema.GroupVersionKind
	Namespace, Name string
	UID             types.UID
}

// RefOf returns the Ref of an object.
func RefOf(o *unstructured.Unstructured) Ref {
	return Ref{GroupVersionKind: o.GroupVersionKind(), Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()}
}

// Same reports whether two Refs name the same object, whatever version of its API they use and whichever UID they know.
func (r Ref) Same(other Ref) bool {
	return r.GroupKind() == other.GroupKind() && r.Namespace == other.Namespace && r.Name == other.Name
}

// String is "Deployment shop/web", as people write it.
func (r Ref) String() string {
	if r.Namespace == "" {
		return r.Kind + " " + r.Name
	}
	return r.Kind + " " + r.Namespace + "/" + r.Name
}

// Action is what was done to one child.
type Action string

const (
	// Created means that the child did not exist.
	Created Action = "Created"
	// Configured means that the child existed and was changed.
	Configured Action = "Configured"
	// Unchanged means that the child was as desired.
	Unchanged Action = "Unchanged"
	// Recreated means that the child had been applied before, was gone, and was made again.
	Recreated Action = "Recreated"
	// Deleted means that the deletion of the child was asked for. From Apply: it cannot be changed in place and is made
	// anew by the Apply that follows its disappearance.
	Deleted Action = "Deleted"
	// Deleting means that the child is being deleted already; it is made anew by the Apply that follows its disappearance.
	Deleting Action = "Deleting"
)

// Change is what was done to which child.
type Change struct {
	Ref
	Action
	// Fields is a digest of the fields we own of the child and of the time at which we last changed it; empty if it is not
	// known. Recall takes it.
	Fields string
}

// ChangeSet is what a call did, one entry a child, in the order in which it was done.
type ChangeSet []Change

// Changed leaves out the children that nothing was done to.
func (s ChangeSet) Changed() ChangeSet {
	return s.without(Unchanged, Deleting)
}

// Awaited are the children that have to disappear before they can be made anew: whoever applied has to come back then. Their
// disappearance is an event of the children's cache.
func (s ChangeSet) Awaited() ChangeSet {
	return s.without(Unchanged, Created, Configured, Recreated)
}

func (s ChangeSet) without(actions ...Action) ChangeSet {
	var rest ChangeSet
	for _, c := range s {
		if !slices.Contains(actions, c.Action) {
			rest = append(rest, c)
		}
	}
	return rest
}

// String names what changed: "created Service shop/web, configured Deployment shop/web", or "nothing changed".
func (s ChangeSet) String() string {
	var words []string
	for _, c := range s.Changed() {
		words = append(words, strings.ToLower(string(c.Action))+" "+c.String())
	}
	if len(words) == 0 {
		return "nothing changed"
	}
	return strings.Join(words, ", ")
}
