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

// ServedWithin is for how long what is inside waits for gateways that do not lead clients to instances that they are to be told of.
const ServedWithin = 10 * time.Minute

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
	case !in.desired.External || e == nil || e.Served == nil || includes(e.Served, shard, instances-1):
		return holds(ServedOutside)
	case len(in.problems) > 0:
		return holds(ServedOutside) // what heals a cluster does not wait for clients outside
	}
	if _, has := v1alpha1.ExternalOffset(shard, instances-1); !has {
		return holds(ServedOutside) // it is not to be: the spec is about to be refused, or the cluster shrinks
	}
	if in.now.Sub(e.Since) >= ServedWithin && !e.Since.IsZero() {
		return holds(ServedOutside) // whoever is behind has been told of, and what is inside waits no longer
	}
	if e.TooMany {
		return fails(ServedOutside, tooManyGateways)
	}
	for ordinal := e.ServedOf(shard); ordinal < instances; ordinal++ {
		for _, g := range e.Gateways {
			if g.Leads(in.now) && !g.Serves(in.pending.Map, snapshot.Numbered{Shard: shard, Ordinal: ordinal}) {
				return fails(ServedOutside, "clients outside do not reach instance %d of shard %d through gateway %s: %s", ordinal, shard, g.Pod,
					WhyBehind(g, in.pending.Map))
			}
		}
	}
	return holds(ServedOutside)
}

// knownOutside holds when every gateway that leads clients connects to an instance at the address that it has now: a gateway learns that by
// DNS, which may answer from a cache, and until then passes on to clients an address that they do not reach. To wait for longer than
// KnownWithin would let one pod hold up what is inside.
func (in input) knownOutside(pod *snapshot.Instance) Verdict {
	e := in.snap.External
	if !in.desired.External || e == nil || e.Served == nil || pod.IP == "" || len(in.problems) > 0 ||
		in.now.Sub(pod.IPSince) >= snapshot.KnownWithin {
		return holds(ServedOutside)
	}
	if e.TooMany {
		return fails(ServedOutside, tooManyGateways)
	}
	for _, g := range e.Gateways {
		if !g.Leads(in.now) || g.Knows(pod) {
			continue
		}
		why := "it does not know that address yet, which it looks up by DNS"
		switch {
		case !g.EndsBy.IsZero():
			why = fmt.Sprintf("it ends, until %s", g.EndsBy.UTC().Format(time.RFC3339))
		case g.Addresses == nil:
			why = "it has not said yet at which addresses it connects to instances; if it does not, delete the pod"
		}
		return fails(ServedOutside, "clients outside do not reach %s at its address of now through gateway %s: %s", pod.Name, g.Pod, why)
	}
	return holds(ServedOutside)
}

// onTheWay is how much more than another one a replica may have, in bytes, and count for the same: they told at different moments, and what
// is missing is waited for before the master switches over.
const onTheWay = 1 << 20

// knownReplica is the replica that takes over in a switchover that is planned: the best one, unless gateways do not know its address and
// know that of another one with as much and of the same template. What heals a cluster does not choose so: instances that stop appoint
// their successor, too (start.sh), and all that choose have to choose the same.
func (in input) knownReplica(best, master *snapshot.Instance) *snapshot.Instance {
	if best == nil || in.knownOutside(best).Holds {
		return best
	}
	for _, pod := range in.snap.Reachable() {
		if in.staysInSync(pod, master) && !in.retiring(pod) && in.stale(pod) == in.stale(best) && pod.Ready &&
			pod.Redis.Offset+onTheWay >= best.Redis.Offset && in.knownOutside(pod).Holds {
			return pod
		}
	}
	return best
}

// tooManyGateways is why it is not known whom clients outside reach.
const tooManyGateways = "there are more gateways than can be asked whom they lead clients outside to: delete those that are not of the " +
	"Deployment"

// WhyBehind says why a gateway does not lead clients to an instance of a map; empty: of which nothing is known.
func WhyBehind(g snapshot.Gateway, is string) string {
	switch {
	case is == "":
		return "their Service has no address yet that clients can be told"
	case !g.EndsBy.IsZero():
		return fmt.Sprintf("it ends, until %s, and leads clients by the map of before", g.EndsBy.UTC().Format(time.RFC3339))
	case g.Map == "":
		return "it has not said yet whom it leads clients to; if it does not, delete the pod"
	case g.Map == is:
		return "it does not know its address yet, which it looks up by DNS"
	}
	return "its map, which takes up to two minutes to reach a pod, is of before; if it takes longer, delete the pod"
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

// ServedAfter are the instances of which it is known after a reconciliation that every gateway has led clients to them, by the map of now:
// of each shard, the first ones that all know the addresses of.
func ServedAfter(e *snapshot.External, out *snapshot.Outside, is string, now time.Time) v1alpha1.Topology {
	if e == nil || out == nil {
		return nil
	}
	before, serving := within(e.Served, out.Instances), 0
	for _, g := range e.Gateways {
		switch {
		case !g.Leads(now):
		case is == "" || g.Map != is:
			return before
		case g.Ready:
			serving++
		}
	}
	if serving == 0 || e.TooMany {
		return before
	}
	after := make(v1alpha1.Topology, len(out.Instances))
	for shard, instances := range out.Instances {
		if shard < len(before) {
			after[shard] = before[shard]
		}
		for after[shard] < instances && !slices.ContainsFunc(e.Gateways, func(g snapshot.Gateway) bool {
			return g.Leads(now) && !g.Serves(is, snapshot.Numbered{Shard: shard, Ordinal: int(after[shard])})
		}) {
			after[shard]++
		}
	}
	return after
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
