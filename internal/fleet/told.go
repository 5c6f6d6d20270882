// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import "time"

// Told is what a member that waits says of the others. Each telling is a write: it is of the last minute, and older the more wait.
type Told struct {
	// Stopped reports whether none has its turn before others are well; Why is the fleet in one line, for the namespace of the member.
	Stopped bool
	Why     string
	at      time.Time
}

// Next is what is told from now on to members of a namespace.
func (t Told) Next(v Verdict, namespace string, now time.Time) Told {
	const each = time.Second
	age := max(time.Minute, time.Duration(v.Waiting)*each)
	if stopped := v.Stopped || v.Aside == namespace; t.Stopped != stopped || t.Why == "" || now.Sub(t.at) >= age {
		return Told{stopped, v.For(namespace), now}
	}
	return t
}
