// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// BumpEpoch makes a master take a configuration epoch that is higher than all it knows.
type BumpEpoch struct {
	base
	On Target
}

// Name implements Step.
func (BumpEpoch) Name() string { return "BumpEpoch" }

// planEpoch has a master outbid an epoch that some instance remembers one of its replicas by, from when that was a master itself. A
// replica says the epoch of its master, and Valkey 9 ignores for ever what a master of the same shard says under a lower epoch than
// it is known by ("Ignore stale message" in cluster_legacy.c): that instance would never hear that it is a replica now.
func planEpoch(in input) Step {
	for _, replica := range in.snap.Reachable() {
		r := replica.Redis
		master := in.snap.ByNodeID(r.MasterID)
		if r.Engine != "valkey" || r.Master || !r.MasterLinkUp || master == nil || !master.Redis.Master || !claimsAgreed(in, master).Holds {
			continue
		}
		for _, other := range in.snap.Reachable() {
			if known := other.Redis.Peers[r.NodeID]; known.Master && known.Epoch > master.Redis.Epoch {
				return BumpEpoch{base{fmt.Sprintf("%s takes %s, which follows %s, for a master of epoch %d, and %s has epoch %d",
					other.Name, replica.Name, master.Name, known.Epoch, master.Name, master.Redis.Epoch)}, target(master)}
			}
		}
	}
	return nil
}

// claimsAgreed holds when a higher epoch makes a master the owner of nothing that it does not own for all: no slot is moving, every
// instance answers and names the same slots as its own, and nobody suspects it, so that nobody is elected in its place.
func claimsAgreed(in input, master *snapshot.Instance) Verdict {
	if v := snapshotComplete(in); !v.Holds {
		return fails(ClaimsAgreed, "%s", v.Reason)
	}
	if !ownedOnce(in.snap) {
		return fails(ClaimsAgreed, "not every slot has one owner")
	}
	for _, other := range in.snap.Reachable() {
		r := other.Redis
		if len(r.Migrating)+len(r.Importing)+len(r.Jobs) > 0 || !r.SwitchoverAt.IsZero() || other.Terminating {
			return fails(ClaimsAgreed, "%s moves slots, takes over or stops", other.Name)
		}
		peer := r.Peers[master.Redis.NodeID]
		alive := peer.Master && peer.Connected && !peer.Failed && !peer.Suspected
		if other != master && (!alive || !peer.Slots.Equal(master.Redis.Slots)) {
			return fails(ClaimsAgreed, "%s and %s do not agree on what %s is and owns", other.Name, master.Name, master.Name)
		}
	}
	return holds(ClaimsAgreed)
}
