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
	verdict, _ := in.silenced(id, best)
	return verdict
}

// silenced is the same with the pod whose node is in doubt; nil if none is.
func (in input) silenced(id string, best *snapshot.Instance) (Verdict, *snapshot.Instance) {
	if v, pod := in.nodeStopped(id); !v.Holds {
		return v, pod
	}
	if last, known := in.snap.Answered[id]; known && !last.Master {
		return fails(NodeStopped, "node %s was succeeded by another one, which has what was written since", short(id)), nil
	}
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		switch {
		case pod.Shard != best.Shard:
		case mayStart(pod) && pod.Accepts:
			return fails(NodeStopped, "%s is said not to run, and something accepts connections at its address: it may run again", pod.Name), nil
		case mayStart(pod) && !pod.Refuses:
			return fails(NodeStopped, "%s is said not to run, and its address does not refuse connections: it may run again", pod.Name), pod
		case pod.Redis == nil || pod.Redis.MasterID != id:
		case pod.Redis.MasterLinkUp || pod.Redis.Syncing:
			return fails(NodeStopped, "%s has a link to node %s", pod.Name, short(id)), nil
		case pod.Terminating:
			return fails(NodeStopped, "%s is about to stop", pod.Name), nil
		}
	}
	return holds(NodeStopped), nil
}

// planAwaitProof says what keeps a successor from being appointed, where nobody can elect one, and what a person can do. All
// that can be done without comes before it.
func planAwaitProof(in input) Step {
	if !in.snap.Formed || slotsCovered(in.snap) || !few(in.snap) || !majorityLost(in).Holds {
		return nil
	}
	for _, id := range lostMasters(in.snap) {
		best := bestReplica(in, id)
		if best == nil || succeeded(in.snap, id, best) {
			continue
		}
		verdict, doubted := in.silenced(id, best)
		if verdict.Holds {
			if verdict = lastInSync(in, id, best); verdict.Holds {
				continue // it has to be away for a moment longer
			}
			verdict.Reason += "; CLUSTER FAILOVER TAKEOVER at it gives that up"
		}
		verdict.Reason = fmt.Sprintf("fewer than three masters elect nobody, and %s is not appointed before master %s is known to have stopped "+
			"and to have left it all: %s%s", best.Name, short(id), verdict.Reason, remedy(doubted))
		return waitFor(verdict)
	}
	return nil
}

// remedy says how Kubernetes gets to know that a pod which does not answer has stopped; nil: there is none.
func remedy(pod *snapshot.Instance) string {
	if pod == nil || pod.NodeName == "" || pod.Ended {
		return ""
	}
	return fmt.Sprintf("; if the machine of node %s is off for certain, say so: delete the Node, or set the taint "+
		"node.kubernetes.io/out-of-service on it", pod.NodeName)
}
