// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// restoring is how far the Jobs are that restore shards; nil: none does, or nothing is known of any. The whole is known when it is of every
// shard.
func restoring(p Reconciliation) *v1alpha1.TransferProgress {
	r := p.Snapshot.Restore
	if r == nil || restored(p) != nil || len(p.Snapshot.Shards) > 0 {
		return nil
	}
	all := &v1alpha1.TransferProgress{Stage: string(report.StageRestoring)}
	whole, end := true, time.Time{}
	for shard := range p.Decision.Topology {
		bytes, of := restoredBytes(r.Jobs[shard], shard)
		whole = whole && of > 0
		if of == 0 {
			continue
		}
		all.Bytes, all.ExpectedBytes = all.Bytes+bytes, all.ExpectedBytes+of
		all.Shards = append(all.Shards, v1alpha1.ShardProgress{Shard: int32(shard), Bytes: bytes, ExpectedBytes: of})
		if heard := r.Jobs[shard].Heard; heard != nil {
			its := heard.End()
			whole = whole && (!its.IsZero() || bytes == of)
			if its.After(end) {
				end = its
			}
		}
	}
	switch {
	case len(all.Shards) == 0:
		return nil
	case len(all.Shards) < len(p.Decision.Topology):
		all.ExpectedBytes = 0
		return all
	case whole && !end.IsZero():
		all.EstimatedEnd = &metav1.Time{Time: end.UTC().Truncate(timeUnit)}
	}
	all.Percent = backupjob.Percent(float64(all.Bytes) / float64(all.ExpectedBytes))
	return all
}

// restoredBytes are those of a shard that are restored, and of how many; of none: that is not known.
func restoredBytes(job snapshot.RestoreJob, shard int) (bytes, of int64) {
	switch {
	case job.Done && job.Report != nil && shard < len(job.Report.Shards):
		of = max(job.Report.Shards[shard].Bytes, 1)
		return of, of
	case !job.Done && job.Heard != nil:
		return min(job.Heard.Bytes, job.Heard.Of), job.Heard.Of
	}
	return 0, 0
}
