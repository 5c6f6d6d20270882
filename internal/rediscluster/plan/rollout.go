// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// RolloutWait means that instances run an older template than the one asked for, and that
// restarting them is left to the user (pod[0].updateStrategy.type OnDelete).
type RolloutWait struct{ base }

// Restart deletes the pod of an instance, so that it comes back with the template asked for.
type Restart struct {
	base
	Pod, UID string
	// Failing reports whether the pod is not ready as it is, because the instance or what runs beside
	// it does not start: a disruption budget has no say in its deletion.
	Failing bool
}

// Name implements Step.
func (RolloutWait) Name() string { return v1alpha1.ReasonRollout }

// Name implements Step.
func (Restart) Name() string { return "Restart" }

// Rollout is how far a new template has come. It does not go to and fro while an instance
// crashes again and again.
type Rollout struct {
	// Updated of Total instances are not of an older template any more.
	Updated, Total int32
}

func (in input) rollout() *Rollout {
	total := in.topology.Instances()
	r := &Rollout{Updated: total, Total: total}
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; in.stale(pod) || in.unobservedShard(pod.Shard) {
			r.Updated = max(0, r.Updated-1)
		}
	}
	return r
}

// stale reports whether the instance's pod is of an older template than the one asked for, or has started with a redis.conf that
// has other ports.
func (in input) stale(pod *snapshot.Instance) bool {
	for _, shard := range in.snap.Shards {
		if shard.Index == pod.Shard {
			return shard.UpdateRevision != "" && pod.Revision != "" && (pod.Revision != shard.UpdateRevision || in.otherPorts(pod)) &&
				!in.leaving(pod.Shard, pod.Ordinal)
		}
	}
	return false
}

// otherPorts reports whether an instance takes TLS at the port that others have for plain connections, or the other way round.
func (in input) otherPorts(pod *snapshot.Instance) bool {
	stage := pod.TLSStage()
	return in.desired.TLS != "" && stage != redisconf.TLSUnknown && (stage == redisconf.TLSRequired) != (in.tls == redisconf.TLSRequired)
}

// outdated are the stale instances in the order in which they are restarted: one that the
// Service was taken away from goes on, replicas come before masters, and those that are not
// ready before others. A master that has switched over is a replica, and comes next. Those that are fenced are left out.
func (in input) outdated() []*snapshot.Instance {
	var outdated []*snapshot.Instance
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; in.stale(pod) && !pod.Fenced {
			outdated = append(outdated, pod)
		}
	}
	slices.SortStableFunc(outdated, func(a, b *snapshot.Instance) int { return cmp.Compare(in.urgency(a), in.urgency(b)) })
	return outdated
}

func (in input) urgency(pod *snapshot.Instance) int {
	switch {
	case pod.RemovedFromEndpoints():
		return 0
	case pod.Redis != nil && !pod.Redis.Master && pod.SidecarFailure != "":
		return 1
	case pod.Redis != nil && !pod.Redis.Master:
		return 2
	default:
		return 3
	}
}

// retiring reports whether the instance was taken from the Service in order to be restarted.
func (in input) retiring(pod *snapshot.Instance) bool {
	return pod.RemovedFromEndpoints() && !in.desired.OnDelete && !pod.Fenced && in.stale(pod) && !in.held() && in.unfenced("").Holds
}

// unobserved names a StatefulSet whose controller has not seen its template of now; empty when
// there is none.
func (in input) unobserved() string {
	for _, shard := range in.snap.Shards {
		if shard.Unobserved && !shard.Terminating {
			return shard.Name
		}
	}
	return ""
}

func (in input) unobservedShard(index int) bool {
	return slices.ContainsFunc(in.snap.Shards, func(s snapshot.Shard) bool { return s.Index == index && s.Unobserved })
}

// rolling reports whether the operator restarts instances of this cluster, or just did.
func (in input) rolling() bool {
	return in.snap.Formed && !in.desired.OnDelete && !in.held() && (in.snap.Rolling || len(in.outdated()) > 0 || in.unobserved() != "")
}

// planRepair replaces an instance that does not run by one of the template asked for: a
// version that does not start, or an init container that does not end, is left behind when
// the spec names another one, without waiting for it. (A StatefulSet's own controller would wait for ever.)
func planRepair(in input) Step {
	if in.desired.OnDelete {
		return nil
	}
	for _, pod := range in.outdated() {
		why := pod.Waiting
		if !pod.Failing && pod.Initializing != "" {
			why = "container " + pod.Initializing + " comes first, and still runs"
		}
		if (pod.Failing || pod.Initializing != "") && pod.Redis == nil && !pod.Terminating && in.replaceable(pod) {
			return Restart{base: base{fmt.Sprintf("%s does not run (%s) and is of an older template", pod.Name, why)}, Pod: pod.Name,
				UID: pod.UID, Failing: true}
		}
	}
	return nil
}

// replaceable reports whether no data goes with the pod: the cluster holds none yet, a claim keeps
// it, or another instance of the shard has it.
func (in input) replaceable(pod *snapshot.Instance) bool {
	if !in.snap.Formed || slices.ContainsFunc(in.snap.Claims, func(c snapshot.Claim) bool { return c.Pod() == pod.Name && !c.Terminating }) {
		return true
	}
	return slices.ContainsFunc(in.snap.Reachable(), func(other *snapshot.Instance) bool { return other.Shard == pod.Shard })
}

// planRollout restarts instances that run an older template, one at a time. It is reached
// only when the last one is back: it serves, is in sync, and all know it (planConverge), and
// no slots are to move.
func planRollout(in input) Step {
	outdated := in.outdated()
	switch {
	case in.held():
		return nil // planTurn tells
	case in.unobserved() != "":
		return waitFor(fails(TemplateObserved, "which pods of StatefulSet %s are of an older template is not known yet", in.unobserved()))
	case len(outdated) == 0:
		return nil
	case in.desired.OnDelete && in.desired.Hibernate:
		return nil // they take the new one when they start again
	case in.desired.OnDelete:
		names := make([]string, len(outdated))
		for i, pod := range outdated {
			names[i] = pod.Name
		}
		return RolloutWait{base{"these pods run an older template, and take the new one when you delete them, replicas first: " + list(names)}}
	}
	next := outdated[0]
	if next.Terminating {
		return waitFor(fails(PodsGone, "%s is stopping", next.Name))
	}
	if v := in.unfenced("the new template"); !v.Holds && next.SidecarFailure == "" {
		return waitFor(v)
	}
	step := retire(in, next)
	if _, waits := step.(Wait); waits && !next.Redis.Master {
		// While the clients of one master learn who has taken over, the next one switches over: they learn of it meanwhile.
		if other := another(in, outdated); other != nil {
			return other
		}
	}
	if step != nil {
		return step
	}
	return Restart{
		base: base{fmt.Sprintf("%s runs an older template, as %d of %d instances do", next.Name, len(outdated), len(in.snap.Instances))},
		Pod:  next.Name, UID: next.UID, Failing: next.SidecarFailure != ""}
}

// another lets a replica that has the new template take over from a master that is to be restarted, if there is such a pair.
func another(in input, outdated []*snapshot.Instance) Step {
	for _, pod := range outdated {
		if !pod.Redis.Master || in.alone(pod) {
			continue
		}
		if step, ok := switchOver(in, pod).(Switchover); ok && !in.stale(in.snap.ByNodeID(step.Replica.NodeID)) {
			return step
		}
	}
	return nil
}

// retire prepares an instance for its restart. A replica takes over from a master, which the
// Service leads no client to any more, and clients have stopped asking it. A replica that
// clients do not take for a master needs no more than its pod's own timeout: it serves for
// two seconds after its Service has been told (switchover.sh).
func retire(in input, pod *snapshot.Instance) Step {
	switch {
	case in.alone(pod):
		return nil
	case !pod.Redis.Master && !pod.RemovedFromEndpoints():
		if pod.HasReadinessGate && pod.InEndpoints && in.now.Sub(pod.Redis.RedirectedAt) < quietBeforeRestart {
			return RemoveFromEndpoints{base: base{fmt.Sprintf("%s is about to be restarted, and clients still ask it for slots that have moved",
				pod.Name)},
				Pods: []string{pod.Name}}
		}
		return nil
	case pod.Redis.Master:
		step := switchOver(in, pod)
		if Is[Switchover](step) && pod.HasReadinessGate && pod.InEndpoints {
			return RemoveFromEndpoints{base: base{fmt.Sprintf("%s is about to be restarted with a new template", pod.Name)},
				Pods: []string{pod.Name}}
		}
		return step
	default:
		return removeFromEndpoints(in, []*snapshot.Instance{pod}, quietBeforeRestart)
	}
}

// quietBeforeRestart is shorter than quiet because the instance comes back: a client that
// asks seldom finds it again.
const quietBeforeRestart = 3 * time.Second

// alone reports whether the instance is the only one of its shard: nobody could take over, and its
// shard does not serve while it restarts.
func (in input) alone(pod *snapshot.Instance) bool {
	return in.desired.Topology[pod.Shard] == 1
}

// switchOver makes a replica the master in place of one that is to be restarted: one with the
// new template if there is any, so that the shard changes hands once.
func switchOver(in input, master *snapshot.Instance) Step {
	var best *snapshot.Instance
	for _, pod := range in.snap.Reachable() {
		if !in.staysInSync(pod, master) || in.retiring(pod) {
			continue
		}
		if best == nil || prefer(in, pod, best) {
			best = pod
		}
	}
	if best = in.knownReplica(best, master); best == nil {
		return waitFor(fails(ReplicaInSync, "%s is to be restarted and is the master of shard %d, of which no other instance is in sync",
			master.Name, master.Shard))
	}
	if v := in.knownOutside(best); !v.Holds {
		return waitFor(v)
	}
	return Switchover{
		base:   base{fmt.Sprintf("%s is to be restarted and is the master of shard %d: %s takes over", master.Name, master.Shard, best.Name)},
		Master: target(master), Replica: target(best)}
}

// staysInSync reports whether a replica can take over from its master, and is to stay.
func (in input) staysInSync(pod, master *snapshot.Instance) bool {
	return canSucceed(pod, master) && !in.leaving(pod.Shard, pod.Ordinal)
}

// prefer reports whether a is a better successor than b.
func prefer(in input, a, b *snapshot.Instance) bool {
	if in.stale(a) != in.stale(b) {
		return in.stale(b)
	}
	return a.Redis.Offset > b.Redis.Offset
}

// canSucceed reports whether a replica can take over from its master without losing a write.
func canSucceed(pod, master *snapshot.Instance) bool {
	r := pod.Redis
	return !r.Master && r.MasterID == master.Redis.NodeID && r.MasterLinkUp && !pod.Terminating && !pod.Fenced && upToDate(pod, master)
}

// skewed reports whether a stale replica cannot follow its master of a newer version: data of a
// newer engine may be unreadable for an older one. It is no good copy, and the restart that
// awaits it is what mends it.
func (in input) skewed(pod *snapshot.Instance) bool {
	const timeout = 5 * time.Second
	return !in.desired.OnDelete && in.stale(pod) && !pod.Redis.Master && !pod.Redis.MasterLinkUp && pod.Redis.MasterLinkDownFor > timeout
}

// modulesLoaded reports whether no instance is still to restart with other modules. Keys of a module's
// type can go only to where the module is, so no slot begins to move before.
func modulesLoaded(in input) Verdict {
	for i := range in.snap.Instances {
		if pod := &in.snap.Instances[i]; pod.Modules != in.desired.Modules && (in.stale(pod) || in.unobservedShard(pod.Shard)) {
			return fails(ModulesLoaded, "%s has not started with the modules of spec.modules yet", pod.Name)
		}
	}
	return holds(ModulesLoaded)
}
