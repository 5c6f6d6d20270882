// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"time"

	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Lag is how long a cache may lag behind what this process wrote. What was written is believed against a cache that long, and
// then what the API server says counts: one whose etcd was restored from a backup counts its versions anew.
const Lag = 10 * time.Second

// soonest is how soon to look again for a write of our own that a cache does not show yet.
const soonest = 20 * time.Millisecond

// Written is the version of an object after this process wrote it.
type Written struct {
	Version string
	At      time.Time
}

// Behind reports whether a version that a cache shows precedes what was written, so that who acts on it would do, and tell, again
// what is done already. Again is how soon to look again: the longer it took so far, the later.
func (w Written) Behind(shown string, now time.Time) (again time.Duration, behind bool) {
	since := now.Sub(w.At)
	if !older(shown, w.Version) || since >= Lag {
		return 0, false
	}
	return max(soonest, since/5), true
}

// older reports whether resource version a precedes b. Versions that cannot be compared are not older.
func older(a, b string) bool {
	order, err := resourceversion.CompareResourceVersion(a, b)
	return err == nil && order < 0
}
