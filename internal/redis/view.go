// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redis

import (
	"time"

	"middleware.hc.cn/operator/internal/redis/replication"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
)

// View is what one node says about itself and about its cluster at one moment. It is plain data; each node has a view
// of its own, and views of different nodes may disagree.
type View struct {
	// NodeID is the node's cluster identity, 40 hex digits. It outlives restarts and address changes.
	NodeID string
	// RunID is the identity of the server process, 40 hex digits. It changes with every restart.
	RunID string
	// Engine and Version are what the node runs, such as redis 7.0.15 or valkey 9.1.2.
	Engine  Engine
	Version string
	// Uptime is how long the process has been running, in whole seconds.
	Uptime time.Duration

	// Role is master or replica.
	Role Role
	// Replicas is how many replicas a master has that are in sync with it, as far as it knows.
	Replicas int
	// MasterID is the node ID of the master that a replica follows; empty for a master.
	MasterID string
	// MasterLinkUp is true while a replica's connection to its master is established and its initial synchronization
	// is done. It is false for a master.
	MasterLinkUp bool
	// MasterLinkDownFor is how long a replica has been without its master, in whole seconds; zero while the link is up
	// and for a master. A replica that never had the link since it started counts from its start.
	MasterLinkDownFor time.Duration
	// MasterLinkLost is true for a replica whose link is down and was up before since it started.
	MasterLinkLost bool
	// Syncing is true for a replica that is being sent all of its master's data.
	Syncing bool
	// MasterIP is where a replica whose link is down looks for its master; empty when it looks nowhere, or by a name.
	MasterIP string
	// ReplicationOffset is how many bytes of its replication stream the node has produced (a master) or processed
	// (a replica). Offsets compare only within one shard.
	ReplicationOffset int64
	// FormerHistory is the history of the data until the node became a master, and where that was; without an ID there was none in this
	// process.
	FormerHistory replication.Position

	// Loading is true while the node reads its data set from disk and serves nothing.
	Loading bool
	// Keys is the number of keys the node holds, in all of its databases. KeysWithTTL of them have a time to live, and
	// KeysWithFieldTTL are hashes with fields that have one, and go with the last of these.
	Keys, KeysWithTTL, KeysWithFieldTTL int64
	// UsedMemory is what the engine has allocated, MaxMemory the limit it was given (0: none). Bytes.
	UsedMemory, MaxMemory int64
	// AppendOnlySize is what the append-only file takes, in bytes; 0 without one.
	AppendOnlySize int64
	// LoadErrors is how many commands of its append-only file, or of its master, the process could not carry out
	// (unexpected_error_replies): a server starts in spite of them.
	LoadErrors int64
	// PersistenceError is the field of INFO that says that the data could not be written to disk; empty when it could.
	PersistenceError string
	// Unsaved reports whether the append-only file is being written anew: what was copied from a master may be in no file.
	Unsaved bool
	// Rewriting reports whether the append-only file is being written anew, or is to be, Rewritten whether that has come to its end, and
	// nothing was appended since: its disk had room for all that the node holds.
	Rewriting, Rewritten bool
	// Redirections is how many commands the node has answered with MOVED since it started.
	Redirections int64
	// Libraries is the number of function libraries (FUNCTION LOAD).
	Libraries int64
	// Stats are the figures that are told as metrics.
	Stats stats.Values
	// SlowCommands is how many commands took longer than slowlog-log-slower-than since the process began; -1: it does not say.
	SlowCommands int64

	// ClusterState is the node's own opinion whether the cluster serves.
	ClusterState ClusterState
	// SlotsAssigned is how many slots have an owner as far as this node knows, 0 to slots.Count.
	SlotsAssigned int
	// CurrentEpoch is the highest configuration epoch the node has heard of. ConfigEpoch is its own one (a replica
	// shows its master's).
	CurrentEpoch, ConfigEpoch uint64

	// NodeTimeout is the node's cluster-node-timeout in force.
	NodeTimeout time.Duration
	// Settings are the values in force of the settings that were asked for; one that the engine does not have is
	// missing.
	Settings map[string]string

	// Slots are the slots the node itself owns. A replica owns none.
	Slots slots.Set
	// Migrating are the slots the node is giving away, Importing those it is receiving: slot to the node ID of the other
	// side. They are nil when no slot is open. From Valkey 8 on, a replica shows those of its master.
	Migrating, Importing map[uint16]string

	// Atomic is how the engine moves slots on its own.
	Atomic slots.AtomicMethod
	// SlotMigrations are the jobs of that kind which are under way, as this node sees them, the latest first: it may be
	// the source, the target or a replica of the target. nil when there is none.
	SlotMigrations []SlotMigration

	// Peers is the node's table of the cluster, the node itself included, in the order the node told it. Nodes with
	// which it still shakes hands are in it under an ID that is not theirs (see Peer.Flags).
	Peers []Peer
}

// Peer is one line of a node's table: what the node knows of one member of the cluster, itself included.
type Peer struct {
	// ID is the node ID, 40 hex digits; a made-up one as long as the flag handshake is set.
	ID string
	// IP and Port are where clients and the operator reach the node, BusPort is the port of the cluster bus. IP is
	// empty when the node has not learned it: its own before the first MEET, or with the flag noaddr.
	IP            string
	Port, BusPort int
	// Hostname is the announced DNS name, empty when there is none.
	Hostname string
	// Flags are the roles and states this node gives the peer.
	Flags PeerFlags
	// MasterID is the node ID of the peer's master; empty for a master and when it is not known.
	MasterID string
	// PingSent is when the oldest unanswered ping left, PongReceived when the last pong came; zero for none. They are
	// times of the observing node's clock, PongReceived to the millisecond.
	PingSent, PongReceived time.Time
	// ConfigEpoch is the peer's configuration epoch (of its master, for a replica).
	ConfigEpoch uint64
	// LinkConnected is true while this node's cluster bus connection to the peer is established; always true for
	// itself.
	LinkConnected bool
	// Slots are the slots the peer owns.
	Slots slots.Set
}

// Self is the node's line about itself; false when the node did not tell one.
func (v View) Self() (Peer, bool) {
	for _, p := range v.Peers {
		if p.Flags.Has(FlagMyself) {
			return p, true
		}
	}
	return Peer{}, false
}

// Peer is the line about the node with the given ID; false when the node does not know it.
func (v View) Peer(id string) (Peer, bool) {
	for _, p := range v.Peers {
		if p.ID == id {
			return p, true
		}
	}
	return Peer{}, false
}

// Engine is the family of the server.
type Engine string

// The engines.
const (
	EngineRedis  Engine = "redis"
	EngineValkey Engine = "valkey"
)

// Role is a node's place in its shard.
type Role string

// The roles. The protocol's word slave is called replica here.
const (
	RoleMaster  Role = "master"
	RoleReplica Role = "replica"
)

// ClusterState is a node's opinion of the cluster: ok, or fail when it refuses to serve keys.
type ClusterState string

// The states.
const (
	ClusterOK   ClusterState = "ok"
	ClusterFail ClusterState = "fail"
)
