// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// wordForSource is what a person sets the annotation to who gives the source of this import up; empty: a first instance does not answer.
func (in input) wordForSource() string {
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
	return lossOf(first)
}

// gaveUpSource reports whether a person gave the source up.
func (in input) gaveUpSource() bool {
	said := in.desired.GiveUpSource
	return said != "" && said == in.wordForSource()
}

// abandoned reports whether the server that an instance follows is not there, and the instance holds what it got of it.
func (in input) abandoned(pod *snapshot.Instance) bool {
	r := pod.Redis
	return pod.Shard < len(in.snap.Import.Shards) && in.snap.Import.Shards[pod.Shard].Source == nil &&
		!r.MasterLinkUp && !r.Loading && !r.Unsaved
}

// ifGone says what a person can do if the server that an instance follows does not come back; empty: it is there, or nothing was got of it.
func (in input) ifGone(pod *snapshot.Instance, others bool) string {
	if !in.abandoned(pod) || !others && pod.Redis.Keys == 0 {
		return ""
	}
	return fmt.Sprintf("; if it is gone for good, what the instances hold can be taken over (%s has %d keys): set the annotation %s to %s", pod.Name,
		pod.Redis.Keys, v1alpha1.AnnotationGiveUpSource, in.wordForSource())
}
