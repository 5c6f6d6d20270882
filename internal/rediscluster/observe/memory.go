// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Memory is what is remembered of one cluster from one reconciliation to the next. Without it nothing is wrong, but asked
// again, or not known yet. One reconciliation at a time may use it. The zero value remembers nothing.
type Memory struct {
	access      access.Memory
	certificate certificate
	config      configRead
	// ids are the node IDs that instances have answered to.
	ids map[string]bool
	// redirected is when each instance last redirected a client, by node ID.
	redirected map[string]redirected
	// roles are by node ID, answers by the UIDs of pods, normalized by settings.
	roles      map[string]role
	answers    map[string]answer
	normalized map[string]normalized
	// disowned are slots that were disowned at every look since disownedSince.
	disowned      slots.Set
	disownedSince time.Time
	archive       archiveMemory
	external      externalMemory
	overlay       overlayMemory
	weighing      weighing
	// ways are how instances were reached last, by the UIDs of their pods; the usual one is not kept.
	ways map[string]snapshot.Way
	// mounted reports whether a pod has the files of a certificate; plainly, that all instances take plain connections still.
	mounted, plainly bool
	// restoring is how far the Jobs are that restore shards, by their UIDs.
	restoring map[types.UID]*backupjob.Listener
}

// NoteUsersRefused remembers that an instance refused the rules of users, and why.
func (m *Memory) NoteUsersRefused(users []access.User, why string) { m.access.NoteRefused(users, why) }

// ExpireAccess makes the next reconciliation read the Secrets of the password and the users.
func (m *Memory) ExpireAccess() { m.access.Expire() }

// Access is what instances are to accept, as last read; nil when it is not known.
func (m *Memory) Access() *access.State {
	if last, known := m.access.Get(); known {
		return last.State
	}
	return nil
}

// redirected is how often a node had redirected clients when it did so last: Redis only counts.
type redirected struct {
	count int64
	at    time.Time
}

// noteRedirected compares the counts with those of before and fills in RedirectedAt. Nodes that are not
// among the instances any more are dropped.
func (m *Memory) noteRedirected(s *snapshot.Snapshot, now time.Time) {
	after := map[string]redirected{}
	for _, in := range s.Reachable() {
		r, known := m.redirected[in.Redis.NodeID]
		if !known || r.count != in.Redirections {
			r = redirected{count: in.Redirections, at: now}
		}
		after[in.Redis.NodeID] = r
		in.Redis.RedirectedAt = r.at
	}
	m.redirected = after
}

// mostSeen is how many node IDs are remembered before those are dropped that nobody mentions any more. Instances get a new ID
// with an empty volume, some as often as they like.
const mostSeen = 4096

// noteIDs notes the IDs of a snapshot, and those of the last status after a restart of the
// operator, and returns all that were seen before or now.
func (m *Memory) noteIDs(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) map[string]bool {
	if m.ids == nil {
		m.ids = map[string]bool{}
		for _, node := range cluster.Status.Nodes {
			if node.NodeID != "" {
				m.ids[node.NodeID] = true
			}
		}
	}
	for _, in := range s.Reachable() {
		m.ids[in.Redis.NodeID] = true
	}
	if len(m.ids) > mostSeen {
		maps.DeleteFunc(m.ids, func(id string, _ bool) bool { return !mentioned(s, id) })
	}
	return maps.Clone(m.ids)
}

// mentioned reports whether an instance answers to the ID, or knows a node of that ID.
func mentioned(s *snapshot.Snapshot, id string) bool {
	for _, in := range s.Reachable() {
		if _, known := in.Redis.Peers[id]; known || in.Redis.NodeID == id {
			return true
		}
	}
	return false
}

// normalized is a value that an engine took and shows in other words, so that it is not set for ever.
type normalized struct{ value, shown string }

// NoteNormalized notes that the cluster's engine shows a value that it was given in other words.
func (m *Memory) NoteNormalized(name, value, shown string) {
	if m.normalized == nil {
		m.normalized = map[string]normalized{}
	}
	m.normalized[name] = normalized{value: value, shown: shown}
}

// putGiven puts the value that was given in place of the one that is shown.
func (m *Memory) putGiven(s *snapshot.Snapshot) {
	for name, n := range m.normalized {
		for _, in := range s.Reachable() {
			if in.Redis.Settings[name] == n.shown {
				in.Redis.Settings[name] = n.value
			}
		}
	}
}
