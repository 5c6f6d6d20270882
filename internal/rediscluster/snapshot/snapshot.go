// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package snapshot is what one pass saw of a RedisCluster: plain values that deciding
// and reporting are computed from. What could not be read is Unknown, never absent.
package snapshot

import (
	"net"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
)

// Snapshot is what one pass saw.
type Snapshot struct {
	// Shards are the StatefulSets that exist, by shard number.
	Shards []Shard
	// Instances are the pods that exist, by shard and ordinal.
	Instances []Instance
	// Claims are the instances' persistent volume claims, by name.
	Claims []Claim
	// Auth is what is known of the password.
	Auth Auth
	// Pending names the children that are not as the chart renders them.
	Pending []string
	// HasOwnedChildren says that some child still names the RedisCluster as its owner.
	HasOwnedChildren bool
	// RollingSince is when the roll-out that is under way began; zero when none is.
	RollingSince time.Time
	// Formed says that the cluster has been as it should be once before.
	Formed bool
	// Scaling says that the cluster was on its way to another topology in the last pass.
	Scaling bool
	// Seen are node IDs that instances of this cluster have answered to before.
	Seen map[string]bool
	// Goal is which shard is to own which slots, as recorded when a scaling began; nil
	// when no slots are to move.
	Goal *Goal
}

// Goal is which shard is to own which slots.
type Goal struct {
	// For is what the goal was computed for: another desire makes another goal.
	For string
	// From is how many shards owned slots when the scaling began.
	From int
	// Shards are the slots that each shard is to own, by shard number. Together they are
	// all slots, each once.
	Shards []slots.Set
}

// Shard is one StatefulSet.
type Shard struct {
	Index     int
	Name      string
	Replicas  int32
	CreatedAt time.Time
	// Terminating says that the StatefulSet is being deleted.
	Terminating bool
	// UpdateRevision is the revision of the template that new pods get.
	UpdateRevision string
	// ClaimSize is what the claim template requests, such as 1Gi; empty without one.
	ClaimSize string
}

// Claim is a persistent volume claim.
type Claim struct {
	Name string
	// Requested is the storage asked for, in bytes.
	Requested int64
}

// Auth is what is known of the password.
type Auth struct {
	// Known says that the password is known, or that none is needed.
	Known bool
	// Absent says that the operator's Secret was seen not to exist.
	Absent bool
	// Problem says why the password is not known, with a remedy.
	Problem string
}

// Instance is one pod and the Redis in it.
type Instance struct {
	Name       string
	Shard      int
	Ordinal    int
	IP         string
	DomainName string
	NodeName   string
	HostIP     string
	// Ready is the pod's own readiness.
	Ready bool
	// Gated says that the pod is ready only while it is Serving: then the Service leads
	// clients to it. DismissedAt is when Serving was taken away.
	Gated, Serving bool
	DismissedAt    time.Time
	// Terminating says that the pod is being deleted.
	Terminating bool
	// Waiting says why the pod does not run, empty when it does.
	Waiting string
	// Revision is the revision of the template that the pod was made from.
	Revision string
	// Redis is nil when Redis could not be asked; Error says why.
	Redis *Redis
	Error string
	// Redirections is how many commands the instance has answered with MOVED.
	Redirections int64
	// Refused says that Redis refused the password.
	Refused bool
	// MemoryLimit is what the Redis container may use, in bytes; 0 without a limit.
	MemoryLimit int64
}

// Address is where clients and the operator reach the instance's Redis.
func (in *Instance) Address() string { return Address(in.IP) }

// Address is where the Redis of an instance with that IP listens.
func Address(ip string) string { return net.JoinHostPort(ip, "6379") }

// Redis is an instance's own view of itself and of its peers.
type Redis struct {
	NodeID   string
	Master   bool
	MasterID string
	// MasterLinkUp and MasterLinkDownFor are about a replica's link to its master.
	MasterLinkUp      bool
	MasterLinkDownFor time.Duration
	Offset            int64
	Keys              int64
	Version           string
	Engine            string
	// ClusterOK is the instance's own cluster_state.
	ClusterOK bool
	Epoch     uint64
	// NodeTimeout is the cluster-node-timeout in force.
	NodeTimeout time.Duration
	Slots       slots.Set
	// Migrating and Importing are the open slots of the instance: slot to the node ID of
	// the other side.
	Migrating map[uint16]string
	Importing map[uint16]string
	// OpenKeys are how many keys a master holds in slots that are open at any master;
	// slots without keys are left out. Nil when it was not asked or did not answer.
	OpenKeys map[uint16]int64
	// UsedMemory is what Redis has allocated, MaxMemory its maxmemory (0: none). Bytes.
	UsedMemory, MaxMemory int64
	// AskedAt is when a client last took the instance for the owner of a slot that it does
	// not own (it answered MOVED), as far as that was seen; the first look counts too.
	AskedAt time.Time
	// Libraries is the number of function libraries.
	Libraries int64
	// Atomic is how the engine moves whole slots by itself; empty when it cannot.
	Atomic AtomicMethod
	// Jobs are the atomic migrations under way that the instance takes part in.
	Jobs []Job
	// Peers are the other nodes that the instance knows, by node ID.
	Peers map[string]Peer
}

// AtomicMethod is a command that moves whole slots.
type AtomicMethod string

// The atomic methods; the values are those of package redis.
const (
	// AtomicSource is told to the master that gives the slots.
	AtomicSource AtomicMethod = "CLUSTER MIGRATESLOTS"
	// AtomicDestination is told to the master that receives them.
	AtomicDestination AtomicMethod = "CLUSTER MIGRATION IMPORT"
)

// Job is an atomic migration of slots that an engine is carrying out.
type Job struct {
	Slots              slots.Set
	SourceID, TargetID string
}

// ToldTo is the node ID of the end that is told about the job.
func (j Job) ToldTo(method AtomicMethod) string {
	if method == AtomicDestination {
		return j.TargetID
	}
	return j.SourceID
}

// Peer is another node as one instance sees it.
type Peer struct {
	ID, IP    string
	Master    bool
	MasterID  string
	Failed    bool
	Suspected bool
	Handshake bool
	// Connected says that the cluster-bus link to the peer is up.
	Connected bool
	Slots     slots.Set
}

// Reachable are the instances whose Redis answered.
func (s *Snapshot) Reachable() []*Instance {
	var reachable []*Instance
	for i := range s.Instances {
		if s.Instances[i].Redis != nil {
			reachable = append(reachable, &s.Instances[i])
		}
	}
	return reachable
}

// ByNodeID finds the instance that answers to a node ID; nil when none does.
func (s *Snapshot) ByNodeID(id string) *Instance {
	for i := range s.Instances {
		if r := s.Instances[i].Redis; r != nil && r.NodeID == id {
			return &s.Instances[i]
		}
	}
	return nil
}

// Find finds the instance of a shard by its ordinal; nil when its pod does not exist.
func (s *Snapshot) Find(shard, ordinal int) *Instance {
	for i := range s.Instances {
		if in := &s.Instances[i]; in.Shard == shard && in.Ordinal == ordinal {
			return in
		}
	}
	return nil
}

// Owned is the union of what reachable masters say they own.
func (s *Snapshot) Owned() slots.Set {
	var owned slots.Set
	for _, in := range s.Reachable() {
		owned = owned.Union(in.Redis.Slots)
	}
	return owned
}

// Masters are, by shard number, the reachable instances that own slots; of several in
// one shard the one that owns most.
func (s *Snapshot) Masters() map[int]*Instance {
	masters := map[int]*Instance{}
	for _, in := range s.Reachable() {
		n := in.Redis.Slots.Len()
		if best := masters[in.Shard]; n > 0 && (best == nil || n > best.Redis.Slots.Len()) {
			masters[in.Shard] = in
		}
	}
	return masters
}

// Empty says that the instance holds no key, owns no slot and knows nobody.
func (r *Redis) Empty() bool {
	return r.Keys == 0 && r.Slots.Len() == 0 && r.Isolated()
}

// Isolated says that the instance knows no other node.
func (r *Redis) Isolated() bool { return len(r.Peers) == 0 }
