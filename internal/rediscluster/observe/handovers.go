// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// handovers remember which replicas were told to take over, until they have.
type handovers struct {
	mu   sync.Mutex
	told map[types.UID]map[string]time.Time // by node ID
}

// NoteHandover notes that a replica of a cluster was told to take over.
func (o *Observer) NoteHandover(uid types.UID, nodeID string) {
	o.handovers.mu.Lock()
	defer o.handovers.mu.Unlock()
	if o.handovers.told == nil {
		o.handovers.told = map[types.UID]map[string]time.Time{}
	}
	if o.handovers.told[uid] == nil {
		o.handovers.told[uid] = map[string]time.Time{}
	}
	o.handovers.told[uid][nodeID] = o.now()
}

// pending are those that have not taken over in the last hour.
func (h *handovers) pending(uid types.UID, s *snapshot.Snapshot, now time.Time) map[string]time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, at := range h.told[uid] {
		if in := s.ByNodeID(id); in != nil && in.Redis.Master || now.Sub(at) > time.Hour {
			delete(h.told[uid], id)
		}
	}
	return maps.Clone(h.told[uid])
}

func (h *handovers) forget(uid types.UID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.told, uid)
}
