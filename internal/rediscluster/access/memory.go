// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import "time"

// Age is how old a reading may be: Secrets are neither cached nor watched, and an idle
// cluster costs one request a minute for each of its Secrets.
const Age = time.Minute

// Memory is the last reading of one cluster, and which users its instances refused. The zero
// value remembers nothing.
type Memory struct {
	last    Reading
	known   bool
	readAt  time.Time
	refused refused
}

// refused are users whose rules an instance refused.
type refused struct{ users, why string }

// Get is the last usable reading; fresh reports that it need not be read again yet.
func (m *Memory) Get(now time.Time) (last Reading, known, fresh bool) {
	return m.last, m.known, m.known && !m.readAt.IsZero() && now.Sub(m.readAt) < Age
}

// Put remembers a usable reading.
func (m *Memory) Put(reading Reading, now time.Time) {
	reading.Secret = nil // only an update needs it, and reads it anew
	m.last, m.known, m.readAt = reading, true, now
}

// Expire makes the next look read again.
func (m *Memory) Expire() { m.readAt = time.Time{} }

// NoteRefused remembers that an instance refused users, and why.
func (m *Memory) NoteRefused(users []User, why string) {
	m.refused = refused{users: stored(users), why: why}
}

// Refused is why an instance refused these users; empty when none did.
func (m *Memory) Refused(users []User) string {
	if m.refused.users == stored(users) {
		return m.refused.why
	}
	return ""
}
