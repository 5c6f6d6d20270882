// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// seen remembers the node IDs that instances of a cluster have answered to.
type seen struct {
	mu  sync.Mutex
	ids map[types.UID]map[string]bool
}

// add notes the IDs of a snapshot, and those of the last status after a restart of the
// operator, and returns all that were seen before or now.
func (s *seen) add(cluster *v1alpha1.RedisCluster, snap *snapshot.Snapshot) map[string]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = map[types.UID]map[string]bool{}
	}
	ids := s.ids[cluster.UID]
	if ids == nil {
		ids = map[string]bool{}
		s.ids[cluster.UID] = ids
		for _, node := range cluster.Status.Nodes {
			if node.NodeID != "" {
				ids[node.NodeID] = true
			}
		}
	}
	for _, in := range snap.Reachable() {
		ids[in.Redis.NodeID] = true
	}
	if len(ids) > mostSeen {
		maps.DeleteFunc(ids, func(id string, _ bool) bool { return !mentioned(snap, id) })
	}
	return maps.Clone(ids)
}

// mostSeen is how many node IDs are remembered before those are dropped that nobody mentions any more. Instances get a new ID
// with an empty volume, some as often as they like.
const mostSeen = 4096

// mentioned says whether an instance answers to the ID, or knows a node of that ID.
func mentioned(s *snapshot.Snapshot, id string) bool {
	for _, in := range s.Reachable() {
		if _, known := in.Redis.Peers[id]; known || in.Redis.NodeID == id {
			return true
		}
	}
	return false
}

func (s *seen) drop(uid types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.ids, uid)
}
