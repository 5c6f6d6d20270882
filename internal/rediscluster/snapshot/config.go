// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import "time"

// Refusal is a setting that a running instance refused.
type Refusal struct {
	Name, Value string
	// Engine is who refused, such as redis 7.0.15.
	Engine string
	// Message is what it said.
	Message string
	// Immutable reports whether only an instance that starts takes the setting.
	Immutable bool
	At        time.Time
}

// EngineVersion is what the instance runs, such as redis 7.0.15.
func (r *Redis) EngineVersion() string { return r.Engine + " " + r.Version }
