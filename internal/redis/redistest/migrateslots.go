// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redistest

import (
	"maps"
	"slices"

	"middleware.hc.cn/operator/internal/redis/slots"
)

const (
	lostTarget = "Connection lost to target. Check CLUSTER GETSLOTMIGRATIONS on the target node for more information."
	lostSource = "Connection lost to source. Check CLUSTER GETSLOTMIGRATIONS on the source node for more information."
)

// proceedJobs takes each migration a step further (clusterSlotMigrationCron, proceedWithSlotMigration).
func (n *Node) proceedJobs() {
	for _, j := range n.running(exportJob) {
		n.proceedExport(j)
	}
	for _, j := range n.running(importJob) {
		n.watchSource(j)
	}
}

func (n *Node) proceedExport(j *job) {
	target, reachable := n.otherEnd(j.target)
	switch {
	case n.find(j.target) == nil:
		n.setJob(j, "failed", "Unable to connect to target node: target node not found")
	case !reachable:
		n.waitFor(j)
	case j.state == "connecting":
		n.establish(j, target)
	case target == nil || len(target.running(j.isOtherEnd)) == 0:
		n.setJob(j, "failed", lostTarget)
	case n.world.now.Sub(j.created) < n.world.options.SlotMigrationTime:
		j.acked = n.world.now
	default:
		n.setJob(j, "failover-granted", "")
		target.claim(target.running(j.isOtherEnd)[0], n)
	}
}

func (j *job) isOtherEnd(other *job) bool {
	return other.name == j.name && other.isImport != j.isImport && other.state != "occurring-on-primary"
}

// otherEnd is the living node with the ID, nil when there is none. It is not reachable from the other side of a partition.
func (n *Node) otherEnd(id string) (node *Node, reachable bool) {
	for _, other := range n.world.nodes {
		if other.id == id && other.alive() {
			return other, n.world.isolated[other] == n.world.isolated[n]
		}
	}
	return nil, true
}

func (n *Node) waitFor(j *job) {
	if n.world.now.Sub(j.acked) > jobTimeout {
		n.setJob(j, "failed", "Timed out after too long with no interaction")
	}
}

// establish asks the target to import (clusterCommandSyncSlotsEstablish).
func (n *Node) establish(j *job, target *Node) {
	if target == nil {
		n.setJob(j, "failed", "Unable to connect to target node: Connection refused")
		return
	}
	refusal := target.refuseJobs()
	source := target.find(n.id)
	switch {
	case refusal != "":
	case source == nil:
		refusal = "ERR Target node does not know the source node"
	case !j.slots.Intersect(target.jobSlots(importJob)).IsEmpty():
		refusal = "ERR Slot is already being imported on the target by a different migration"
	case !j.slots.Subtract(source.slots).IsEmpty():
		refusal = "ERR Target node does not agree about current slot ownership"
	}
	if refusal != "" {
		n.setJob(j, "failed", "Received error during handshake to target: -"+string(refusal)+"\r\n")
		return
	}
	now := n.world.now
	target.jobs = append([]*job{{
		name: j.name, isImport: true, slots: j.slots, ranges: j.ranges, source: j.source, target: j.target,
		created: now, updated: now, acked: now, state: "receiving-snapshot",
	}}, target.jobs...)
	n.setJob(j, "snapshotting", "")
}

// claim ends an import: the node has the keys and takes over the slots (performSlotImportJobFailover).
func (n *Node) claim(j *job, source *Node) {
	for _, key := range source.keysIn(j.slots) {
		n.put(key, source.keys[key])
	}
	n.bumpEpoch()
	n.assign(j.slots, n.self())
	n.setJob(j, "success", "")
	n.broadcast()
	n.updateState()
	for _, replica := range n.syncedReplicas() {
		replica.keys, replica.offset = maps.Clone(n.keys), n.offset // the snapshot was replicated before
	}
}

// trackJobs notes the imports of the replica's master, which come with its data (SLOT_IMPORT_OCCURRING_ON_PRIMARY).
func (n *Node) trackJobs(master *Node) {
	for _, imported := range slices.Backward(master.jobs) {
		if !imported.isImport {
			continue
		}
		at := slices.IndexFunc(n.jobs, func(j *job) bool { return j.name == imported.name })
		if at < 0 {
			n.jobs, at = append([]*job{{}}, n.jobs...), 0
		}
		*n.jobs[at] = *imported
		n.jobs[at].isTracking = true
		if imported.inProgress() {
			n.jobs[at].state = "occurring-on-primary"
		}
	}
}

// watchSource notices that a migration ended at the other end (clusterHandleSlotMigrationClientClose).
func (n *Node) watchSource(j *job) {
	source, reachable := n.otherEnd(j.source)
	switch {
	case j.state == "occurring-on-primary":
	case !reachable:
		n.waitFor(j)
	case source == nil || len(source.running(j.isOtherEnd)) == 0:
		n.setJob(j, "failed", lostSource)
	default:
		j.acked = n.world.now
	}
}

// granted is the slots that the target of a migration may take whatever its epoch (clusterSlotFailoverGranted).
func (n *Node) granted() slots.Set {
	return n.jobSlots(func(j *job) bool { return exportJob(j) && j.state == "failover-granted" })
}

// reconcileJobs ends migrations of slots that have changed hands (clusterUpdateSlotExportsOnOwnershipChange,
// clusterUpdateSlotImportsOnOwnershipChange).
func (n *Node) reconcileJobs() {
	for _, j := range n.running(exportJob) {
		switch owner := n.soleOwner(j.slots); {
		case owner == n.self():
		case owner != nil && owner.id == j.target:
			n.setJob(j, "success", "")
		default:
			n.setJob(j, "failed", "Slots are no longer owned by myself")
		}
	}
	for _, j := range n.running(importJob) {
		switch owner := n.soleOwner(j.slots); {
		case n.self().replica:
			j.isTracking = true
			n.setJob(j, "occurring-on-primary", "")
		case owner == nil || owner.id == j.source:
		case owner == n.self():
			n.setJob(j, "failed", "Slots were unexpectedly assigned to myself during import")
		default:
			n.setJob(j, "failed", "Slots are no longer owned by source node")
		}
	}
}

// soleOwner is the entry that owns all of the slots, nil when there is none.
func (n *Node) soleOwner(set slots.Set) *peer {
	for _, p := range n.table {
		if set.Subtract(p.slots).IsEmpty() {
			return p
		}
	}
	return nil
}
