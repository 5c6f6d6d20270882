// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Age is how old a reading may be: Secrets are neither cached nor watched, and an idle
// cluster costs one request a minute for each of its Secrets.
const Age = time.Minute

// Memory remembers the last reading of each cluster, and which users its instances refused.
// The zero value is usable; a nil one remembers nothing.
type Memory struct {
	mu      sync.Mutex
	known   map[types.UID]Reading
	readAt  map[types.UID]time.Time
	refused map[types.UID]refused
}

// refused are users whose rules an instance refused.
type refused struct{ users, why string }

// Get is the last usable reading; fresh says that it need not be read again yet.
func (m *Memory) Get(uid types.UID, now time.Time) (last Reading, known, fresh bool) {
	if m == nil {
		return Reading{}, false, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	last, known = m.known[uid]
	readAt := m.readAt[uid]
	return last, known, known && !readAt.IsZero() && now.Sub(readAt) < Age
}

// Put remembers a usable reading.
func (m *Memory) Put(uid types.UID, reading Reading, now time.Time) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known, m.readAt = map[types.UID]Reading{}, map[types.UID]time.Time{}
	}
	reading.Secret = nil // only an update needs it, and reads it anew
	m.known[uid], m.readAt[uid] = reading, now
}

// Expire makes the next pass read again.
func (m *Memory) Expire(uid types.UID) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.readAt, uid)
}

// Forget drops what is remembered of a cluster.
func (m *Memory) Forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, uid)
	delete(m.readAt, uid)
	delete(m.refused, uid)
}

// NoteRefused remembers that an instance refused users, and why.
func (m *Memory) NoteRefused(uid types.UID, users []User, why string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.refused == nil {
		m.refused = map[types.UID]refused{}
	}
	m.refused[uid] = refused{users: stored(users), why: why}
}

// Refused is why an instance refused these users; empty when none did.
func (m *Memory) Refused(uid types.UID, users []User) string {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if r, found := m.refused[uid]; found && r.users == stored(users) {
		return r.why
	}
	return ""
}
