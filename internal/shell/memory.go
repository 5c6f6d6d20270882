// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shell is what surrounds the pipeline of every kind: an object is read, left alone while the cache is behind what this
// process wrote, remembered by its UID and forgotten when it is gone; and its status is written on condition that nobody has changed
// the object meanwhile.
package shell

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/apply"
	"middleware.hc.cn/operator/internal/outcome"
)

// Memory is what this process remembers of the objects of one kind between reconciliations: the version that it wrote last, and a T.
// It is safe for concurrent use; the zero value remembers nothing.
type Memory[T any] struct {
	// Forgotten, if set, is called when an object is gone, or another one has its name: what else is remembered of it can go.
	Forgotten func(name types.NamespacedName, uid types.UID)

	mu    sync.Mutex
	uids  map[types.NamespacedName]types.UID // when an object is gone, only its name is left to go by
	byUID map[types.UID]remembered[T]
}

type remembered[T any] struct {
	written apply.Written
	more    T
}

// Begin reads an object. Unless ok, it is not to be reconciled now, and the outcome says why: it is gone, it could not be read, or
// the cache shows a version from before what this process wrote. Whoever acts on that does again what is done already.
func (m *Memory[T]) Begin(
	ctx context.Context, from client.Reader, name types.NamespacedName, into client.Object, now time.Time,
) (why outcome.Outcome, ok bool) {
	if err := from.Get(ctx, name, into); apierrors.IsNotFound(err) {
		m.bind(name, "")
		return outcome.Done(), false
	} else if err != nil {
		return outcome.Retry(fmt.Errorf("read %s: %w", name, err)), false
	}
	if again, behind := m.bind(name, into.GetUID()).Behind(into.GetResourceVersion(), now); behind {
		return outcome.Wait("the cache does not show our own write yet", again), false
	}
	return outcome.Outcome{}, true
}

// bind notes whose a name is, nobody's with an empty UID, and returns what this process wrote of that object.
func (m *Memory[T]) bind(name types.NamespacedName, uid types.UID) apply.Written {
	m.mu.Lock()
	former := m.uids[name]
	if former != uid {
		delete(m.byUID, former)
		delete(m.uids, name)
	}
	if uid != "" {
		if m.uids == nil {
			m.uids, m.byUID = map[types.NamespacedName]types.UID{}, map[types.UID]remembered[T]{}
		}
		m.uids[name] = uid
		if _, known := m.byUID[uid]; !known {
			m.byUID[uid] = remembered[T]{}
		}
	}
	written := m.byUID[uid].written
	m.mu.Unlock()
	if former != "" && former != uid && m.Forgotten != nil {
		m.Forgotten(name, former)
	}
	return written
}

// Forget forgets the objects of some namespaces, as if they were gone: they are another process's from now on.
func (m *Memory[T]) Forget(of func(namespace string) bool) {
	m.mu.Lock()
	var names []types.NamespacedName
	for name := range m.uids {
		if of(name.Namespace) {
			names = append(names, name)
		}
	}
	m.mu.Unlock()
	for _, name := range names {
		m.bind(name, "")
	}
}

// Get returns what is remembered of an object.
func (m *Memory[T]) Get(uid types.UID) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.byUID[uid].more
}

// Update changes what is remembered of an object that Begin has read; of others nothing is.
func (m *Memory[T]) Update(uid types.UID, change func(*T)) {
	m.update(uid, func(is *remembered[T]) { change(&is.more) })
}

// Wrote notes the version of an object that a write of this process made.
func (m *Memory[T]) Wrote(object client.Object, now time.Time) {
	m.update(object.GetUID(), func(is *remembered[T]) {
		if version := object.GetResourceVersion(); version != is.written.Version {
			is.written = apply.Written{Version: version, At: now}
		}
	})
}

func (m *Memory[T]) update(uid types.UID, change func(*remembered[T])) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if is, known := m.byUID[uid]; known {
		change(&is)
		m.byUID[uid] = is
	}
}
