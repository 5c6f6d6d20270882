// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// asked remembers when each instance last redirected a client: Redis only counts.
type asked struct {
	mu    sync.Mutex
	known map[types.UID]map[string]redirected
}

type redirected struct {
	count int64
	at    time.Time
}

// note compares the counts with those of before and fills in AskedAt. Nodes that are not
// among the instances any more are dropped.
func (a *asked) note(uid types.UID, s *snapshot.Snapshot, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	before, after := a.known[uid], map[string]redirected{}
	for _, in := range s.Reachable() {
		r, known := before[in.Redis.NodeID]
		if !known || r.count != in.Redirections {
			r = redirected{count: in.Redirections, at: now}
		}
		after[in.Redis.NodeID] = r
		in.Redis.AskedAt = r.at
	}
	if a.known == nil {
		a.known = map[types.UID]map[string]redirected{}
	}
	a.known[uid] = after
}

func (a *asked) forget(uid types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, uid)
}
