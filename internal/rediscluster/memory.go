// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// patience spaces out looking again at a cluster that keeps waiting for the same thing:
// soon at first, then a fifth of the time waited so far, never less often than the poll
// interval.
type patience struct {
	mu    sync.Mutex
	waits map[types.UID]wait
}

type wait struct {
	reason string
	since  time.Time
}

func (p *patience) next(uid types.UID, reason string, soon, most time.Duration, now time.Time) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.waits == nil {
		p.waits = map[types.UID]wait{}
	}
	w, ok := p.waits[uid]
	if !ok || w.reason != reason {
		w = wait{reason: reason, since: now}
		p.waits[uid] = w
	}
	return min(max(soon, now.Sub(w.since)/5), max(soon, most))
}

func (p *patience) forget(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.waits, uid)
}

// identities are the UIDs of objects by their names: when an object is gone, only its name
// is left to go by.
type identities struct {
	mu    sync.Mutex
	known map[types.NamespacedName]types.UID
}

// replace notes the UID of an object, empty when it is gone, and returns the former one.
func (i *identities) replace(name types.NamespacedName, uid types.UID) types.UID {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.known[name]
	if uid == "" {
		delete(i.known, name)
		return before
	}
	if i.known == nil {
		i.known = map[types.NamespacedName]types.UID{}
	}
	i.known[name] = uid
	return before
}
