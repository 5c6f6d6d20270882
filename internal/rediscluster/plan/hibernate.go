// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// appendOnly is the setting by which instances look for their data in an append-only file.
const appendOnly = "appendonly"

// RecordHibernation writes down how many instances each shard has, before they are stopped: whoever goes on after a crash starts as many.
type RecordHibernation struct {
	base
	Instances v1alpha1.Topology
}

// Hibernate stops all instances: their StatefulSets ask for none.
type Hibernate struct{ base }

// Wake starts as many instances again as there were.
type Wake struct{ base }

// Sleep is the step of a cluster that is hibernated.
type Sleep struct{ base }

// Name implements Step.
func (RecordHibernation) Name() string { return "RecordHibernation" }

// Name implements Step.
func (Hibernate) Name() string { return "Hibernate" }

// Name implements Step.
func (Wake) Name() string { return "Wake" }

// Name implements Step.
func (Sleep) Name() string { return "Sleep" }

// dormant are the rules of a cluster whose instances have been stopped. Nothing else is done about it: no instance can be asked.
var dormant = []rule{
	{"validation", true, planValidation},
	{"finalizer", false, planFinalizer},
	{"auth", false, planAuth},
	{"needed certificate", false, planNeededCertificate},
	{"TLS", false, planTLS},
	{"switched over", false, planEndSwitchover},
	{"lost claims", false, planLostClaims},
	{"children", false, planChildren},
	{"withheld", false, planWithheld},
	{"certificate", false, planCertificate},
	{"sleep", false, planSleep},
}

// stopped reports whether instances have begun to be stopped, and not all been started since: from then on all are stopped, or all started.
// A StatefulSet that somebody else has scaled since still says that it was stopped.
func (in input) stopped() bool {
	if in.snap.Hibernated == nil {
		return false
	}
	live := slices.ContainsFunc(in.snap.Shards, func(s snapshot.Shard) bool { return !s.Terminating })
	return !live || slices.ContainsFunc(in.snap.Shards, func(s snapshot.Shard) bool {
		return s.Index < len(in.snap.Hibernated) && (s.Replicas == 0 || s.Hibernated > 0) && !s.Terminating
	})
}

// asleep reports whether no StatefulSet asks for an instance.
func (in input) asleep() bool {
	return in.stopped() && !slices.ContainsFunc(in.snap.Shards, func(s snapshot.Shard) bool { return s.Replicas > 0 && !s.Terminating })
}

// dormancy reports whether the StatefulSets are to ask for no instance.
func (in input) dormancy() bool {
	if in.stopped() {
		return in.desired.Hibernate || len(in.problems) > 0 || in.asleep() && in.lostClaims() != nil
	}
	if !in.desired.Hibernate || in.snap.Hibernated == nil {
		return false
	}
	step, _, _ := next(in, rules) // everything else comes first
	return Is[Hibernate](step)
}

// awake reports whether a cluster that was hibernated is as it was before, so that what the spec asks for now is next.
func (in input) awake() bool {
	return !in.desired.Hibernate && !in.desired.Paused && !in.stopped() && awaitConvergence(in, in.retiring) == nil && len(in.kept()) == 0
}

// awakeFor reports whether a cluster that was hibernated lacks nothing but instances that the spec does not ask for any more, such as
// one that no node has room for: all slots are owned by instances that answer (notRequired). What the spec asks for besides comes later.
func (in input) awakeFor(asked v1alpha1.Topology) bool {
	in.desired.Topology = asked
	return in.awake()
}

// asBefore makes a cluster that was hibernated ask for the instances that it had, until it is awake. What was written down of others than
// there are, before they were stopped, is written down anew.
func (in *input) asBefore() {
	if in.snap.Hibernated == nil {
		return
	}
	asked := in.desired.Topology
	in.desired.Topology = slices.Clone(in.snap.Hibernated)
	in.topology = in.effective()
	another := in.desired.Hibernate && !in.stopped() && in.outgrown()
	if another || in.awake() || in.awakeFor(asked) {
		snap := *in.snap
		snap.Hibernated = nil
		in.snap, in.desired.Topology = &snap, asked
	}
}

// outgrown reports whether there are more instances than were written down, and of no shard fewer: those might hold what others lack.
func (in input) outgrown() bool {
	existing := existingTopology(in.snap)
	for i, n := range in.snap.Hibernated {
		if i >= len(existing) || existing[i] < n {
			return false
		}
	}
	return !slices.Equal(existing, in.snap.Hibernated)
}

// hibernatedAfter is what the next reconciliation is to know of how many instances there were.
func (in input) hibernatedAfter(step Step) v1alpha1.Topology {
	if record, is := step.(RecordHibernation); is && !in.desired.Paused {
		return record.Instances
	}
	return in.snap.Hibernated
}

// kept are the instances that run and have been told that they are not elected, but for those that are fenced.
func (in input) kept() []*snapshot.Instance {
	var found []*snapshot.Instance
	for _, pod := range in.snap.Reachable() {
		if !pod.Terminating && !pod.Fenced && pod.Redis.Settings[redisconf.NoFailover] == "yes" {
			found = append(found, pod)
		}
	}
	return found
}

// planElections lets instances be elected again, when the cluster is not to be stopped after all, or not yet. Where nothing says that it
// was, one that is not ready is let be: a container that its kubelet stops keeps itself from being elected (switchover.sh).
func planElections(in input) Step {
	if in.desired.Hibernate && in.snap.Hibernated != nil && in.mayStop() == nil {
		return nil
	}
	kept := in.kept()
	if in.snap.Hibernated == nil {
		kept = slices.DeleteFunc(kept, func(pod *snapshot.Instance) bool { return !pod.Ready })
	}
	return elections(kept, "no", "instances may be elected again: the cluster is not about to be stopped")
}

// elections tells instances whether they are kept from being elected.
func elections(pods []*snapshot.Instance, kept, reason string) Step {
	step := SetConfig{base: base{reason}}
	for _, pod := range pods {
		step.Changes = append(step.Changes, InstanceConfig{On: target(pod), Engine: pod.Redis.EngineVersion(),
			Settings: map[string]string{redisconf.NoFailover: kept}})
	}
	if len(step.Changes) == 0 {
		return nil
	}
	return step
}

// mayStop is what stopping all instances has to wait for; nil: nothing. Nobody is kept from being elected as long as there is something.
func (in input) mayStop() Step {
	if v := notFenced(in, isFenced, "hibernating the cluster"); !v.Holds {
		return waitFor(v)
	}
	for _, v := range []Verdict{noBackup(in), nothingMoves(in), dataOnDisk(in)} {
		if !v.Holds {
			v.Reason = "spec.hibernate is true, and the instances stop later: " + v.Reason
			return waitFor(v)
		}
	}
	if step := planWithheld(in); step != nil {
		return step
	}
	return awaitConvergence(in, func(*snapshot.Instance) bool { return false })
}

// planHibernate stops a cluster that rests. Instances are told before that none of them is elected: so no role changes, whoever stops
// first, and a master stops last of its shard (switchover.sh).
func planHibernate(in input) Step {
	if !in.desired.Hibernate || !in.snap.Formed {
		return nil
	}
	if step := in.mayStop(); step != nil {
		return step
	}
	if !slices.Equal(in.snap.Hibernated, in.topology) {
		return RecordHibernation{base: base{fmt.Sprintf("spec.hibernate is true: %d instances in %d shards are to stop, and to start again later",
			in.topology.Instances(), len(in.topology))}, Instances: slices.Clone(in.topology)}
	}
	willing := slices.DeleteFunc(slices.Clone(in.snap.Reachable()), func(pod *snapshot.Instance) bool {
		return pod.Redis.Settings[redisconf.NoFailover] == "yes"
	})
	if step := elections(willing, "yes", "spec.hibernate is true: no instance is to be elected while all stop"); step != nil {
		return step
	}
	return Hibernate{base{fmt.Sprintf("spec.hibernate is true: the %d instances stop, each master as the last of its shard",
		in.topology.Instances())}}
}

// nothingMoves reports whether no scaling has begun.
func nothingMoves(in input) Verdict {
	if in.snap.Goal != nil {
		return fails(OwnershipSettled, "slots are to move first")
	}
	return holds(OwnershipSettled)
}

// dataOnDisk proves that all that instances hold is in files that outlive their pods, and that it is known in which.
func dataOnDisk(in input) Verdict {
	for _, pod := range in.snap.Reachable() {
		r, volume := pod.Redis, in.volume(pod)
		switch {
		case r.Master && r.Slots.IsEmpty() && r.Keys == 0: // it has nothing to lose
		case !strings.EqualFold(r.Settings[appendOnly], "yes"):
			return fails(DataOnDisk, "appendonly is not yes on %s: what it holds would be lost", pod.Name)
		case !strings.EqualFold(in.snap.Settings[appendOnly], "yes"):
			return fails(DataOnDisk, "that redis.conf has appendonly yes has not been written down yet (status.settings)")
		case r.Unsaved:
			return fails(DataOnDisk, "%s writes its append-only file anew, or could not (aof_rewrite_in_progress, aof_last_bgrewrite_status of "+
				"INFO); BGREWRITEAOF tries it again", pod.Name)
		case r.PersistenceError != "":
			return fails(DataOnDisk, "%s could not write its data to disk (%s of INFO)", pod.Name, r.PersistenceError)
		case volume == "" || in.snap.DataVolumes[pod.Name] != volume:
			return fails(DataOnDisk, "in which volume %s has its data has not been written down yet", pod.Name)
		}
	}
	return holds(DataOnDisk)
}

// lostClaims are the instances whose claims had data when they were stopped, and are not there any more, sorted.
func (in input) lostClaims() []string {
	if in.desired.ClaimBytes == 0 {
		return nil
	}
	var lost []string
	for _, name := range slices.Sorted(maps.Keys(in.snap.DataVolumes)) {
		volume := in.snap.DataVolumes[name]
		there := slices.ContainsFunc(in.snap.Claims, func(c snapshot.Claim) bool { return c.UID == volume && !c.Terminating })
		if volume != "" && volume != notItsOwn && !strings.HasPrefix(volume, onNode) && in.asksForPod(name) && !there {
			lost = append(lost, name)
		}
	}
	return lost
}

// planLostClaims keeps a cluster hibernated from which claims were taken: an instance would begin with nothing, and what its replicas
// lack might be nowhere.
func planLostClaims(in input) Step {
	lost := in.lostClaims()
	if lost == nil || !in.asleep() {
		return nil
	}
	volumes := fnv.New32a()
	for _, name := range lost {
		_, _ = volumes.Write([]byte(in.snap.DataVolumes[name])) // a hash takes all
	}
	loss := fmt.Sprintf("%08x", volumes.Sum32())
	if in.desired.GiveUp == loss {
		return GiveUp{base: base{fmt.Sprintf("the annotation %s says that %s may start with other claims", v1alpha1.AnnotationGiveUpData,
			list(lost))},
			Pods: lost}
	}
	return Stall{base: base{fmt.Sprintf(
		"claims that had data when the cluster was hibernated are gone, or others have their names: those of %s. It does not start without "+
			"them. Put back the data, each in a claim of that name, or give it up; then set the annotation %s to %s",
		list(lost), v1alpha1.AnnotationGiveUpData, loss)}, Cause: "DataLost", BlockedBy: DataFound}
}

// planSleep waits for pods to stop, and then for nothing.
func planSleep(in input) Step {
	if n := len(in.snap.Instances); n > 0 && in.dormant {
		v := fails(PodsGone, "%d pods are still stopping", n)
		return Wait{base: base{v.Reason}, BlockedBy: v.Predicate} // Kubernetes tells when they are gone
	}
	if !in.dormant {
		return waitFor(fails(SnapshotComplete, "the StatefulSets are about to ask for instances again"))
	}
	return Sleep{base{"the cluster is hibernated: no instance runs, and the data is kept; set spec.hibernate to false to start it"}}
}
