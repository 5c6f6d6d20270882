// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apply brings Kubernetes objects to a desired state by server-side apply, on behalf of an owner.
//
// Fields that were rendered belong to one field manager, FieldManager; fields of other writers stay as they are. An object
// is only ever changed or deleted when it carries the ownership of the owner it is applied for. Deviations are recognised
// from metadata alone (see docs/adr/0003-drift-by-managed-fields.md), so an idle object costs no request.
//
// # What ownership is worth
//
// An object is the owner's by its controller reference, which holds the owner's UID. Where Kubernetes follows no reference
// (another namespace, a cluster-scoped object of a namespaced owner, an object that outlives its owner by policy) it is the
// owner's by operator-lib's annotations, which hold its kind, namespace and name. A controller reference to anybody else
// overrules them.
//
// Whoever may write an object may write its annotations, and so give it to an owner or take it away. Given, the object is
// overwritten or deleted only if the owner's chart renders, or its inventory lists, that very kind, namespace and name: its
// writer could have done that as well, and learns nothing but what is rendered into an object they may read. Taken away, the
// owner is refused the name (NotOursError) until someone gives it back: its writer could have deleted it as well. Annotations
// hold no UID, so that a resource restored from a backup, or made again under its name, finds what was kept of it; whoever may
// create a resource of that kind, namespace and name therefore inherits what a former one left. Which kinds and namespaces
// a chart may reach is not decided here, but by what the caller lets through.
package apply

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
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

	// neverVersion is a resourceVersion no object can have: etcd's first revision precedes the first write. Sent with an
	// apply it lets the API server create an object and makes it refuse to touch one that exists.
	neverVersion = "1"
)

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
	return &Applier{client: c, children: children, now: time.Now, memory: memory{owners: map[types.UID][]applied{}}}
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

// Option changes how one call of Apply works.
type Option func(*options)

type options struct {
	recreate bool
	seen     map[types.UID]string
}

// Seen gives the versions of objects, by UID, on which the caller decided what is desired. Another version of them is not changed:
// the API server answers Conflict, and the caller has to look again. Without it what is desired is applied to whatever there is.
func Seen(versions map[types.UID]string) Option { return func(o *options) { o.seen = versions } }

// Recreate deletes objects whose immutable fields have to change and makes them anew, whatever their kind, as Helm's --force
// does. Without it only what the chart marks with RecreateAnnotation is.
func Recreate() Option { return func(o *options) { o.recreate = true } }

// Apply makes the desired objects exist as they are written, on behalf of owner. Desired objects are not changed; one without
// a namespace is put into the owner's if its kind is namespaced. The change set tells about every object, also when an error
// ends it early. Children of it that are Awaited are not as desired yet.
//
// Errors: NotOursError when an object exists that does not belong to owner, ImmutableError when a change is impossible,
// ForbiddenError when the operator lacks a right, otherwise the API server's error, wrapped; Reason tells them apart. Nothing
// is written if the cache already shows a foreign object or a kind is unknown.
func (a *Applier) Apply(ctx context.Context, owner client.Object, desired []*unstructured.Unstructured, how ...Option) (ChangeSet, error) {
	var chosen options
	for _, option := range how {
		option(&chosen)
	}
	plan, err := a.decideAll(ctx, owner, desired)
	if err != nil {
		return nil, err
	}
	changes := make(ChangeSet, 0, len(plan))
	for _, child := range plan {
		if child.verdict != outdated {
			changes = append(changes, child.leftAlone())
			continue
		}
		child.seen = chosen.seen
		child.recreate = chosen.recreate || child.object.GetAnnotations()[RecreateAnnotation] == "true"
		change, err := a.write(ctx, owner, child)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// Known is what a former process knew about a child after it applied it.
type Known struct {
	Ref
	// Fields is Change.Fields of that apply. If it is empty, only the existence of the child can be compared.
	Fields string
}

// Recall tells what a former process applied for owner, so that Drifted can tell by it, without a request, what was changed or
// deleted since. A child that the cache does not show counts as deleted. What this process applied itself is not forgotten for
// it. Known may come from a place that others can write: it never proves that an object is the owner's, and Apply sends each
// child once all the same.
func (a *Applier) Recall(owner client.Object, known []Known) {
	for _, child := range known {
		a.memory.recall(owner.GetUID(), applied{ref: child.Ref, mark: child.Fields, at: a.now(), seen: true, recalled: true})
	}
}

// Latest are known children as this process applied them last; those that it did not apply are as they were known. What is known may be of
// before that: a status that could not be written does not tell of it.
func (a *Applier) Latest(owner client.Object, known []Known) []Known {
	latest := slices.Clone(known)
	for i, child := range latest {
		if was := a.memory.get(owner.GetUID(), child.Ref); was != nil && !was.recalled {
			latest[i].UID, latest[i].Fields = was.ref.UID, was.mark
		}
	}
	return latest
}

// Drift is what the cache tells about the children of an owner.
type Drift struct {
	// Refs are the children that are no longer as they were applied.
	Refs []Ref
	// Known is false when nothing was applied or recalled for the owner yet: then nothing can be said.
	Known bool
	// Lagging reports whether the cache does not show all of our own writes yet: look again within Lag.
	Lagging bool
}

// Drifted compares the children of owner that were applied by this process, or recalled, with what the cache knows. It makes no
// request.
func (a *Applier) Drifted(ctx context.Context, owner client.Object) (Drift, error) {
	remembered := a.memory.all(owner.GetUID())
	drift := Drift{Known: len(remembered) > 0}
	for _, was := range remembered {
		cached, err := a.cached(ctx, was.ref)
		if err != nil {
			return Drift{}, err
		}
		switch verdictOf(&was, was.digest, cached, a.now()) {
		case outdated:
			drift.Refs = append(drift.Refs, was.ref)
		case lagging:
			drift.Lagging = true
		case upToDate:
			a.memory.sawIfCurrent(owner.GetUID(), was, cached)
		case deleting: // its disappearance will be drift
		}
	}
	return drift, nil
}

// Behind reports whether a version of a child that a cache shows precedes our last write of it, by less than Lag: what its status says is
// of before.
func (a *Applier) Behind(owner types.UID, child Ref, shown string) bool {
	was := a.memory.get(owner, child)
	if was == nil {
		return false
	}
	_, behind := was.written().Behind(shown, a.now())
	return behind
}

// Forget drops what is remembered about an owner that is gone.
func (a *Applier) Forget(ownerUID types.UID) { a.memory.forget(ownerUID) }

// write brings one object to its desired state and remembers the answer.
func (a *Applier) write(ctx context.Context, owner client.Object, child child) (Change, error) {
	change := Change{Ref: RefOf(child.object), Action: Configured}
	before := child.resourceVersions()
	result, err := a.createOrChange(ctx, owner, child, &change, &before)
	if apierrors.IsInvalid(err) {
		if isImmutable(err) {
			return a.recreate(ctx, owner, child, err)
		}
		result, err = a.resolveConflict(ctx, owner, child, err)
	}
	if err != nil {
		return change, describe(err, "apply", change.Ref)
	}
	if result == nil {
		return change, nil // it is being deleted
	}
	change.UID, change.Fields = result.GetUID(), markOf(result.GetManagedFields())
	if slices.Contains(before, result.GetResourceVersion()) {
		change.Action = Unchanged
	}
	a.memory.put(owner.GetUID(), applied{
		ref: change.Ref, digest: child.digest, version: result.GetResourceVersion(), at: a.now(), mark: change.Fields,
	})
	return change, nil
}

// createOrChange changes the object the cache shows, or makes one. An object that exists although the cache does not show it
// (no label, or the cache lags) is changed only if it is the owner's. The result is nil if it is being deleted.
func (a *Applier) createOrChange(ctx context.Context, owner client.Object, child child, change *Change,
	before *[]string) (*unstructured.Unstructured, error) {
	if child.cached != nil {
		result, err := a.change(ctx, child, child.cached)
		if !apierrors.IsConflict(err) {
			return result, err
		}
		// The object the cache shows is gone, or another has its name now.
	}
	change.Action = Created
	if child.remembered != nil {
		change.Action = Recreated
	}
	result, err := a.create(ctx, child.object)
	if !apierrors.IsConflict(err) {
		return result, err
	}
	live, err := a.live(ctx, change.Ref)
	if err != nil {
		return nil, fmt.Errorf("look at %s, which exists already: %w", change.Ref, err)
	}
	if err := child.ownedBy(owner, live); err != nil {
		return nil, err
	}
	change.UID = live.GetUID()
	if live.GetDeletionTimestamp() != nil {
		change.Action = Deleting
		return nil, nil
	}
	change.Action = Configured
	*before = append(*before, live.GetResourceVersion())
	return a.change(ctx, child, live)
}

// create applies an object that does not exist; the API server answers Conflict if it does.
func (a *Applier) create(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body := object.DeepCopy()
	body.SetResourceVersion(neverVersion)
	return a.request(ctx, body, client.FieldOwner(FieldManager))
}

// change applies the very object whose metadata is shown, with what must be kept of it; the API server answers Conflict if that
// object is gone or was replaced.
func (a *Applier) change(ctx context.Context, child child, shown *metav1.PartialObjectMetadata) (*unstructured.Unstructured, error) {
	if err := a.preserve(ctx, child, shown); err != nil {
		return nil, err
	}
	return a.send(ctx, child.object, shown.GetUID(), child.seen[shown.GetUID()])
}

// send applies to the object of a UID, and takes over the fields that are rendered; the API server answers Conflict if it is gone
// or was replaced, or is of another version than the one given, if any.
func (a *Applier) send(ctx context.Context, object *unstructured.Unstructured, uid types.UID, version string) (*unstructured.Unstructured,
	error) {
	return a.sendAs(ctx, object, uid, version, client.FieldOwner(FieldManager), client.ForceOwnership)
}

func (a *Applier) sendAs(ctx context.Context, object *unstructured.Unstructured, uid types.UID, version string,
	how ...client.ApplyOption) (*unstructured.Unstructured, error) {
	body := object.DeepCopy()
	body.SetUID(uid)
	body.SetResourceVersion(version)
	result, err := a.request(ctx, body, how...)
	if apierrors.IsInvalid(err) && slices.Contains(refusedFields(err), "metadata.uid") {
		return nil, conflictAbout(RefOf(object), err)
	}
	return result, err
}

// conflictAbout is the API server's answer about an object that is another, or of another version, than was meant.
func conflictAbout(ref Ref, why error) error {
	return apierrors.NewConflict(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name, why)
}

// request makes one apply; if the API server refuses it because of duplicate elements, another without them.
func (a *Applier) request(ctx context.Context, body *unstructured.Unstructured, how ...client.ApplyOption) (*unstructured.Unstructured,
	error) {
	for range maxDuplicates {
		result := body.DeepCopy()
		err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(result), how...)
		duplicates := duplicatesIn(err)
		if len(duplicates) == 0 {
			return result, err
		}
		single, contradiction := withoutDuplicates(body, duplicates)
		if contradiction != nil {
			return nil, fmt.Errorf("%w: %w", contradiction, err)
		}
		body = single
	}
	return body, a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(body), how...)
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

// GetMetadata reads the metadata of an object from a cache that has it whole, so that they and its status, read there, are of one version
// or follow each other.
func GetMetadata(ctx context.Context, from client.Reader, key client.ObjectKey, into *metav1.PartialObjectMetadata,
	options ...client.GetOption) error {
	whole := &unstructured.Unstructured{}
	whole.SetGroupVersionKind(into.GroupVersionKind())
	if err := from.Get(ctx, key, whole, options...); err != nil {
		return err
	}
	return runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{
		"apiVersion": whole.GetAPIVersion(), "kind": whole.GetKind(), "metadata": whole.Object["metadata"]}, into)
}

func read(ctx context.Context, from client.Reader, ref Ref) (*metav1.PartialObjectMetadata, error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(ref.GroupVersionKind)
	err := from.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, object)
	return object, err
}
