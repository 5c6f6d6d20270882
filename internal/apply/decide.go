// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verdict is what is to be done with one child.
type verdict int

const (
	// upToDate needs no request.
	upToDate verdict = iota
	// outdated has to be applied.
	outdated
	// deleting has to disappear before it can be applied; its disappearance is an event.
	deleting
	// lagging needs no request yet: the cache shows the time before our own write, which is believed for Lag.
	lagging
)

// child is one desired object and what is known about it.
type child struct {
	ref        Ref
	object     *unstructured.Unstructured // stamped with label and ownership; nil if it need not be, which only those that are outdated must
	ownerGVK   schema.GroupVersionKind
	digest     string
	remembered *applied
	cached     *metav1.PartialObjectMetadata
	verdict    verdict
	recreate   bool // it may be deleted if its immutable fields have to change
	seen       map[types.UID]string
}

// leftAlone is what Apply tells about a child that it does nothing to.
func (c child) leftAlone() Change {
	change := Change{Ref: c.ref, Action: Unchanged}
	change.UID = c.uid()
	if c.verdict == deleting {
		change.Action = Deleting
		return change
	}
	if c.remembered != nil {
		change.Fields = c.remembered.mark
	}
	return change
}

// behind reports whether what is shown precedes what we applied, or seems to.
func (c child) behind(shown metav1.Object) bool {
	return c.remembered != nil && older(shown.GetResourceVersion(), c.remembered.version)
}

// ownedBy returns nil when a live object of the child's name is the owner's, or was applied by us and nobody has taken control
// of it since; a NotOursError otherwise.
func (c child) ownedBy(owner client.Object, object metav1.Object) error {
	if c.remembered.madeIt(object) {
		return nil
	}
	return ownedBy(owner, c.ownerGVK, c.ref, object)
}

func (c child) uid() types.UID {
	if c.cached != nil {
		return c.cached.GetUID()
	}
	if c.remembered != nil {
		return c.remembered.ref.UID
	}
	return ""
}

func (c child) resourceVersions() []string {
	var versions []string
	if c.cached != nil {
		versions = append(versions, c.cached.GetResourceVersion())
		if c.remembered != nil && c.remembered.ref.UID == c.cached.GetUID() {
			versions = append(versions, c.remembered.version)
		}
	}
	return versions
}

// decideAll finds out what each of the desired objects needs, from the memory and the cache alone. An object that is the very one of the
// last time is not looked through again: what is desired must not be changed.
func (a *Applier) decideAll(ctx context.Context, owner client.Object, desired []*unstructured.Unstructured) ([]child, error) {
	gvk, err := a.client.GroupVersionKindFor(owner)
	if err != nil {
		return nil, fmt.Errorf("find the kind of the owner %s: %w", owner.GetName(), err)
	}
	plan := make([]child, 0, len(desired))
	var foreign []error
	for _, object := range desired {
		namespaced, err := a.client.IsObjectNamespaced(object)
		if err != nil {
			return nil, fmt.Errorf("find the scope of %s: %w", RefOf(object), err)
		}
		c := child{ref: RefOf(object), ownerGVK: gvk}
		c.ref.Namespace = namespaceOf(object, owner, namespaced)
		ref := c.ref
		c.remembered = a.memory.get(owner.GetUID(), ref)
		if c.remembered != nil && c.remembered.desired == weak.Make(object) {
			c.digest = c.remembered.digest
		} else {
			c.object = Stamp(object, owner, gvk, namespaced)
			if c.digest, err = digestOf(c.object); err != nil {
				return nil, fmt.Errorf("digest of %s: %w", ref, err)
			}
		}
		if c.cached, err = a.cached(ctx, ref); err != nil {
			return nil, err
		}
		if c.cached != nil {
			if err := c.ownedBy(owner, c.cached); err != nil {
				foreign = append(foreign, err)
				continue
			}
		}
		c.verdict = verdictOf(c.remembered, c.digest, c.cached, a.now())
		if c.verdict == upToDate && c.remembered != nil {
			c.remembered.desired = weak.Make(object)
			a.memory.sawIfCurrent(owner.GetUID(), *c.remembered, c.cached)
		}
		if c.verdict == outdated && c.object == nil {
			c.object = Stamp(object, owner, gvk, namespaced)
		}
		plan = append(plan, c)
	}
	return plan, errors.Join(foreign...)
}

// verdictOf compares what was applied with what the cache shows. It is pure.
func verdictOf(was *applied, digest string, cached *metav1.PartialObjectMetadata, now time.Time) verdict {
	if cached != nil && cached.GetDeletionTimestamp() != nil {
		return deleting
	}
	if was == nil || was.digest != digest {
		return outdated
	}
	if cached == nil {
		if !was.seen && now.Sub(was.at) < Lag {
			return lagging
		}
		return outdated
	}
	if cached.GetUID() == was.ref.UID && older(cached.GetResourceVersion(), was.version) {
		if _, behind := was.written().Behind(cached.GetResourceVersion(), now); behind {
			return lagging
		}
		return outdated // the API server knows nothing of our write, whatever fields we own
	}
	if was.ref.UID != "" && cached.GetUID() != was.ref.UID {
		if _, behind := was.written().Behind(cached.GetResourceVersion(), now); behind && !was.seen {
			return lagging // the object that ours replaced
		}
		return outdated
	}
	if !was.shownBy(cached) {
		return outdated
	}
	return upToDate
}

// shownBy reports whether the fields of an object are those we applied, and that was our last apply: another process of ours, which ended
// before it could tell of its own, or was stopped and went on, may have applied other values of the same fields.
func (was *applied) shownBy(object metav1.Object) bool {
	return was.recalled && was.mark == "" || was.mark == markOf(object.GetManagedFields())
}

// digestOf is the digest of an object as it is sent. Go's JSON has sorted keys, so equal objects have equal digests.
func digestOf(object *unstructured.Unstructured) (string, error) {
	encoded, err := json.Marshal(object.Object)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(encoded)
	return hex.EncodeToString(sum[:]), nil
}
