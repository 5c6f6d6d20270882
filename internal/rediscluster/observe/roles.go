// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// roles remember since when masters are masters no more, and which replicas were told to take over.
type roles struct {
	mu    sync.Mutex
	known map[types.UID]map[string]role // by node ID
}

type role struct {
	shard               int
	master              bool
	told, deposed, seen time.Time
}

// forgotten is after how long nothing is remembered of a node that does not answer.
const forgotten = time.Hour

// NoteHandover notes that a replica of a cluster was told to take over.
func (o *Observer) NoteHandover(uid types.UID, nodeID string) {
	o.roles.mu.Lock()
	defer o.roles.mu.Unlock()
	if r, known := o.roles.known[uid][nodeID]; known {
		r.told = o.now()
		o.roles.known[uid][nodeID] = r
	}
}

// note fills in ToldAt and DeposedAt. A master is one no more when it says so, and when another
// instance of its shard becomes one.
func (r *roles) note(uid types.UID, s *snapshot.Snapshot, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known == nil {
		r.known = map[types.UID]map[string]role{}
	}
	if r.known[uid] == nil {
		r.known[uid] = map[string]role{}
	}
	nodes := r.known[uid]
	for _, in := range s.Reachable() {
		if was, known := nodes[in.Redis.NodeID]; known && !was.master && !in.Redis.Slots.IsEmpty() {
			depose(nodes, in.Shard, now)
		}
	}
	for _, in := range s.Reachable() {
		node, master := nodes[in.Redis.NodeID], !in.Redis.Slots.IsEmpty()
		if node.master && !master {
			node.deposed = now
		}
		if master {
			node.told = time.Time{}
		}
		node.shard, node.master, node.seen = in.Shard, master, now
		nodes[in.Redis.NodeID] = node
		in.Redis.ToldAt, in.Redis.DeposedAt = node.told, node.deposed
	}
	for id, node := range nodes {
		if now.Sub(node.seen) > forgotten {
			delete(nodes, id)
		}
	}
}

func depose(nodes map[string]role, shard int, now time.Time) {
	for id, r := range nodes {
		if r.master && r.shard == shard {
			r.master, r.deposed = false, now
			nodes[id] = r
		}
	}
}

func (r *roles) forget(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.known, uid)
}
