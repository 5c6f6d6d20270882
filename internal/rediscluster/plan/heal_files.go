// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// ForceDelete removes the object of a pod whose node does not answer, so that the instance can
// start elsewhere. A kubelet that comes back ends what still runs of it.
type ForceDelete struct {
	base
	Pod, UID string
}

// Recreate gives an instance that cannot read its own files, or has old ones, an empty claim, and so a new node
// ID: it copies the data of its shard's master.
type Recreate struct {
	base
	Pod, UID string
	// Claim is the claim to delete first; empty when the data goes with the pod.
	Claim snapshot.Claim
}

// Name implements Step.
func (ForceDelete) Name() string { return "ForceDelete" }

// Name implements Step.
func (Recreate) Name() string { return "Recreate" }

// terminationTimeout is how long after the end of its grace period a pod may still be there. A
// kubelet that works has ended it by then.
const terminationTimeout = 30 * time.Second

// planForceDelete lets an instance go whose pod was to stop and does not: its node is lost. Nobody
// else does: Kubernetes waits for the kubelet. It is proven that the cluster goes on without it:
// every slot is owned by an instance that answers, and all of those say that it has failed, so
// that a Redis which still runs there is in a minority and takes no writes.
func planForceDelete(in input) Step {
	if !in.snap.Formed || !slotsCovered(in.snap) {
		return nil
	}
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if !pod.Terminating || pod.Fenced || pod.Redis != nil || pod.StopBy.IsZero() || in.now.Sub(pod.StopBy) < terminationTimeout ||
			!failedForAll(in.snap, pod) {
			continue
		}
		return ForceDelete{
			base: base{fmt.Sprintf(
				"%s was to stop %s ago and its node %s does not say that it has; the other instances count it as failed, and own all slots", pod.Name,
				in.now.Sub(pod.StopBy).Round(time.Second), pod.NodeName)}, Pod: pod.Name, UID: pod.UID}
	}
	return nil
}

// failedForAll reports whether every instance that answers counts the node at a pod's address as
// failed, or does not know it.
func failedForAll(s *snapshot.Snapshot, pod *snapshot.Instance) bool {
	for _, in := range s.Reachable() {
		for _, peer := range in.Redis.Peers {
			if peer.IP == pod.IP && !peer.Failed {
				return false
			}
		}
	}
	return true
}

// corruptions are what Redis and Valkey say when they end because of the content of their own files: cluster.c, aof.c and rdb.c.
var corruptions = []string{
	"corrupted cluster config file",
	"Bad file format reading the append only file",
	"Unrecoverable error reading the append only file",
	"Short read or OOM loading DB",
	"Error reading the RDB file",
	"Wrong signature trying to load DB from file",
}

// Corruption is what a server's termination message says is wrong with its own files; empty when they
// say nothing of that.
func Corruption(message string) string {
	for _, words := range corruptions {
		if strings.Contains(message, words) {
			return words
		}
	}
	return ""
}

// planRecreate replaces the data of an instance that cannot start because its files are damaged,
// if another instance of its shard owns slots, so that what is thrown away is a copy.
func planRecreate(in input) Step {
	if !in.snap.Formed || !slotsCovered(in.snap) {
		return nil
	}
	var stall Step
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		words := Corruption(pod.TerminationMessage)
		if !pod.Failing || pod.Redis != nil || pod.Terminating || pod.Fenced || words == "" || in.leaving(pod.Shard, pod.Ordinal) {
			continue
		}
		master := in.snap.Masters()[pod.Shard]
		if master == nil {
			continue
		}
		step := in.recreate(pod, fmt.Sprintf("%s cannot read its own files (%s); %s has its data", pod.Name, words, master.Name))
		if _, renews := step.(Recreate); renews {
			return step
		}
		stall = step
	}
	return stall
}

// recreate is how an instance gets rid of what it has on disk.
func (in input) recreate(pod *snapshot.Instance, reason string) Step {
	step := Recreate{base: base{reason}, Pod: pod.Name, UID: pod.UID}
	// A claim that is being deleted already is deleted again, and then the pod that it waits for.
	if n := slices.IndexFunc(in.snap.Claims, func(c snapshot.Claim) bool { return c.Pod() == pod.Name }); n >= 0 {
		step.Claim = in.snap.Claims[n]
	} else if !in.desired.Ephemeral {
		return Stall{
			base: base{reason +
				"; its files are in a volume that instances share or that the node keeps: remove its directory there, and delete the pod"},
			Cause: "DamagedFiles"}
	}
	return step
}

// planReidentify renews an instance that has lost its nodes.conf and kept its data (dispute).
// What it holds is not needed, if all that it claims is owned by an instance of its own shard,
// and everybody else knows and agrees: with its nodes.conf it would have followed that one and
// dropped its data.
func planReidentify(in input) Step {
	if !in.snap.Formed {
		return nil
	}
	var stall Step
	for _, pod := range in.snap.Reachable() {
		d, disputed := in.disputes[pod.Name]
		if !disputed || pod.Terminating || pod.Fenced || in.leaving(pod.Shard, pod.Ordinal) {
			continue
		}
		owner := in.agreedOwner(pod, d)
		if owner == nil {
			continue
		}
		step := in.recreate(pod,
			fmt.Sprintf("%s has lost its nodes.conf: it knows nobody, and the slots that it claims are those of %s, as all others say", pod.Name,
				owner.Name))
		if _, renews := step.(Recreate); renews {
			return step
		}
		stall = step
	}
	return stall
}

// agreedOwner is the other instance of a shard that owns all slots which a disputed one
// claims, in its own view and in that of every instance that knows anybody, when those are most,
// or all were asked.
// One that has nothing is no owner of keys: it may have lost them itself.
func (in input) agreedOwner(disputed *snapshot.Instance, d dispute) *snapshot.Instance {
	var owner *snapshot.Instance
	for _, pod := range in.snap.Reachable() {
		if pod != disputed && pod.Shard == disputed.Shard && d.claims.Subtract(pod.Redis.Slots).IsEmpty() {
			owner = pod
		}
	}
	if owner == nil || owner.Redis.Keys == 0 && d.keys > 0 {
		return nil
	}
	agree := 0
	for _, pod := range in.snap.Reachable() {
		if pod.Redis.Isolated() {
			continue
		}
		if pod != owner && !d.claims.Subtract(pod.Redis.Peers[owner.Redis.NodeID].Slots).IsEmpty() {
			return nil
		}
		agree++
	}
	if 2*agree <= int(in.topology.Instances()) && !snapshotComplete(in).Holds {
		return nil
	}
	return owner
}
