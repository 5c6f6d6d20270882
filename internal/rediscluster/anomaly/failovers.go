// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package anomaly

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// FailsOver is the reason of a shard whose masters fail again and again.
const FailsOver = "FailsOver"

const (
	// failovers are an anomaly when there are so many within the last hour.
	failovers       = 3
	failoversWithin = time.Hour
	// mostFailovers is how many are remembered of a shard.
	mostFailovers = 8
)

// shard is who a shard's master was, on which pod (its UID), and when it changed although nobody wanted that: neither the operator, nor who
// deleted the pod.
type shard struct {
	master  string
	pod     string
	changes []time.Time
	anomaly *Anomaly
}

// successions are the shards after a look, and who is still to become a master as planned. A shard whose master does not answer is as
// it was.
func successions(h History, s *snapshot.Snapshot, now time.Time) (shards map[int]shard, planned string) {
	next := map[int]shard{}
	masters := s.Masters()
	for _, index := range s.Shards {
		is, known := h.shards[index.Index]
		if in := masters[index.Index]; in != nil && in.Redis.NodeID != is.master {
			switch {
			case in.Redis.NodeID == h.planned:
				h.planned = "" // it has come about
			case known && is.master != "" && !leaves(s, is.pod):
				is.changes = append(slices.Clone(is.changes), now)
				is.changes = is.changes[max(0, len(is.changes)-mostFailovers):]
			}
			is.master, is.pod = in.Redis.NodeID, in.UID
		}
		next[index.Index] = is.judged(index.Index, now)
	}
	return next, h.planned
}

// leaves reports whether a pod is being deleted: its instance hands over before it ends.
func leaves(s *snapshot.Snapshot, pod string) bool {
	return slices.ContainsFunc(s.Instances, func(in snapshot.Instance) bool { return in.UID == pod && in.Terminating })
}

func (s shard) judged(index int, now time.Time) shard {
	s.changes = slices.DeleteFunc(slices.Clone(s.changes), func(at time.Time) bool { return now.Sub(at) >= failoversWithin })
	switch {
	case len(s.changes) < failovers:
		s.anomaly = nil
	case s.anomaly == nil:
		s.anomaly = &Anomaly{Reason: FailsOver, Of: fmt.Sprintf("shard %d", index), Since: now, Message: fmt.Sprintf(
			"%d masters have failed within an hour: kubectl describe pod says why their containers ended, or which node they were lost with",
			len(s.changes))}
	}
	return s
}

func failingOver(shards map[int]shard) (found []Anomaly) {
	for _, index := range slices.Sorted(maps.Keys(shards)) {
		if a := shards[index].anomaly; a != nil {
			found = append(found, *a)
		}
	}
	return found
}
