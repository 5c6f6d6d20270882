// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Fence is an instance that a person asks to have left alone.
type Fence struct {
	// Pod is its name, which is one of this cluster.
	Pod string
	// InForce reports whether it is left alone now.
	InForce bool
	// Waits says why it is not yet; empty when it is.
	Waits string
	// handsOver: it is left alone when another instance has taken over from it.
	handsOver bool
}

// fenced marks the instances that are left alone. All else follows from the mark: rules pass over what has it, spare holds back what a rule
// would do to it all the same, and nobody waits for it to be healthy. An instance that owns slots, or may be the last that has its
// shard's data, gets the mark when another one has taken over: no data is fenced away. Of a shard whose instances are all named, those that
// are named last stay as they are.
func fenced(names []string, s *snapshot.Snapshot) (*snapshot.Snapshot, []Fence) {
	if len(names) == 0 {
		return s, nil
	}
	after := *s
	after.Instances = slices.Clone(s.Instances)
	var fences []Fence
	accepted := map[string]bool{}
	for _, name := range names {
		at := slices.IndexFunc(after.Instances, func(pod snapshot.Instance) bool { return pod.Name == name })
		fence := Fence{Pod: name, Waits: "it has no pod"}
		if at >= 0 {
			pod := &after.Instances[at]
			others := func(other snapshot.Instance) bool {
				return other.Shard == pod.Shard && other.Name != name && !accepted[other.Name]
			}
			if fence.Waits = fmt.Sprintf("shard %d has no other instance that is not fenced", pod.Shard); slices.ContainsFunc(s.Instances, others) {
				accepted[name] = true
				fence.Waits = mayFence(s, pod)
				fence.handsOver = s.Formed && pod.Redis != nil && !pod.Redis.Slots.IsEmpty()
			}
			fence.InForce = fence.Waits == ""
			pod.Fenced = fence.InForce
		}
		fences = append(fences, fence)
	}
	return &after, fences
}

// mayFence says why an instance is not left alone yet; empty: it is.
func mayFence(s *snapshot.Snapshot, pod *snapshot.Instance) string {
	master := s.Masters()[pod.Shard]
	switch r := pod.Redis; {
	case !s.Formed:
		return "the cluster has not formed"
	case r == nil: // there is no role to give away
		return ""
	case !r.Slots.IsEmpty():
		return fmt.Sprintf("it is the master of shard %d", pod.Shard)
	case r.Master && len(r.Migrating)+len(r.Importing)+len(r.Jobs) > 0:
		return "slots are on their way to it or from it"
	case r.Settings[redisconf.NoFailover] == "yes": // as it was told when it was fenced
		return ""
	case master == nil || master.Terminating:
		return fmt.Sprintf("shard %d has no master that answers and stays, and it may be what has the data of the shard", pod.Shard)
	}
	return ""
}

// fences are the instances that a person asks to have left alone, with what keeps the master of a shard from handing over.
func (in input) fences() []Fence {
	fences := slices.Clone(in.asked)
	for i := range fences {
		if !fences[i].handsOver {
			continue
		}
		if step, v := in.switchedFrom(fences[i].Pod); step == nil {
			fences[i].Waits += ": " + v.Reason
		} else {
			fences[i].Waits += ", and another instance is to take over"
		}
	}
	return fences
}

// planFence has a master that is to be left alone hand over, and tells those that are left alone not to be elected; the Service leads no
// client to them. It never waits: what keeps it from doing so holds back nothing else.
func planFence(in input) Step {
	for _, fence := range in.asked {
		if fence.handsOver {
			if step, _ := in.switchedFrom(fence.Pod); step != nil {
				return step
			}
		}
	}
	var willing []*snapshot.Instance
	remove := RemoveFromEndpoints{}
	for i := range in.snap.Instances {
		pod := &in.snap.Instances[i]
		if !pod.Fenced || pod.Terminating {
			continue
		}
		if pod.HasReadinessGate && pod.InEndpoints {
			remove.Pods = append(remove.Pods, pod.Name)
		}
		if pod.Redis != nil && pod.Redis.Settings != nil && pod.Redis.Settings[redisconf.NoFailover] != "yes" {
			willing = append(willing, pod)
		}
	}
	if step := elections(willing, "yes", "instances that are fenced are not to be elected"); step != nil {
		return step
	}
	if len(remove.Pods) == 0 {
		return nil
	}
	remove.Reason = "these instances are fenced: " + list(remove.Pods)
	return remove
}

// switchedFrom lets the best replica take over from a master that is to be left alone; nil and why when none can without losing a write.
func (in input) switchedFrom(name string) (Step, Verdict) {
	if v := nothingMoves(in); !v.Holds {
		return nil, v
	}
	if !slotsCovered(in.snap) || !in.agreed() {
		return nil, fails(Converged, "the instances do not agree yet on who owns what")
	}
	why := fails(ReplicaInSync, "it has no replica that can take over")
	for _, e := range in.exchanges(in.snap.Masters()) {
		if e.master.Name != name || e.replica.Fenced {
			continue
		}
		if v := in.mayTakeOver(e); !v.Holds {
			why = v
			continue
		}
		return Switchover{base: base{fmt.Sprintf("%s is to be fenced and is the master of shard %d: %s takes over", name, e.master.Shard,
			e.replica.Name)}, Master: target(e.master), Replica: target(e.replica)}, holds(ReplicaInSync)
	}
	return nil, why
}

// spare is a step without what it would do to instances that are left alone; nil when nothing is left of it. Rules pass over such instances
// by themselves; this is for those that do not. What all instances have to know or have in common still gets to them: whom to forget,
// passwords, certificates and settings.
func (in input) spare(step Step) Step {
	if len(in.asked) == 0 {
		return step
	}
	alone := func(name string) bool {
		return slices.ContainsFunc(in.snap.Instances, func(pod snapshot.Instance) bool { return pod.Fenced && pod.Name == name })
	}
	touched := ""
	switch found := step.(type) {
	case Restart:
		touched = found.Pod
	case Recreate:
		touched = found.Pod
	case ForceDelete:
		touched = found.Pod
	case Promote:
		touched = found.Replica.Pod
	case Switchover:
		touched = found.Replica.Pod
	case Replicate:
		found.Replications = slices.DeleteFunc(slices.Clone(found.Replications), func(r Replication) bool { return alone(r.Replica.Pod) })
		return orNone(found, len(found.Replications))
	case Meet:
		found.Meetings = slices.DeleteFunc(slices.Clone(found.Meetings), func(m Meeting) bool { return alone(m.From.Pod) || alone(m.To.Pod) })
		return orNone(found, len(found.Meetings))
	case AddToEndpoints:
		found.Pods = slices.DeleteFunc(slices.Clone(found.Pods), alone)
		return orNone(found, len(found.Pods))
	case RemoveShards:
		for i := range in.snap.Instances {
			if pod := &in.snap.Instances[i]; pod.Fenced && found.Shards[pod.Shard] != "" {
				touched = pod.Name
			}
		}
	// What is of an instance that owns slots, which none has that is left alone; what all have to know; and what is about the cluster.
	case SetAccess, ChangePassword, ReloadCertificates, SetNodeTimeout, Forget, CancelJobs, CopyFunctions, BumpEpoch, CutOver, SetTLS,
		SetConfig, RewriteAOF, ReclaimSlots, AssignSlots, StabilizeSlots, RepairSlots, MoveSlots, Place, RemoveFromEndpoints, GiveUp,
		None, Wait, Hold, Stall, RolloutWait, RecordHibernation, Hibernate, Wake, Sleep, RecordNodes, AddFinalizer, CreateAuth,
		RecordCertificate, ApplyCertificate, ApplyChildren, ExpandPVCs, RecordGoal, SetShards, TakeTurn, RestoreShards, KeepRestored,
		DeleteRestoreJobs, RecordKeys, PrepareImport, KeepFollower, RecordCutOver, EndImport,
		EndSwitchover, DeleteChildren, OrphanChildren, RemoveFinalizer:
	}
	if touched != "" && alone(touched) {
		return nil
	}
	return step
}

func orNone(step Step, left int) Step {
	if left == 0 {
		return nil
	}
	return step
}

func isFenced(pod *snapshot.Instance) bool { return pod.Fenced }

// looked are the members that are looked after: all but those that are left alone.
func (in input) looked() []*snapshot.Instance { return slices.DeleteFunc(in.members(), isFenced) }

// unfenced holds unless an instance is left alone. It is not ready, so that a PodDisruptionBudget lets no other one be evicted.
func (in input) unfenced(what string) Verdict {
	return notFenced(in, func(*snapshot.Instance) bool { return true }, what)
}

// fencedAway is the verdict on an instance that the spec does not ask for, and that is left alone.
func (in input) fencedAway(pod *snapshot.Instance) Verdict {
	return notFenced(in, func(other *snapshot.Instance) bool { return other == pod }, "the removal of an instance")
}

// notFenced holds when no instance is left alone, or none that counts.
func notFenced(in input, counts func(*snapshot.Instance) bool, what string) Verdict {
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.Fenced && counts(pod) {
			return fails(NotFenced, "%s waits for %s, which is fenced: take its name out of the annotation %s to go on", what, pod.Name,
				v1alpha1.AnnotationFenced)
		}
	}
	return holds(NotFenced)
}

// planAwaitFence says what of a scaling waits for an instance that is left alone and does not answer: slots move when all do.
func planAwaitFence(in input) Step {
	if slices.Equal(existingTopology(in.snap), in.desired.Topology) {
		if goal, err := in.goal(); err != nil || goal == nil {
			return nil
		}
	}
	v := notFenced(in, func(pod *snapshot.Instance) bool { return pod.Redis == nil }, "the scaling")
	if v.Holds {
		return nil
	}
	return waitFor(v)
}
