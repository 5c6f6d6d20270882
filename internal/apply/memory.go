// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"cmp"
	"slices"
	"sync"
	"time"
	"weak"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// applied is what is remembered about one child after it was applied.
type applied struct {
	ref     Ref
	digest  string                                  // of the object as it was sent
	desired weak.Pointer[unstructured.Unstructured] // the object of that digest that was desired last, for as long as it is kept elsewhere
	mark    string                                  // markOf the answer
	version string                                  // resourceVersion in the answer, or a later one the cache has shown with the same fields
	at      time.Time                               // when it was applied
	seen    bool                                    // the cache has shown that version or a newer one

	// recalled is true of what a former process applied: only ref and mark are known, and nothing is proved by it.
	recalled bool
}

// madeIt reports whether this very object was applied by us and nobody has taken control of it since: then it is ours even if
// someone removed the reference to its owner.
func (was *applied) madeIt(object metav1.Object) bool {
	return was != nil && !was.recalled && was.ref.UID == object.GetUID() && metav1.GetControllerOf(object) == nil
}

// written is the version of the child, and when it was applied.
func (was *applied) written() Written { return Written{Version: was.version, At: was.at} }

// memory keeps what was applied, by owner, in the order of compareRefs: a slice takes less than a map, and there are tens of thousands
// of children.
type memory struct {
	mu     sync.Mutex
	owners map[types.UID][]applied
}

// find is where what is remembered of a child is, or would be. It needs the lock.
func (m *memory) find(owner types.UID, child Ref) (at int, found bool) {
	return slices.BinarySearchFunc(m.owners[owner], child, func(was applied, child Ref) int { return compareRefs(was.ref, child) })
}

func (m *memory) get(owner types.UID, child Ref) *applied {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := m.find(owner, child)
	if !found {
		return nil
	}
	was := m.owners[owner][at]
	return &was
}

func (m *memory) all(owner types.UID) []applied {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.owners[owner])
}

func (m *memory) put(owner types.UID, was applied) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at, found := m.find(owner, was.ref)
	if found {
		m.owners[owner][at] = was
		return
	}
	m.owners[owner] = slices.Insert(m.owners[owner], at, was)
}

// recall puts what a former process applied, unless this process has applied it.
func (m *memory) recall(owner types.UID, was applied) {
	if known := m.get(owner, was.ref); known != nil && !known.recalled {
		return
	}
	m.put(owner, was)
}

// sawIfCurrent notes that the cache shows what was applied, or a later version of the object in which our fields are the same:
// from then on a child that is missing is gone.
func (m *memory) sawIfCurrent(owner types.UID, was applied, cached *metav1.PartialObjectMetadata) {
	was.seen, was.version = true, cached.GetResourceVersion()
	m.put(owner, was)
}

func (m *memory) drop(owner types.UID, child Ref) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if at, found := m.find(owner, child); found {
		m.owners[owner] = slices.Delete(m.owners[owner], at, at+1)
	}
}

func (m *memory) forget(owner types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.owners, owner)
}

// compareRefs orders Refs; those that are Same are equal.
func compareRefs(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}
