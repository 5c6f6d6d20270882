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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// verdict is what is to be done with one child.
type verdict int

const (
	// upToDate needs no request.
	upToDate verdict = iota
	// outdated has to be applied.
	outdated
)

// child is one desired object and what is known about it.
type child struct {
	object     *unstructured.Unstructured // stamped with label and ownership
	ownerGVK   schema.GroupVersionKind
	digest     string
	remembered *applied
	cached     *metav1.PartialObjectMetadata
	verdict    verdict
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

// decideAll stamps the desired objects and finds out what each needs, from the memory and the cache alone.
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
		c := child{object: stamp(object, owner, gvk, namespaced), ownerGVK: gvk}
		ref := RefOf(c.object)
		if c.digest, err = digestOf(c.object); err != nil {
			return nil, fmt.Errorf("digest of %s: %w", ref, err)
		}
		if c.cached, err = a.cached(ctx, ref); err != nil {
			return nil, err
		}
		c.remembered = a.memory.get(owner.GetUID(), keyOf(ref))
		if c.cached != nil && !c.remembered.madeIt(c.cached) {
			if err := ownedBy(owner, gvk, ref, c.cached); err != nil {
				foreign = append(foreign, err)
				continue
			}
		}
		c.verdict = verdictOf(c.remembered, c.digest, c.cached, a.now())
		if c.verdict == upToDate && c.remembered != nil {
			a.memory.sawIfCurrent(owner.GetUID(), keyOf(ref), *c.remembered, c.cached)
		}
		plan = append(plan, c)
	}
	return plan, errors.Join(foreign...)
}

// verdictOf compares what was applied with what the cache shows. It is pure.
func verdictOf(was *applied, digest string, cached *metav1.PartialObjectMetadata, now time.Time) verdict {
	if cached != nil && cached.GetDeletionTimestamp() != nil {
		return upToDate // nothing can be done before it is gone; its disappearance is an event
	}
	if was == nil || was.digest != digest {
		return outdated
	}
	if cached == nil {
		if !was.seen && now.Sub(was.at) < cacheLag {
			return upToDate // the cache has not caught up with our own write
		}
		return outdated
	}
	if cached.GetUID() == was.ref.UID && older(cached.GetResourceVersion(), was.version) {
		return upToDate // the cache shows the time before our own write
	}
	if cached.GetUID() != was.ref.UID || fieldsDigest(cached.GetManagedFields()) != was.fields {
		return outdated
	}
	return upToDate
}

// older tells whether resource version a precedes b. Versions that cannot be compared are not older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
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

// fieldsDigest is the digest of the set of fields we own, as the API server keeps it: whoever changes or removes one of them
// takes it out of that set. It is empty if we own nothing. The set is JSON whose keys the API server orders by value and Go
// by text, and an answer that went through a map has lost the former: so the digest is of Go's order.
func fieldsDigest(entries []metav1.ManagedFieldsEntry) string {
	for _, entry := range entries {
		if entry.Manager != FieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		var fields map[string]any
		if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields) != nil {
			return ""
		}
		ordered, err := json.Marshal(fields)
		if err != nil {
			return ""
		}
		sum := sha256.Sum256(append([]byte(entry.APIVersion+"\n"), ordered...))
		return hex.EncodeToString(sum[:])
	}
	return ""
}
