// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/apply"
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

// identities are the objects that something is remembered of, by their names: when an object
// is gone, only its name is left to go by.
type identities struct {
	mu    sync.Mutex
	known map[types.NamespacedName]identity
}

// identity is one object, and the version of it with which the last pass ended.
type identity struct {
	uid types.UID
	apply.Written
}

// replace notes the UID of an object, empty when it is gone, and returns the former one.
func (i *identities) replace(name types.NamespacedName, uid types.UID) types.UID {
	i.mu.Lock()
	defer i.mu.Unlock()
	before := i.known[name].uid
	switch {
	case uid == "":
		delete(i.known, name)
	case uid != before:
		if i.known == nil {
			i.known = map[types.NamespacedName]identity{}
		}
		i.known[name] = identity{uid: uid}
	}
	return before
}

// wrote notes the version of an object at the end of a pass: what that wrote last, or else read.
func (i *identities) wrote(name types.NamespacedName, version string, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if known, ok := i.known[name]; ok && known.Version != version {
		known.Written = apply.Written{Version: version, At: now}
		i.known[name] = known
	}
}

// behind says that a version from the cache is older than what the operator itself wrote:
// whoever acts on it does again what is done already. again is how soon to look again.
func (i *identities) behind(name types.NamespacedName, version string, now time.Time) (again time.Duration, yes bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.known[name].Behind(version, now)
}
