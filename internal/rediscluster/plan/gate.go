// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Admit lets the Service lead clients to instances.
type Admit struct {
	base
	Pods []string
}

// Dismiss ends that.
type Dismiss struct {
	base
	Pods []string
}

// Name implements Step.
func (Admit) Name() string { return "Admit" }

// Name implements Step.
func (Dismiss) Name() string { return "Dismiss" }

// dismissal is how long after a Dismiss every Kubernetes node has heard that the Service
// does not lead to the pod any more: kubelet, EndpointSlice and kube-proxy (which gathers
// changes for a second) come one after the other.
const dismissal = 2 * time.Second

// planAdmit opens instances to clients that ask the Service. One that has just joined would
// tell them of a cluster of which it knows a part. Leaving, and being about to restart, close
// it again, and nothing else: whether an instance answers is for the pod's probe.
func planAdmit(in input) Step {
	step := Admit{}
	for _, pod := range in.snap.Reachable() {
		if pod.Gated && !pod.Serving && !pod.Terminating && !in.released(pod) && !in.retiring(pod) && informed(pod) {
			step.Pods = append(step.Pods, pod.Name)
		}
	}
	if len(step.Pods) == 0 {
		return nil
	}
	step.Reason = "these instances know the whole cluster: " + list(step.Pods)
	return step
}

// informed says that an instance knows an owner of every slot, and has its master's data.
func informed(pod *snapshot.Instance) bool {
	known := pod.Redis.Slots
	for _, peer := range pod.Redis.Peers {
		known = known.Union(peer.Slots)
	}
	return pod.Redis.ClusterOK && known.Len() == slots.Count && (pod.Redis.Master || pod.Redis.MasterLinkUp)
}

// dismiss keeps clients away from instances that are about to go.
func dismiss(in input, leaving []*snapshot.Instance, quiet time.Duration) Step {
	step := Dismiss{}
	var pause time.Duration
	for _, pod := range leaving {
		switch {
		case !pod.Gated:
		case pod.Serving:
			step.Pods = append(step.Pods, pod.Name)
		default:
			pause = max(pause, pod.DismissedAt.Add(dismissal).Sub(in.now))
		}
	}
	switch {
	case len(step.Pods) > 0:
		step.Reason = "these instances are about to go: " + list(step.Pods)
		return step
	case pause <= 0:
		return unasked(in, leaving, quiet)
	default:
		return Wait{
			base: base{fmt.Sprintf("the Service leads no client to %d leaving instances any more, and all of Kubernetes is to hear of it",
				len(leaving))}, After: pause}
	}
}

// Clients that know the cluster of before learn that a slot has moved from the answer MOVED
// to a command about it. Those that go on asking an instance which leaves get some time: a
// command that finds nobody would fail.
const (
	quiet        = 5 * time.Second
	mostPatience = time.Minute // since the instance was dismissed
)

// unasked waits until clients have stopped asking instances that are about to go.
func unasked(in input, leaving []*snapshot.Instance, quiet time.Duration) Step {
	for _, pod := range leaving {
		since := in.now.Sub(pod.Redis.AskedAt)
		if pod.Gated && since < quiet && in.now.Sub(pod.DismissedAt) < mostPatience {
			return Wait{base: base{fmt.Sprintf("clients still ask %s, which is about to go, for slots that have moved", pod.Name)}, After: soon}
		}
	}
	return nil
}
