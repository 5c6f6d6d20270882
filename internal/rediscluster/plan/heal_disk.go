// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// writesAccepted holds unless a master could not write its data to disk: it refuses writes then (MISCONF), and serves reads.
// A replica in that situation ends, or goes on as it can: replica-ignore-disk-write-errors.
func writesAccepted(pod *snapshot.Instance) Verdict {
	if r := pod.Redis; r.Master && !r.Slots.IsEmpty() && r.PersistenceError != "" {
		return fails(WritesAccepted, "%s could not write its data to disk (%s of INFO) and refuses writes", pod.Name, r.PersistenceError)
	}
	return holds(WritesAccepted)
}

// RewriteAOF has a master write its append-only file anew, or begin another one where that is not enough. Redis never tries again to sync a
// file that could not be synced once, so that writes are refused for good although there is room on the disk again; of an append-only file
// that was written anew it knows nothing bad, but before 7.2 (aof_bio_fsync_status, bio.c).
type RewriteAOF struct {
	base
	On Target
	// Reopen: the file was written anew, and nothing was appended since: its disk has room for all that the master holds.
	Reopen bool
}

// Name implements Step.
func (RewriteAOF) Name() string { return "RewriteAOF" }

// rewriteAgain is how long after a master was asked for a new append-only file it is asked again: it forks, and may fill the disk.
const rewriteAgain = 30 * time.Second

// planDisk lets a replica that can write to its own disk take over from a master that cannot, or else has the master write its append-only
// file anew. It comes after planStorage: a volume that is full grows first.
func planDisk(in input) Step {
	masters := in.masters()
	var rewrite, stall Step
	for _, master := range in.snap.Reachable() {
		v := writesAccepted(master)
		if v.Holds || masters[master.Shard] != master || master.Terminating {
			continue
		}
		for _, e := range in.exchanges(masters) {
			if e.master == master && e.replica.Redis.PersistenceError == "" && e.replica.Ready && canSucceed(e.replica, master) && !in.untimely(e) {
				return Switchover{base: base{fmt.Sprintf("%s: %s takes over", v.Reason, e.replica.Name)}, Master: target(master),
					Replica: target(e.replica)}
			}
		}
		if rewrite == nil {
			rewrite = in.planRewrite(master, v)
		}
		if stall == nil {
			stall = Stall{base: base{v.Reason + ", and no replica can take over now: make room on its volume, or a larger one " +
				"(spec.storage.size); its log says what failed"}, Cause: "WritesRefused", BlockedBy: v.Predicate}
		}
	}
	if rewrite != nil {
		return rewrite
	}
	return stall
}

// planRewrite has a master without a successor try its disk again; nil when it does, or just did.
func (in input) planRewrite(master *snapshot.Instance, v Verdict) Step {
	r := master.Redis
	switch {
	case r.PersistenceError != snapshot.AppendOnlyError:
		return nil // it tries to save a snapshot again by itself
	case r.Rewriting || in.now.Sub(r.RewriteAt) < rewriteAgain:
		return nil
	}
	why := "its append-only file is written anew, in case there is room"
	if r.Rewritten {
		why = "there is room for a new append-only file, and it begins one"
	}
	return RewriteAOF{base: base{v.Reason + ": " + why}, On: target(master), Reopen: r.Rewritten}
}
