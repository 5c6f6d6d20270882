// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// EndSwitchover takes a person's request for a switchover away: it was carried out, or cannot be.
type EndSwitchover struct {
	base
	// Instance is what the request says.
	Instance string
	// Refused reports whether the instance has not become the master.
	Refused bool
}

// Name implements Step.
func (EndSwitchover) Name() string { return "EndSwitchover" }

// planEndSwitchover ends a request as soon as it is carried out, whatever else there is to do: left behind, it would be carried out again
// after the next failover. A cluster that is hibernated, or about to be, takes none.
func planEndSwitchover(in input) Step {
	switch pod := in.toTakeOver(); {
	case in.desired.Switchover == "":
		return nil
	case in.desired.Hibernate || in.snap.Hibernated != nil:
		return in.refuseSwitchover("the cluster is hibernated, or is to be (spec.hibernate): ask again when it runs")
	case pod != nil && in.snap.Masters()[pod.Shard] == pod:
		return in.switchedOver(pod)
	}
	return nil
}

// planSwitchover makes the instance that a person names the master of its shard, of a cluster that is healthy. While a template rolls out
// masters change anyway, and a request waits for the end; where the user restarts instances it does not. Whoever goes on after a crash
// sees who is the master, and the request.
func planSwitchover(in input) Step {
	if step := in.requested(); !Is[Wait](step) {
		return step
	}
	return nil
}

// planAwaitSwitchover waits with a request, when there is nothing else to do.
func planAwaitSwitchover(in input) Step {
	if step := in.requested(); Is[Wait](step) {
		return step
	}
	return nil
}

// requested is what a request for a switchover needs; nil when there is none, or something else comes first.
func (in input) requested() Step {
	if in.desired.Switchover == "" || !in.snap.Formed || in.rolling() {
		return nil
	}
	pod := in.toTakeOver()
	if pod == nil {
		return in.refuseSwitchover("it names no instance that the spec asks for")
	}
	masters := in.snap.Masters()
	e := exchange{masters[pod.Shard], pod}
	switch {
	case pod.Fenced:
		return in.refuseSwitchover(fmt.Sprintf("%s is fenced by the annotation %s", pod.Name, v1alpha1.AnnotationFenced))
	case pod.Redis == nil:
		return requestWaits(fails(SnapshotComplete, "%s is to take over, and does not answer: %s", pod.Name, pod.Error))
	case pod.Redis.Master:
		return in.switchedOver(pod)
	case e.master == nil:
		return in.refuseSwitchover(fmt.Sprintf("shard %d owns no slot, and nobody is elected in it", pod.Shard))
	case in.desired.SpreadMasters && concentrates(masters, e):
		return in.refuseSwitchover(fmt.Sprintf("more masters would be where %s is (%s), and spec.spreadMasters would have them part again: "+
			"set it to false first", pod.Name, place(pod)))
	case planRollout(in) == nil && planSpread(in) != nil:
		return nil // what parts masters after this one might take it back
	case pod.Redis.PersistenceError != "":
		return in.refuseSwitchover(fmt.Sprintf("%s could not write its data to disk (%s of INFO)", pod.Name, pod.Redis.PersistenceError))
	case in.reluctant(pod):
		return in.refuseSwitchover(fmt.Sprintf("%s was told to take over a moment ago, and has not: its log, or a warning of this object, "+
			"says why", pod.Name))
	}
	if v := in.mayTakeOver(e); !v.Holds {
		return requestWaits(v)
	}
	return Switchover{
		base: base{fmt.Sprintf("%s takes over from %s as the master of shard %d: the annotation %s asks for it", pod.Name, e.master.Name,
			pod.Shard, v1alpha1.AnnotationSwitchover)},
		Master: target(e.master), Replica: target(pod), Requested: true}
}

// requestWaits waits with a request: the cluster is none the worse for it.
func requestWaits(v Verdict) Wait {
	wait := waitFor(v)
	wait.Requested = true
	return wait
}

// reluctant reports whether a replica was told to take over, has had the time for it, and is no master.
func (in input) reluctant(pod *snapshot.Instance) bool {
	return in.mayVote(pod) && in.now.Sub(pod.Redis.SwitchoverAt) < reluctance+2*pod.Redis.NodeTimeout
}

func (in input) switchedOver(pod *snapshot.Instance) Step {
	return EndSwitchover{base: base{fmt.Sprintf("%s is the master of shard %d, as the annotation %s asks", pod.Name, pod.Shard,
		v1alpha1.AnnotationSwitchover)}, Instance: in.desired.Switchover}
}

// toTakeOver is the instance that the request names; nil when there is none, or when it is to go.
func (in input) toTakeOver() *snapshot.Instance {
	at := slices.IndexFunc(in.snap.Instances, func(pod snapshot.Instance) bool { return pod.Name == in.desired.Switchover })
	if at < 0 {
		return nil
	}
	if pod := &in.snap.Instances[at]; !in.leaving(pod.Shard, pod.Ordinal) {
		return pod
	}
	return nil
}

// refuseSwitchover does not repeat what the annotation holds: that may be anything.
func (in input) refuseSwitchover(why string) Step {
	return EndSwitchover{base: base{fmt.Sprintf("the switchover that the annotation %s asks for is refused: %s", v1alpha1.AnnotationSwitchover,
		why)}, Instance: in.desired.Switchover, Refused: true}
}

// concentrates reports whether a switchover is one that planSpread would undo.
func concentrates(masters map[int]*snapshot.Instance, e exchange) bool {
	t := tallied(masters)
	before := t.concentration
	t.shift(e, 1)
	return before.less(t.concentration)
}

// mayTakeOver holds when a switchover now loses no write, and does not cross with another one.
func (in input) mayTakeOver(e exchange) Verdict {
	for _, pod := range in.snap.Reachable() {
		if pod.Terminating {
			return fails(PodsGone, "%s is to take over from %s when %s has stopped", e.replica.Name, e.master.Name, pod.Name)
		}
	}
	switch {
	case !e.replica.Ready:
		return fails(PodsReady, "%s is to take over from %s, and its pod is not ready", e.replica.Name, e.master.Name)
	case !canSucceed(e.replica, e.master):
		return fails(ReplicaInSync, "%s is to take over from %s, and is not in sync with it", e.replica.Name, e.master.Name)
	case in.snap.Backup.UID != "":
		return fails(NoBackup, "%s is to take over from %s when RedisBackup %s has ended, which reads what one of them sends", e.replica.Name,
			e.master.Name, in.snap.Backup.Name)
	case in.untimely(e):
		return fails(MasterElected, "%s is to take over from %s some time after the last switchover of shard %d: until then the others do not "+
			"vote for it", e.replica.Name, e.master.Name, e.master.Shard)
	}
	return in.knownOutside(e.replica)
}
