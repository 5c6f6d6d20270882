// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// AddToEndpoints lets the Service lead clients to instances.
type AddToEndpoints struct {
	base
	Pods []string
}

// RemoveFromEndpoints ends that.
type RemoveFromEndpoints struct {
	base
	Pods []string
}

// Name implements Step.
func (AddToEndpoints) Name() string { return "AddToEndpoints" }

// Name implements Step.
func (RemoveFromEndpoints) Name() string { return "RemoveFromEndpoints" }

// endpointsLag is how long after a RemoveFromEndpoints every Kubernetes node has heard that the Service
// does not lead to the pod any more: kubelet, EndpointSlice and kube-proxy (which gathers
// changes for a second) come one after the other.
const endpointsLag = 2 * time.Second

// planAddToEndpoints opens instances to clients that ask the Service. One that has just joined would
// tell them of a cluster of which it knows a part. Leaving, and being about to restart, close
// it again, and nothing else: whether an instance answers is for the pod's probe. Of several that are about to restart all but the
// first come back: a PodDisruptionBudget counts those that are not ready, and with two of them none could be evicted.
func planAddToEndpoints(in input) Step {
	step := AddToEndpoints{}
	for _, pod := range in.snap.Reachable() {
		next := in.retiring(pod) && pod == in.outdated()[0]
		stays := !pod.Terminating && !pod.Fenced && !in.safeToRemove(pod).Holds && !next
		if pod.HasReadinessGate && !pod.InEndpoints && stays && hasFullSlotMap(pod) {
			step.Pods = append(step.Pods, pod.Name)
		}
	}
	if len(step.Pods) == 0 {
		return nil
	}
	step.Reason = "these instances know the whole cluster: " + list(step.Pods)
	return step
}

// hasFullSlotMap reports whether an instance knows an owner of every slot, and has its master's data.
func hasFullSlotMap(pod *snapshot.Instance) bool {
	known := make([]slots.Set, 0, len(pod.Redis.Peers))
	for _, peer := range pod.Redis.Peers {
		known = append(known, peer.Slots)
	}
	return pod.Redis.ClusterOK && pod.Redis.Slots.Union(known...).Len() == slots.Count && (pod.Redis.Master || pod.Redis.MasterLinkUp)
}

// removeFromEndpoints keeps clients away from instances that are about to go.
func removeFromEndpoints(in input, leaving []*snapshot.Instance, quiet time.Duration) Step {
	step := RemoveFromEndpoints{}
	var pause time.Duration
	for _, pod := range leaving {
		switch {
		case !pod.HasReadinessGate:
		case pod.InEndpoints:
			step.Pods = append(step.Pods, pod.Name)
		default:
			pause = max(pause, pod.RemovedFromEndpointsAt.Add(endpointsLag).Sub(in.now))
		}
	}
	switch {
	case len(step.Pods) > 0:
		step.Reason = "these instances are about to go: " + list(step.Pods)
		return step
	case pause <= 0:
		return redirecting(in, leaving, quiet)
	default:
		step := waitFor(fails(EndpointsUpdated,
			"the Service leads no client to %d leaving instances any more, and all of Kubernetes is to hear of it", len(leaving)))
		step.After = pause
		return step
	}
}

// Clients that know the cluster of before learn that a slot has moved from the answer MOVED
// to a command about it. Those that go on asking an instance which leaves get some time: a
// command that finds nobody would fail.
const (
	quiet     = 5 * time.Second
	mostQuiet = time.Minute // since the instance left the endpoints
)

// redirecting waits until clients have stopped asking instances that are about to go.
func redirecting(in input, leaving []*snapshot.Instance, quiet time.Duration) Step {
	for _, pod := range leaving {
		since := in.now.Sub(pod.Redis.RedirectedAt)
		if pod.HasReadinessGate && since < quiet && in.now.Sub(pod.RemovedFromEndpointsAt) < mostQuiet {
			return waitFor(fails(ClientsRedirected, "clients still ask %s, which is about to go, for slots that have moved", pod.Name))
		}
	}
	return nil
}
