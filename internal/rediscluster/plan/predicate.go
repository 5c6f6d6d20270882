// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Predicate names a safety rule. Each answer carries its reason.
type Predicate string

// The safety predicates.
const (
	// SnapshotComplete: every instance of the topology exists and its Redis answered.
	SnapshotComplete Predicate = "snapshot_complete"
	// NoForeignNode: no instance is linked to a node that is not of this cluster.
	NoForeignNode Predicate = "no_foreign_node"
	// SlotsDisjoint: no slot is owned twice.
	SlotsDisjoint Predicate = "slots_disjoint"
	// NoUnownedKeys: an instance that owns no slot holds no key.
	NoUnownedKeys Predicate = "no_unowned_keys"
	// SlotsCovered: all 16384 slots are owned by reachable masters.
	SlotsCovered Predicate = "slots_covered"
	// NodeGone: a node ID is answered to by no pod, though all pods were asked.
	NodeGone Predicate = "node_gone"
	// NodeStopped: a node ID is answered to by no pod, and those that do not answer do not run.
	NodeStopped Predicate = "node_stopped"
	// MajorityLost: most masters that own slots are gone, so that no election can be won.
	MajorityLost Predicate = "majority_lost"
	// ShardHealthy: the instances that take part in a move serve, are in sync, and are linked
	// to the masters.
	ShardHealthy Predicate = "shard_healthy"
	// ReplicaInSync: a replica that stays has all of its master's data.
	ReplicaInSync Predicate = "replica_in_sync"
	// ClaimsUndisputed: no other node is taken for the owner of slots that an instance which is
	// to be introduced owns and has keys of.
	ClaimsUndisputed Predicate = "claims_undisputed"
	// DataFound: volumes that had data have some now.
	DataFound Predicate = "data_found"
	// OwnershipSettled: a master that is to give slots has not received any for so long that
	// nobody can still get a message of before.
	OwnershipSettled Predicate = "ownership_settled"
	// ClaimsAgreed: all instances answer and agree on what a master owns, and nothing of it changes.
	ClaimsAgreed Predicate = "claims_agreed"
	// OwnerNamed: nobody has claimed a slot for several node timeouts, every instance answers, and all other masters that know of an
	// owner name one master, which all are linked to; no other master holds keys of it.
	OwnerNamed Predicate = "owner_named"
	// FitsInMemory: the shards that stay have room for the data of those that go.
	FitsInMemory Predicate = "fits_in_memory"
	// Converged: the instances know each other as they are, serve, and are in sync.
	Converged Predicate = "converged"
	// WritesAccepted: the masters can write their data to disk, without which they refuse writes.
	WritesAccepted Predicate = "writes_accepted"
	// PodsReady: the pods of the instances are ready.
	PodsReady Predicate = "pods_ready"
	// MasterElected: the others have elected a master in the place of one that is gone.
	MasterElected Predicate = "master_elected"
	// TemplateObserved: the StatefulSets' controller has seen the template of now.
	TemplateObserved Predicate = "template_observed"
	// PodsGone: the pods and StatefulSets that were deleted are gone.
	PodsGone Predicate = "pods_gone"
	// EndpointsUpdated: every Kubernetes node has heard that a Service does not lead to an instance any more.
	EndpointsUpdated Predicate = "endpoints_updated"
	// ClientsRedirected: clients have stopped asking an instance for slots that have moved.
	ClientsRedirected Predicate = "clients_redirected"
	// SafeToRemove: an instance that the spec does not ask for holds nothing that the cluster needs.
	SafeToRemove Predicate = "safe_to_remove"
	// ForgottenByAll: the members know nobody but each other, and every instance was asked.
	ForgottenByAll Predicate = "forgotten_by_all"
	// NoBackup: no backup is being taken, or about to be, for which slots stay where they are.
	NoBackup Predicate = "no_backup"
	// ShardsRestored: the data of each shard of a backup lies in a claim, and its master has begun with all of it.
	ShardsRestored Predicate = "shards_restored"
	// SourceFollowed: the first instance of a new cluster has all that a server outside has, but for the last moment.
	SourceFollowed Predicate = "source_followed"
	// CutOverAsked: a person has asked for the cut-over from a server outside.
	CutOverAsked Predicate = "cut_over_asked"
	// DataOnDisk: all that instances hold is in files that outlive their pods, and it is written down where.
	DataOnDisk Predicate = "data_on_disk"
	// ServedOutside: gateways lead clients outside to an instance that is about to be told to them, at the address that it has now.
	ServedOutside Predicate = "served_outside"
	// PortsKnown: all instances tell clients by TLS the ports that the others announce.
	PortsKnown Predicate = "ports_known"
	// AllAtTLSStage: every instance answers and is as far on the way to TLS, or from it, as the next stage needs.
	AllAtTLSStage Predicate = "all_at_tls_stage"
	// CertificatesShown: all that the operator runs shows instances a certificate.
	CertificatesShown Predicate = "certificates_shown"
	// ModulesLoaded: no instance is still to restart with other modules.
	ModulesLoaded Predicate = "modules_loaded"
	// NotFenced: no instance that something needs is one that a person asks to have left alone.
	NotFenced Predicate = "not_fenced"
)

// Verdict is a predicate's answer. Reason is set when it does not hold.
type Verdict struct {
	Predicate Predicate
	Holds     bool
	Reason    string
}

// waitFor waits until a verdict holds, and looks again soon, unless it is a person's to change that.
func waitFor(v Verdict) Wait {
	wait := Wait{base: base{v.Reason}, BlockedBy: v.Predicate, After: soon}
	if v.Predicate == NotFenced {
		wait.After = 0
	}
	return wait
}

func holds(p Predicate) Verdict { return Verdict{Predicate: p, Holds: true} }

func fails(p Predicate, format string, args ...any) Verdict {
	return Verdict{Predicate: p, Reason: fmt.Sprintf(format, args...)}
}

func snapshotComplete(in input) Verdict {
	return in.complete(func(*snapshot.Instance) bool { return false })
}

// complete is snapshotComplete but for pods that are excused.
func (in input) complete(excused func(*snapshot.Instance) bool) Verdict {
	for shard, n := range in.topology {
		for ordinal := range int(n) {
			name := fmt.Sprintf("instance %d of shard %d", ordinal, shard)
			switch pod := in.snap.Find(shard, ordinal); {
			case in.notRequired(shard, ordinal).Holds:
			case pod == nil:
				return fails(SnapshotComplete, "%s has no pod yet%s", name, taken(in.snap, shard, ordinal))
			case excused(pod):
			case pod.Waiting != "":
				return fails(SnapshotComplete, "%s: %s%s", pod.Name, pod.Waiting, in.roomier(pod))
			case pod.Redis == nil:
				return fails(SnapshotComplete, "%s does not answer: %s", pod.Name, pod.Error)
			}
		}
	}
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.Redis == nil && !pod.Terminating && !excused(pod) && !in.notRequired(pod.Shard, pod.Ordinal).Holds {
			return fails(SnapshotComplete, "%s does not answer: %s", pod.Name, pod.Error)
		}
	}
	return holds(SnapshotComplete)
}

// taken says who has the name of an instance without a pod; empty when nobody does.
func taken(s *snapshot.Snapshot, shard, ordinal int) string {
	for _, pod := range s.Taken {
		if pod.Shard == shard && pod.Ordinal == ordinal {
			return fmt.Sprintf(": pod %s exists and does not belong to its StatefulSet: delete it", pod.Name)
		}
	}
	return ""
}

// roomier says what helps an instance that finds no node of its own; empty for others.
func (in input) roomier(pod *snapshot.Instance) string {
	if !in.desired.Apart || !strings.Contains(pod.Waiting, "topology spread constraints") {
		return "" // the scheduler gives other reasons
	}
	return fmt.Sprintf("; spec.antiAffinity is Required, so the %d instances of shard %d need a node each: add nodes, or set it to Preferred",
		in.topology[pod.Shard], pod.Shard)
}

func slotsCovered(s *snapshot.Snapshot) bool { return s.Owned().Len() == slots.Count }

func knows(a, b *snapshot.Instance) bool {
	_, ok := a.Redis.Peers[b.Redis.NodeID]
	return ok
}

func sortedPeers(r *snapshot.Redis) []string {
	ids := make([]string, 0, len(r.Peers))
	for id := range r.Peers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

func short(id string) string { return id[:min(len(id), 8)] }

// list joins names for a sentence, and cuts a long list.
func list(names []string) string {
	const most = 6
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
