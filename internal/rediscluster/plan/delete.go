// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// DeleteChildren deletes what the cluster owns.
type DeleteChildren struct{ base }

func (DeleteChildren) Name() string { return "DeleteChildren" }

// OrphanChildren takes the owner off what the cluster owns, and leaves it running.
type OrphanChildren struct{ base }

func (OrphanChildren) Name() string { return "OrphanChildren" }

// RemoveFinalizer lets the object go.
type RemoveFinalizer struct{ base }

func (RemoveFinalizer) Name() string { return "RemoveFinalizer" }

// AddFinalizer lets deletion follow the policy.
type AddFinalizer struct{ base }

func (AddFinalizer) Name() string { return "AddFinalizer" }

// planDeletion follows the policy: spec.finalizers, or what who deletes the object asks for. It goes on while the cluster is paused: who
// deletes a paused cluster means it.
func planDeletion(in input) Step {
	if !in.desired.HasFinalizer {
		return None{base{"the object is being removed"}}
	}
	switch in.desired.Policy {
	case v1alpha1.DeletionOrphan:
		if in.snap.HasOwnedChildren {
			return OrphanChildren{base{"the children are to be left behind: they keep running without an owner"}}
		}
	case v1alpha1.DeletionBackground:
		// Owner references let Kubernetes collect the children.
	case v1alpha1.DeletionForeground:
		if live := liveShards(in); live > 0 {
			return DeleteChildren{base{fmt.Sprintf("spec.finalizers is foreground: %d StatefulSets are to be deleted first", live)}}
		}
		if n := len(in.snap.Instances) + len(in.snap.Shards); n > 0 {
			v := fails(PodsGone, "%d pods are still stopping", len(in.snap.Instances))
			return Wait{base: base{v.Reason}, BlockedBy: v.Predicate} // Kubernetes tells when they are gone
		}
	}
	return RemoveFinalizer{base{"nothing is left to wait for"}}
}

func liveShards(in input) int {
	live := 0
	for _, shard := range in.snap.Shards {
		if !shard.Terminating {
			live++
		}
	}
	return live
}

func planFinalizer(in input) Step {
	if in.desired.HasFinalizer {
		return nil
	}
	return AddFinalizer{base{"deletion must be able to follow spec.finalizers"}}
}
