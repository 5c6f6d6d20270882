// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// goneFor is how long an instance has had no link to a server that may be given up: one look says nothing.
	goneFor = 2 * time.Minute
	// mostGivenUp is how many shards one word gives up, so that a person reads what each holds. Others are named when these are done.
	mostGivenUp = 16
)

// wordForSource begins the value that a person sets the annotation to who gives the source of this import up, and lets a clone be of two
// moments; empty: a first instance does not answer. The numbers of the shards follow that take over with what they hold.
func (in input) wordForSource(shards ...int) string {
	if in.snap.Import == nil || len(in.snap.Import.Shards) == 0 {
		return ""
	}
	var first []*snapshot.Instance
	for shard := range in.snap.Import.Shards {
		pod := in.snap.Find(shard, 0)
		if pod == nil || pod.Redis == nil {
			return ""
		}
		first = append(first, pod)
	}
	word := lossOf(first)
	for _, shard := range shards {
		word += "-" + strconv.Itoa(shard)
	}
	return word
}

// gaveUpSource reports whether a person gave up the source, of some shards or of none.
func (in input) gaveUpSource() bool {
	word, _, _ := strings.Cut(in.desired.GiveUpSource, "-")
	return word != "" && word == in.wordForSource()
}

// takesAlone reports whether an instance takes over with what it holds: its server is not there, and a person gave that up for its shard.
func (in input) takesAlone(pod *snapshot.Instance) bool {
	_, shards, _ := strings.Cut(in.desired.GiveUpSource, "-")
	return in.gaveUpSource() && in.abandoned(pod) && slices.Contains(strings.Split(shards, "-"), strconv.Itoa(pod.Shard))
}

// abandoned reports whether the server that an instance follows is not there, nor has been for some time, and the instance holds what it
// got of it.
func (in input) abandoned(pod *snapshot.Instance) bool {
	r := pod.Redis
	return pod.Shard < len(in.snap.Import.Shards) && in.snap.Import.Shards[pod.Shard].Source == nil &&
		!r.MasterLinkUp && r.MasterLinkDownFor >= goneFor && !r.Syncing && !r.Loading && !r.Unsaved
}

// ready tells the instances that take over while writes are paused from those that take over alone, and why one cannot yet: one whose
// server is gone keeps only the former back.
func (in input) ready(followers []*snapshot.Instance) (paused, alone []Follower, waits Verdict) {
	waits = holds(SourceFollowed)
	for _, pod := range followers {
		f := Follower{On: target(pod), MasterID: pod.Redis.MasterID}
		if pod.Shard < len(in.snap.Import.Shards) {
			f.Relay = in.snap.Import.Shards[pod.Shard].RelayIP
			f.Slots, _ = in.snap.Import.Begins(pod.Shard)
		}
		switch v := sourceFollowed(in, pod); {
		case in.takesAlone(pod):
			alone = append(alone, f)
		case v.Holds:
			paused = append(paused, f)
		case !in.abandoned(pod):
			return nil, nil, v
		case waits.Holds:
			waits = v
		}
	}
	return paused, alone, waits
}

// ifGone says what a person can do if the servers that instances follow do not come back; empty: they are there, or nothing was got of
// them.
func (in input) ifGone(followers []*snapshot.Instance, others bool) string {
	var shards []int
	var holds []string
	worth := others
	for _, pod := range followers {
		if !in.abandoned(pod) || in.takesAlone(pod) || len(shards) == mostGivenUp {
			continue
		}
		text := fmt.Sprintf("%s has %d keys", pod.Name, pod.Redis.Keys)
		if !pod.Redis.MasterLinkLost { // it has not had all since it started
			text += ", perhaps in the middle of a copy"
		}
		shards, holds, worth = append(shards, pod.Shard), append(holds, text), worth || pod.Redis.Keys > 0
	}
	if len(shards) == 0 || !worth {
		return ""
	}
	return fmt.Sprintf("; if the source is gone for good, what instances hold can be taken over (%s): set the annotation %s to %s",
		strings.Join(holds, "; "), v1alpha1.AnnotationGiveUpSource, in.wordForSource(shards...))
}

// needsRelay reports whether a shard's instance still has to do with its server: not of a source that was given up, once it has taken over,
// or is to take over alone. A relay that cannot be made would keep it from that.
func (in input) needsRelay(shard int) bool {
	if !in.gaveUpSource() {
		return true
	}
	pod := in.snap.Find(shard, 0)
	return !pod.Redis.Master && !in.takesAlone(pod)
}
