// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

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

// planDisk lets a replica that can write to its own disk take over from a master that cannot. It comes after planStorage: a volume
// that is full grows first.
func planDisk(in input) Step {
	masters := in.masters()
	var stall Step
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
		if stall == nil {
			stall = Stall{base: base{v.Reason + ", and no replica can take over now: make room on its volume, or a larger one " +
				"(spec.storage.size); its log says what failed"}, Cause: "WritesRefused", BlockedBy: v.Predicate}
		}
	}
	return stall
}
