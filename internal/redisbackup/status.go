// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"math"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/excerpt"
)

// longestReason is what of a reason is told, in bytes.
const longestReason = 1024

// ComputeStatus says what the next status is. err is why the step could not be carried out; nil when it was.
func ComputeStatus(s *Snapshot, step Step, err error) v1alpha1.RedisBackupStatus {
	status := *s.Backup.Status.DeepCopy()
	if untold(step) {
		return status
	}
	status.Location, status.Progress = s.Backup.Location().String(), nil
	if _, follows := step.(Follow); follows {
		status.Progress = backupjob.Progress(s.Heard)
	}
	if s.Job != nil { // also one that was made by a process that ended before it could say so
		status.JobName, status.Jobs = s.Job.Name, max(status.Jobs, 1)
	}
	if err != nil {
		status.Reason = excerpt.Of(err.Error(), longestReason)
		return completed(s, status)
	}
	switch step := step.(type) {
	case Rest, Guard, Release:
	case Wait:
		status.Reason = step.Reason
		// Once slots stay for it, they do until it has ended: a turn that is given back could be taken for one that is still granted.
		if !s.Backup.Active() {
			status.Phase = v1alpha1.BackupPending
			if step.Ready {
				status.Phase = v1alpha1.BackupPreparing
			}
		}
	case Start:
		status.Phase, status.JobName, status.Reason = v1alpha1.BackupRunning, s.Backup.JobName(), "the Job that takes the backup was made"
		status.Jobs++
	case Follow:
		status.Phase, status.Reason = v1alpha1.BackupRunning, step.Reason
	case Repeat:
		status.Reason = step.Reason
	case Stop:
		status.Reason = step.Reason
	case Erase:
		status.Reason = "Job " + s.Backup.DeletionJobName() + " deletes it from the store"
	case AwaitErased:
		status.Reason = step.Reason
	case EraseAgain:
		status.Reason = step.Reason
	case Complete:
		complete(&status, step, s.Now)
	case Fail:
		status.Phase, status.Reason, status.EndedAt = v1alpha1.BackupFailed, step.Reason, second(s.Now)
	}
	status.Reason = excerpt.Of(status.Reason, longestReason)
	return completed(s, status)
}

// untold reports whether nobody is told of a step.
func untold(step Step) bool {
	switch step.(type) {
	case Rest, Guard, Release:
		return true
	case Wait, Stop, Start, Follow, Repeat, Erase, AwaitErased, EraseAgain, Complete, Fail:
	}
	return false
}

// completed sets the conditions to what the phase says.
func completed(s *Snapshot, status v1alpha1.RedisBackupStatus) v1alpha1.RedisBackupStatus {
	reason := string(status.Phase)
	if reason == "" {
		reason = string(v1alpha1.BackupPending)
	}
	set := func(condition string, phase v1alpha1.BackupPhase) metav1.Condition {
		return conditions.Condition(condition, conditions.Status(status.Phase == phase), reason, status.Reason)
	}
	status.Conditions = conditions.Set(status.Conditions, s.Now, s.Backup.Generation,
		set(v1alpha1.BackupConditionCompleted, v1alpha1.BackupCompleted), set(v1alpha1.BackupConditionFailed, v1alpha1.BackupFailed))
	return status
}

func complete(status *v1alpha1.RedisBackupStatus, step Complete, now time.Time) {
	r := step.Report
	status.Phase, status.Reason, status.EndedAt = v1alpha1.BackupCompleted, "all of it was read back from the store", second(now)
	status.MarkedAt, status.Consistent = second(r.Marked), &r.Consistent
	status.PausedMilliseconds, status.SkewMilliseconds = milliseconds(r.Paused), milliseconds(r.Skew)
	status.Engine, status.Version = r.Engine, r.Version
	status.Bytes, status.StoredBytes, status.ManifestChecksum = r.Bytes, r.Stored, r.Manifest
	status.ShardCount, status.Shards = int32(r.Count), nil //nolint:gosec // Parse bounds it by the number of slots
	if c := r.Counts; c != nil {
		status.Keys = &v1alpha1.KeyCount{Total: c.Keys, WithTTL: c.WithTTL, WithFieldTTL: c.WithFieldTTL}
	}
	for _, shard := range r.Shards {
		status.Shards = append(status.Shards, v1alpha1.BackupShard{Slots: shard.Slots, Bytes: shard.Bytes, StoredBytes: shard.Stored})
	}
}

// milliseconds rounds up, so that a delay does not become none.
func milliseconds(seconds float64) int64 {
	const in = 1000
	return int64(math.Ceil(min(seconds, math.MaxInt32) * in))
}

// second is a time as the API keeps it.
func second(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &at
}
