// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// How far a restore is, is the sum of its shards, once something is known of each; nothing of that is said before and afterwards.
func TestRestoring(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	runs := func(bytes int64) snapshot.RestoreJob {
		return snapshot.RestoreJob{Heard: &report.Heard{At: at, Progress: report.Progress{Stage: report.StageRestoring, Elapsed: 60, Bytes: bytes,
			Of: 100}}}
	}
	done := snapshot.RestoreJob{Done: true, Report: &report.Report{Shards: []report.Shard{{Bytes: 300}, {Bytes: 100}}}}
	parts := func(first, firstOf, second, secondOf int64) []v1alpha1.ShardProgress {
		return []v1alpha1.ShardProgress{{Shard: 0, Bytes: first, ExpectedBytes: firstOf}, {Shard: 1, Bytes: second, ExpectedBytes: secondOf}}
	}
	whole := func(percent int32, minutes time.Duration, shards []v1alpha1.ShardProgress) *v1alpha1.TransferProgress {
		p := &v1alpha1.TransferProgress{Percent: &percent, Shards: shards}
		for _, s := range shards {
			p.Bytes, p.ExpectedBytes = p.Bytes+s.Bytes, p.ExpectedBytes+s.ExpectedBytes
		}
		if minutes > 0 {
			p.EstimatedEnd = &metav1.Time{Time: at.Add(minutes * time.Minute)}
		}
		return p
	}
	for what, tt := range map[string]struct {
		jobs     map[int]snapshot.RestoreJob
		restored bool
		want     *v1alpha1.TransferProgress
	}{
		"no Job":           {},
		"nothing is known": {jobs: map[int]snapshot.RestoreJob{0: {}, 1: {}}},
		"it is restored":   {jobs: map[int]snapshot.RestoreJob{0: done, 1: done}, restored: true},
		"one is not known": {jobs: map[int]snapshot.RestoreJob{0: runs(50)}, want: &v1alpha1.TransferProgress{Bytes: 50,
			Shards: parts(50, 100, 0, 0)[:1]}},
		"both run":          {jobs: map[int]snapshot.RestoreJob{0: runs(50), 1: runs(20)}, want: whole(35, 4, parts(50, 100, 20, 100))},
		"one has not begun": {jobs: map[int]snapshot.RestoreJob{0: runs(50), 1: runs(0)}, want: whole(25, 0, parts(50, 100, 0, 100))},
		"one is done":       {jobs: map[int]snapshot.RestoreJob{0: done, 1: runs(50)}, want: whole(87, 1, parts(300, 300, 50, 100))},
		"both are done":     {jobs: map[int]snapshot.RestoreJob{0: done, 1: done}, want: whole(99, 0, parts(300, 300, 100, 100))},
		"one did not say what there is": {jobs: map[int]snapshot.RestoreJob{0: {Done: true, Report: &report.Report{}}, 1: runs(50)},
			want: &v1alpha1.TransferProgress{Bytes: 50, Shards: parts(0, 0, 50, 100)[1:]}},
	} {
		s := &snapshot.Snapshot{Restore: &snapshot.Restore{Jobs: tt.jobs}}
		if tt.restored {
			s.Restored = &v1alpha1.RestoredData{}
		}
		if tt.want != nil {
			tt.want.Stage = "Restoring"
		}
		got := restoring(Reconciliation{Snapshot: s, Decision: plan.Decision{Topology: v1alpha1.Topology{1, 1}, Step: plan.Wait{}}})
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
}
