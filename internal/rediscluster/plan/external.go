// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// LeavesAfter is for how long gateways are told of an instance that is gone: clients ask who is there once a minute, or less.
const LeavesAfter = 75 * time.Second

// outside is whom gateways are to be told of now; nil: nobody outside is let in. Whoever has been told of before and is not there any more
// stays for a while.
func (in input) outside() *snapshot.Outside {
	if !in.desired.External {
		return nil
	}
	out := &snapshot.Outside{Instances: make(v1alpha1.Topology, 0, len(in.topology))}
	for shard, instances := range in.topology {
		if _, has := v1alpha1.ExternalOffset(shard, 0); !has {
			break
		}
		out.Instances = append(out.Instances, min(instances, v1alpha1.MaxExternalPerShard))
	}
	if in.snap.External == nil {
		return out
	}
	before := in.snap.External.Outside
	leaves := func(shard, ordinal int, until time.Time) {
		known := slices.ContainsFunc(out.Leaving, func(l snapshot.Leaving) bool { return l.Shard == shard && l.Ordinal == ordinal })
		if !known && !includes(out.Instances, shard, ordinal) && until.After(in.now) {
			out.Leaving = append(out.Leaving, snapshot.Leaving{Shard: shard, Ordinal: ordinal, Until: until})
		}
	}
	latest := in.now.Add(LeavesAfter)
	for _, l := range before.Leaving {
		until := l.Until
		if until.After(latest) { // the status is not the operator's alone
			until = latest
		}
		leaves(l.Shard, l.Ordinal, until)
	}
	for shard, instances := range before.Instances {
		for ordinal := range int(instances) {
			leaves(shard, ordinal, latest)
		}
	}
	return out
}

// includes reports whether a topology has an instance.
func includes(t v1alpha1.Topology, shard, ordinal int) bool {
	return shard < len(t) && ordinal < int(t[shard])
}

// servedOutside holds when clients outside reach all instances of a shard, or as many of the first of them: every gateway has said so once,
// or those that lead clients say so now. A gateway that does not run leads nobody, and begins with the map of then.
func (in input) servedOutside(shard, instances int) Verdict {
	e := in.snap.External
	switch {
	case !in.desired.External || e == nil || e.Served == nil || instances == 0 || includes(e.Served, shard, instances-1):
		return holds(ServedOutside)
	case len(in.problems) > 0:
		return holds(ServedOutside) // what heals a cluster does not wait for clients outside
	}
	if _, has := v1alpha1.ExternalOffset(shard, instances-1); !has {
		return holds(ServedOutside) // it is not to be: the spec is about to be refused, or the cluster shrinks
	}
	for _, g := range e.Gateways {
		if !g.Leads(in.now) || in.pending.Map != "" && g.Map == in.pending.Map {
			continue
		}
		why := "its map, which takes up to two minutes to reach a pod, is of before; if it takes longer, delete the pod"
		switch {
		case in.pending.Map == "":
			why = "their Service has no address yet that clients can be told"
		case !g.EndsBy.IsZero():
			why = fmt.Sprintf("it ends, until %s, and leads clients by the map of before", g.EndsBy.UTC().Format(time.RFC3339))
		case g.Map == "":
			why = "it has not said yet whom it leads clients to; if it does not, delete the pod"
		}
		return fails(ServedOutside, "clients outside do not reach instance %d of shard %d through gateway %s: %s", instances-1, shard, g.Pod, why)
	}
	return holds(ServedOutside)
}

// planServed waits until clients outside reach instances that are about to be told to them.
func planServed(in input) Step {
	if !in.desired.External {
		return nil
	}
	masters := in.masters()
	for _, pod := range in.snap.Reachable() {
		if v := in.toBeServed(pod, masters[pod.Shard]); !v.Holds {
			return waitFor(v)
		}
	}
	return nil
}

// toBeServed holds when a pod does not wait to be told to clients as a replica of its shard's master.
func (in input) toBeServed(pod, master *snapshot.Instance) Verdict {
	if master == nil || master == pod || master.Redis.Slots.IsEmpty() || pod.Redis.MasterID == master.Redis.NodeID || pod.Terminating ||
		in.safeToRemove(pod).Holds || !pod.Redis.Slots.IsEmpty() {
		return holds(ServedOutside)
	}
	return in.servedOutside(pod.Shard, pod.Ordinal+1)
}

// ServedAfter are the instances of which it is known after a reconciliation that every gateway has led clients to them, by the map of now.
func ServedAfter(e *snapshot.External, out *snapshot.Outside, is string, now time.Time) v1alpha1.Topology {
	if e == nil || out == nil {
		return nil
	}
	serving := 0
	for _, g := range e.Gateways {
		switch {
		case !g.Leads(now):
		case is == "" || g.Map != is:
			return within(e.Served, out.Instances)
		case g.Ready:
			serving++
		}
	}
	if serving == 0 {
		return within(e.Served, out.Instances)
	}
	return slices.Clone(out.Instances)
}

// within is what of a topology is in another one: who comes back is to be served again.
func within(t, other v1alpha1.Topology) v1alpha1.Topology {
	if t == nil {
		return nil
	}
	both := make(v1alpha1.Topology, min(len(t), len(other)))
	for i := range both {
		both[i] = min(t[i], other[i])
	}
	return both
}
