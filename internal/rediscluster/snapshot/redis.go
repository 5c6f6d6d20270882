// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/redis/stats"
)

// AppendOnlyError is the field of INFO that says that Redis could not write to its append-only file, or sync it.
const AppendOnlyError = "aof_last_write_status"

// Redis is an instance's own view of itself and of its peers.
type Redis struct {
	// AnsweredAt is when it said so, AnsweredIn how long that took.
	AnsweredAt time.Time
	AnsweredIn time.Duration

	NodeID   string
	Master   bool
	MasterID string
	// Replicas is how many replicas a master has that are in sync with it, as far as it knows.
	Replicas int
	// MasterLinkUp and MasterLinkDownFor are about a replica's link to its master.
	MasterLinkUp      bool
	MasterLinkDownFor time.Duration
	// MasterLinkLost reports whether the link is down and was up before in this process.
	MasterLinkLost bool
	// Syncing reports whether it is being sent all of its master's data.
	Syncing bool
	// MasterIP is where a replica whose link is down looks for its master; empty when that is not known.
	MasterIP string
	Offset   int64
	// FormerHistory is the history of the data until the instance became a master, in this process; empty when there was none.
	// FormerOffset is where the data was then.
	FormerHistory string
	FormerOffset  int64
	// Keys are all keys. KeysWithTTL of them have a time to live, KeysWithFieldTTL are hashes with fields that have one.
	Keys, KeysWithTTL, KeysWithFieldTTL int64
	Version, Engine                     string
	// ClusterOK is the instance's own cluster_state.
	ClusterOK bool
	Epoch     uint64
	// NodeTimeout is the cluster-node-timeout in force.
	NodeTimeout time.Duration
	// Settings are the settings in force, as far as they were asked for; nil when they were
	// not. The engine does not have one that is missing.
	Settings map[string]string
	Slots    slots.Set
	// Migrating and Importing are the open slots of the instance: slot to the node ID of
	// the other side.
	Migrating map[uint16]string
	Importing map[uint16]string
	// OpenKeys are how many keys a master holds in slots that are open at any master;
	// slots without keys are left out. Nil when it was not asked or did not answer.
	OpenKeys map[uint16]int64
	// UsedMemory is what Redis has allocated, MaxMemory its maxmemory (0: none). Bytes.
	UsedMemory, MaxMemory int64
	// AppendOnlySize is what the append-only file takes, in bytes; 0 without one.
	AppendOnlySize int64
	// PersistenceError is the field of INFO that says that Redis could not write its data to disk, such as AppendOnlyError; empty when it
	// could.
	PersistenceError string
	// Unsaved reports whether its data may be in no file: the append-only file is being written anew, as after all was copied.
	Unsaved bool
	// Rewriting reports whether the append-only file is being written anew, or is to be, Rewritten whether that has come to its end, and
	// nothing was appended since. RewriteAt is when the operator asked for that; zero: not in the last hour.
	Rewriting, Rewritten bool
	RewriteAt            time.Time
	// Loading reports whether it still reads its data from disk. Most engines do not answer as long as that.
	Loading bool
	// LoadErrors is how many commands of its append-only file, or of its master, the process could not carry out.
	LoadErrors int64
	// RedirectedAt is when a client last took the instance for the owner of a slot that it does
	// not own (it answered MOVED), as far as that was seen; the first look counts too.
	RedirectedAt time.Time
	// SwitchoverAt is when a replica was told to take over, which it has not done yet; DemotedAt when
	// the instance was last seen to be a master no more. Zero when neither was seen.
	SwitchoverAt, DemotedAt time.Time
	// ReceivedAt is when the instance was last seen to own slots that it had not owned before; the
	// first look counts too.
	ReceivedAt time.Time
	// Libraries is the number of function libraries.
	Libraries int64
	// Stats are the figures that are told as metrics.
	Stats stats.Values
	// SlowCommands is how many commands its process has called slow; negative: it does not say.
	SlowCommands int64
	// Atomic is how the engine moves whole slots by itself; empty when it cannot.
	Atomic slots.AtomicMethod
	// Jobs are the atomic migrations under way that the instance takes part in.
	Jobs []Job
	// Peers are the other nodes that the instance knows, by node ID.
	Peers map[string]Peer
	// OldCertificate reports whether the instance showed another certificate than the Secret's when
	// it was last looked at; CertificateSeen that this was in this reconciliation.
	OldCertificate, CertificateSeen bool
	// AuthoritiesLoadedFor is how long after the first time the instance last loaded its files, of those times since what is trusted is
	// what it is, and the instance has answered at every look; 0: it did so once, or never.
	AuthoritiesLoadedFor time.Duration
	// Access is what the instance accepts; nil when that was not asked or not answered.
	Access *Access
}

// MostOnDisk is what the files of the instance may take, in bytes, at the most: the append-only file as it is, one that is written beside
// it or a snapshot that is, and the last snapshot. Those are hardly larger than what Redis has allocated, without buffers of clients.
func (r *Redis) MostOnDisk() int64 {
	data := r.UsedMemory
	if buffers := r.Stats[clientBuffers]; buffers > 0 {
		data -= min(data, int64(buffers))
	}
	return r.AppendOnlySize + 2*data
}

var clientBuffers = stats.Index("memory_clients_bytes")

// Job is an atomic migration of slots that an engine is carrying out.
type Job struct {
	Slots              slots.Set
	SourceID, TargetID string
	// HandingOver reports whether the target may take the slots over at any moment, as far as the instance knows.
	HandingOver bool
}

// Peer is another node as one instance sees it.
type Peer struct {
	ID, IP string
	// Port is where clients find the peer that are connected as the operator is.
	Port      int
	Master    bool
	MasterID  string
	Failed    bool
	Suspected bool
	Handshake bool
	// NoAddress reports whether another node answers where the peer was.
	NoAddress bool
	// Connected reports whether the cluster-bus link to the peer is up.
	Connected bool
	// Epoch is the configuration epoch of the peer, or of its master, as far as the instance knows.
	Epoch uint64
	// LastPong is when the peer last answered, as far as the instance knows; zero when never.
	LastPong time.Time
	Slots    slots.Set
}

// ExecutedOn is the node ID of the end that is told about the job.
func (j Job) ExecutedOn(method slots.AtomicMethod) string {
	if method == slots.AtomicDestination {
		return j.TargetID
	}
	return j.SourceID
}

// Empty reports whether the instance holds no key, owns no slot and knows nobody.
func (r *Redis) Empty() bool {
	return r.Keys == 0 && r.Slots.Len() == 0 && r.Isolated()
}

// Isolated reports whether the instance knows no other node.
func (r *Redis) Isolated() bool { return len(r.Peers) == 0 }

// EngineVersion is what the instance runs, such as redis 7.0.15.
func (r *Redis) EngineVersion() string { return r.Engine + " " + r.Version }
