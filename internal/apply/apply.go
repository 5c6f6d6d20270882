// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply brings Kubernetes objects to a desired state by server-side apply, on behalf of an owner.
//
// Fields that were rendered belong to one field manager, FieldManager; fields of other writers stay as they are. An object
// is only ever changed or deleted when it carries the ownership of the owner it is applied for. Deviations are recognised
// from metadata alone (see docs/adr/0003-drift-by-managed-fields.md), so an idle object costs no request.
package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// FieldManager owns every field this operator sets on a child.
	FieldManager = "middleware-operator"
	// ManagedByLabel is on every child with the value ManagedByValue; the cache of children selects by it.
	ManagedByLabel = "app.kubernetes.io/managed-by"
	// ManagedByValue is the value of ManagedByLabel.
	ManagedByValue = "middleware-operator"

	// cacheLag is how long an object that was applied may be missing from the cache before it counts as deleted.
	cacheLag = 5 * time.Second

	// neverVersion is a resourceVersion no object can have: etcd's first revision precedes the first write. Sent with an
	// apply it lets the API server create an object and makes it refuse to touch one that exists.
	neverVersion = "1"
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

// Same tells whether two Refs name the same object, whatever version of its API they use and whichever UID they know.
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
	// Deleted means that the deletion of the child was asked for.
	Deleted Action = "Deleted"
)

// Change is what was done to which child.
type Change struct {
	Ref
	Action
}

// ChangeSet is what a call did, one entry a child, in the order in which it was done.
type ChangeSet []Change

// Changed leaves out the children that were as desired.
func (s ChangeSet) Changed() ChangeSet {
	var changed ChangeSet
	for _, c := range s {
		if c.Action != Unchanged {
			changed = append(changed, c)
		}
	}
	return changed
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

// Applier applies and prunes the children of any number of owners. It is safe for concurrent use, one call an owner at a
// time.
type Applier struct {
	client   client.Client
	children client.Reader
	now      func() time.Time
	memory   memory
}

// New returns an Applier. The client must read from the API server, not from a cache: it decides on ownership (use
// ForManager when in doubt). The children are metadata (metav1.PartialObjectMetadata, managedFields included) of the
// objects that carry ManagedByLabel, and may come from a cache that lags behind.
func New(c client.Client, children client.Reader) *Applier {
	return &Applier{client: c, children: children, now: time.Now, memory: memory{owners: map[types.UID]map[key]applied{}}}
}

// ForManager returns an Applier that reads from the API server of a manager where it decides on ownership.
func ForManager(mgr ctrl.Manager, children client.Reader) (*Applier, error) {
	live, err := client.New(mgr.GetConfig(), client.Options{
		HTTPClient: mgr.GetHTTPClient(), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("make a client for the children: %w", err)
	}
	return New(live, children), nil
}

// Apply makes the desired objects exist as they are written, on behalf of owner. Desired objects are not changed; one without
// a namespace is put into the owner's if its kind is namespaced. The change set tells about every object, also when an error
// ends it early.
//
// Errors: NotOursError when an object exists that does not belong to owner, ImmutableError when a change is impossible,
// otherwise the API server's error, wrapped. Nothing is written if the cache already shows a foreign object.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired []*unstructured.Unstructured) (ChangeSet, error) {
	plan, err := a.decideAll(ctx, owner, desired)
	if err != nil {
		return nil, err
	}
	changes := make(ChangeSet, 0, len(plan))
	for _, child := range plan {
		change := Change{Ref: RefOf(child.object), Action: Unchanged}
		if child.verdict == upToDate {
			change.UID = child.uid()
			changes = append(changes, change)
			continue
		}
		change, err := a.write(ctx, owner, child)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// Drifted returns the children of owner that were applied by this process and are no longer as they were applied, by what
// the cache knows. It makes no request. Known is false when nothing was applied for owner yet (after a restart): then
// nothing can be said.
func (a *Applier) Drifted(ctx context.Context, owner client.Object) (drifted []Ref, known bool, err error) {
	remembered := a.memory.all(owner.GetUID())
	for k, was := range remembered {
		cached, err := a.cached(ctx, was.ref)
		if err != nil {
			return nil, false, err
		}
		if verdictOf(&was, was.digest, cached, a.now()) != upToDate {
			drifted = append(drifted, was.ref)
			continue
		}
		a.memory.sawIfCurrent(owner.GetUID(), k, was, cached)
	}
	sortRefs(drifted)
	return drifted, len(remembered) > 0, nil
}

// Forget drops what is remembered about an owner that is gone.
func (a *Applier) Forget(ownerUID types.UID) { a.memory.forget(ownerUID) }

// write sends one object and remembers the answer.
func (a *Applier) write(ctx context.Context, owner client.Object, child child) (Change, error) {
	change := Change{Ref: RefOf(child.object), Action: Configured}
	before := child.resourceVersions()
	result, err := a.createOrChange(ctx, owner, child, &change, &before)
	if err != nil {
		return a.onRefusal(ctx, owner, child, err)
	}
	change.UID = result.GetUID()
	if slices.Contains(before, result.GetResourceVersion()) {
		change.Action = Unchanged
	}
	a.memory.put(owner.GetUID(), keyOf(change.Ref), applied{
		ref: change.Ref, digest: child.digest, fields: fieldsDigest(result.GetManagedFields()),
		version: result.GetResourceVersion(), at: a.now(),
	})
	return change, nil
}

// createOrChange makes an object the cache does not show, or changes the one that is there. An object that exists although the cache
// does not show it (no label, or the cache lags) is changed only if it is the owner's.
func (a *Applier) createOrChange(ctx context.Context, owner client.Object, child child, change *Change, before *[]string) (*unstructured.Unstructured, error) {
	if child.cached != nil {
		return a.send(ctx, child.object, true)
	}
	change.Action = Created
	if child.remembered != nil {
		change.Action = Recreated
	}
	result, err := a.send(ctx, child.object, false)
	if !apierrors.IsConflict(err) {
		return result, err
	}
	live, err := a.live(ctx, change.Ref)
	if err != nil {
		return nil, fmt.Errorf("look at %s, which exists already: %w", change.Ref, err)
	}
	if err := ownedBy(owner, child.ownerGVK, change.Ref, live); err != nil && !child.remembered.madeIt(live) {
		return nil, err
	}
	change.Action = Configured
	*before = append(*before, live.GetResourceVersion())
	return a.send(ctx, child.object, true)
}

// send applies a copy of the object. Without force it only creates: the API server answers Conflict if the object exists.
func (a *Applier) send(ctx context.Context, object *unstructured.Unstructured, force bool) (*unstructured.Unstructured, error) {
	body := object.DeepCopy()
	options := []client.ApplyOption{client.FieldOwner(FieldManager)}
	if force {
		options = append(options, client.ForceOwnership)
	} else {
		body.SetResourceVersion(neverVersion)
	}
	if err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), options...); err != nil {
		return nil, err
	}
	return body, nil
}

// live reads an object's metadata from the API server.
func (a *Applier) live(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	return read(ctx, a.client, ref)
}

// cached reads an object's metadata from the cache; nil when it is not there.
func (a *Applier) cached(ctx context.Context, ref Ref) (*metav1.PartialObjectMetadata, error) {
	object, err := read(ctx, a.children, ref)
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s from the cache: %w", ref, err)
	}
	return object, nil
}

func read(ctx context.Context, from client.Reader, ref Ref) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(ref.GroupVersionKind)
	err := from.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, object)
	return object, err
}

// onRefusal looks at why the API server refused an apply. A change of immutable fields of a kind that may be made anew
// deletes the object; the event of its disappearance brings the pass that makes the new one.
func (a *Applier) onRefusal(ctx context.Context, owner client.Object, child child, refusal error) (Change, error) {
	ref := RefOf(child.object)
	var foreign *NotOursError
	if errors.As(refusal, &foreign) {
		return Change{Ref: ref}, refusal
	}
	if !isImmutable(refusal) {
		return Change{Ref: ref}, fmt.Errorf("apply %s: %w", ref, refusal)
	}
	if !mayRecreate(child.object) {
		return Change{Ref: ref}, &ImmutableError{Ref: ref, Err: refusal}
	}
	deleted, err := a.remove(ctx, owner, child.ownerGVK, ref)
	if errors.As(err, &foreign) {
		return Change{Ref: ref}, err
	}
	if err != nil {
		return Change{Ref: ref}, fmt.Errorf("delete %s, whose fields cannot be changed: %w", ref, err)
	}
	return Change{Ref: deleted, Action: Deleted}, nil
}
