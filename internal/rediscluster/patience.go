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
