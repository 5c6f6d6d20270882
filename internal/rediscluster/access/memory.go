// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package access

import "middleware.hc.cn/operator/internal/rediscluster/byname"

// Memory is the last reading of one cluster, and which users its instances refused. The zero
// value remembers nothing.
type Memory struct {
	last    Reading
	known   bool
	read    byname.Reading
	refused refused
}

// refused are users whose rules an instance refused.
type refused struct{ users, why string }

// Get is the last usable reading.
func (m *Memory) Get() (last Reading, known bool) { return m.last, m.known }

// Read is when the Secrets of the last usable reading were read; never, after Expire.
func (m *Memory) Read() byname.Reading { return m.read }

// Put remembers a usable reading.
func (m *Memory) Put(reading Reading, read byname.Reading) {
	reading.Secret = nil // only an update needs it, and reads it anew
	m.last, m.known, m.read = reading, true, read
}

// Expire makes the next look read again.
func (m *Memory) Expire() { m.read = byname.Reading{} }

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
