// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// GiveUp records that what was in the volumes of some instances is given up: a person said so.
type GiveUp struct {
	base
	Pods []string
}

// Name implements Step.
func (GiveUp) Name() string { return "GiveUp" }

// notItsOwn is the volume of an instance that has no claim of its own.
const notItsOwn = "shared"

// volume identifies what an instance keeps its data in; empty when that goes with the pod, or
// is not known.
func (in input) volume(pod *snapshot.Instance) string {
	at := slices.IndexFunc(in.snap.Claims, func(c snapshot.Claim) bool { return c.Pod() == pod.Name })
	switch {
	case in.desired.Ephemeral:
		return ""
	case in.desired.OnNode && pod.NodeName == "":
		return ""
	case in.desired.OnNode:
		return onNode + pod.NodeName
	case at >= 0:
		return in.snap.Claims[at].UID
	case in.desired.ClaimBytes > 0:
		return "" // the claim was not seen yet
	default:
		return notItsOwn
	}
}

// dataVolumes are, by pod, the volumes that data was last seen in, after this reconciliation. What was
// given up is there with an empty volume. Instances that do not exist now keep theirs.
func (in input) dataVolumes(step Step) map[string]string {
	if len(in.problems) > 0 {
		return in.snap.DataVolumes // where data is kept is not known
	}
	after := map[string]string{}
	for name, volume := range in.snap.DataVolumes {
		if in.asksForPod(name) {
			after[name] = volume
		}
	}
	for _, pod := range in.snap.Reachable() {
		r := pod.Redis
		if volume := in.volume(pod); volume != "" && (!r.Slots.IsEmpty() || r.Keys > 0 || !r.Master && r.MasterLinkUp) {
			after[pod.Name] = volume
		}
	}
	if give, ok := step.(GiveUp); ok {
		for _, pod := range give.Pods {
			after[pod] = ""
		}
	}
	if len(after) == 0 || in.desired.Ephemeral {
		return nil
	}
	return after
}

// asksForPod reports whether a pod of the name, which ends in its shard and ordinal, is asked for.
func (in input) asksForPod(name string) bool {
	rest, last := cutLast(name)
	_, before := cutLast(rest)
	ordinal, err := strconv.Atoi(last)
	shard, err2 := strconv.Atoi(before)
	return err == nil && err2 == nil && shard < len(in.topology) && ordinal < int(in.topology[shard])
}

func cutLast(name string) (before, after string) {
	at := strings.LastIndex(name, "-")
	return name[:max(at, 0)], name[at+1:]
}

// emptied are the instances whose volumes had data before and have none now: the volume is the
// same, and the instance a new node without a slot, a key, or a master. (A claim that was
// deleted and made anew is another volume: who deletes a claim gives its data up.) When nothing
// is left of a whole cluster, new claims count as well: a restore that failed makes new ones.
func (in input) emptied() []*snapshot.Instance {
	var found []*snapshot.Instance
	nothing := in.snap.Owned().IsEmpty()
	for _, pod := range in.snap.Reachable() {
		nothing = nothing && pod.Redis.Keys == 0
	}
	for _, pod := range in.snap.Reachable() {
		r := pod.Redis
		volume, known := in.snap.DataVolumes[pod.Name]
		had := known && volume != "" && (nothing || volume == in.volume(pod)) || nothing && !known
		if had && r.Master && r.Slots.IsEmpty() && r.Keys == 0 && len(r.Importing) == 0 {
			found = append(found, pod)
		}
	}
	return found
}

// lossOf is what a person names a loss by, of these instances. New nodes have new IDs, so that what was said about one loss does not count
// for the next.
func lossOf(pods []*snapshot.Instance) string {
	ids := fnv.New32a()
	for _, pod := range pods {
		_, _ = ids.Write([]byte(pod.Redis.NodeID)) // a hash takes all
	}
	return fmt.Sprintf("%08x", ids.Sum32())
}

// lostData stops before slots whose data was in volumes that have come back empty are given
// away: nobody who puts the data back would find room for it. Nil when there is no such loss, or
// it was given up.
func (in input) lostData(missing slots.Set) Step {
	if !in.snap.Formed || in.desired.Ephemeral {
		return nil
	}
	pods := in.emptied()
	if len(pods) == 0 {
		return nil
	}
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	loss := lossOf(pods)
	if in.desired.GiveUp == loss {
		return GiveUp{
			base: base{fmt.Sprintf("the annotation %s gives up what was in the volumes of %s", v1alpha1.AnnotationGiveUpData, list(names))},
			Pods: names}
	}
	return Stall{
		base: base{fmt.Sprintf(
			"no instance owns slots %s, and volumes that had data are empty: those of %s. Put the data back and delete these pods, or give it up: set the annotation %s to %s",
			missing, list(names), v1alpha1.AnnotationGiveUpData, loss)}, Cause: "DataLost", BlockedBy: DataFound}
}
