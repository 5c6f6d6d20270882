// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// few reports whether a cluster has so few masters that they cannot elect the successor of one of them: the operator appoints it.
func few(s *snapshot.Snapshot) bool {
	all, _ := voters(s)
	return !v1alpha1.Elects(all)
}

// awayFor is how long a replica is to be without its master that may come back: as long as an election is given to come to an end, or,
// where there is none, as long as the masters would have waited before they began one.
func awayFor(in input, replica *snapshot.Instance) time.Duration {
	if few(in.snap) {
		return replica.Redis.NodeTimeout
	}
	return electionTimeout
}

// silent are the addresses of the instances of a shard whose container has ended and may be started again by the kubelet.
func (in input) silent(shard int) []string {
	var addresses []string
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.Shard == shard && mayStart(pod) {
			addresses = append(addresses, pod.Listeners()...)
		}
	}
	return addresses
}

// mayStart reports whether an instance that is said to be stopped may be started by its kubelet at the address that it has.
func mayStart(pod *snapshot.Instance) bool {
	return pod.Redis == nil && pod.Stopped && !pod.Ended && pod.IP != ""
}

// silenced proves that a master which is said not to run takes no writes, for which no vote speaks: who is said to be stopped
// refuses connections, since a kubelet that is cut off from the API server may have started the container again; no replica has a
// link to it; and none is about to stop, which the instance itself might appoint (start.sh): both choose the replica that has most.
func silenced(in input, id string, best *snapshot.Instance) Verdict {
	if v := nodeStopped(in, id); !v.Holds {
		return v
	}
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		switch {
		case pod.Shard != best.Shard:
		case mayStart(pod) && !pod.Refuses:
			return fails(NodeStopped, "%s is said not to run, and its address does not refuse connections: it may run again", pod.Name)
		case pod.Redis == nil || pod.Redis.MasterID != id:
		case pod.Redis.MasterLinkUp || pod.Redis.Syncing:
			return fails(NodeStopped, "%s has a link to node %s", pod.Name, short(id))
		case pod.Terminating:
			return fails(NodeStopped, "%s is about to stop", pod.Name)
		}
	}
	return holds(NodeStopped)
}

// planAwaitProof says what keeps a successor from being appointed, where nobody can elect one, and what a person can do. All
// that can be done without comes before it.
func planAwaitProof(in input) Step {
	if !in.snap.Formed || slotsCovered(in.snap) || !few(in.snap) || !majorityLost(in).Holds {
		return nil
	}
	for _, id := range lostMasters(in.snap) {
		best := bestReplica(in.snap, id)
		if best == nil {
			continue
		}
		verdict := silenced(in, id, best)
		if verdict.Holds {
			if verdict = lastInSync(in, id, best); verdict.Holds {
				continue // it has to be away for a moment longer
			}
		}
		verdict.Reason = fmt.Sprintf("fewer than three masters elect nobody, and %s is not appointed before master %s is known to have stopped "+
			"and to have left it all: %s%s", best.Name, short(id), verdict.Reason, in.remedy(best.Shard))
		return waitFor(verdict)
	}
	return nil
}

// remedy says how Kubernetes gets to know that what does not answer has stopped.
func (in input) remedy(shard int) string {
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if pod.Shard != shard || pod.Redis != nil || pod.NodeName == "" || pod.Ended || pod.Stopped && pod.Refuses {
			continue
		}
		return fmt.Sprintf("; if the machine of node %s is off for certain, say so: delete the Node, or set the taint "+
			"node.kubernetes.io/out-of-service on it", pod.NodeName)
	}
	return ""
}
