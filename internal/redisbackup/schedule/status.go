// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/excerpt"
)

// longestReason is what of a reason is told, in bytes.
const longestReason = 1024

// ComputeStatus says what the next status is. err is why the step could not be carried out; nil when it was.
func ComputeStatus(s *Snapshot, step Step, err error) v1alpha1.RedisBackupScheduleStatus {
	status := *s.Schedule.Status.DeepCopy()
	if s.Schedule.DeletionTimestamp != nil {
		return status
	}
	if at := settled(step); !at.IsZero() && err == nil {
		status.LastScheduleTime = second(at)
	}
	status.NextScheduleTime = nil
	if next := upcoming(s); !next.IsZero() {
		status.NextScheduleTime = second(next)
	}
	list := complete(s)
	status.Backups, status.LastSuccessfulBackup = int32(len(list)), nil //nolint:gosec // of one namespace
	if len(list) > 0 {
		of := list[0].CreationTimestamp
		if marked := list[0].Status.MarkedAt; marked != nil {
			of = *marked
		}
		status.LastSuccessfulBackup = &v1alpha1.ScheduledBackup{Name: list[0].Name, Time: *second(of.Time)}
	}
	status.Active = ""
	if made, ok := step.(Make); ok && err == nil {
		status.Active = s.Schedule.BackupName(made.At)
	}
	for i := range s.Backups {
		if b := &s.Backups[i]; s.Schedule.Made(b) && !b.Ended() {
			status.Active = b.Name
		}
	}
	scheduled, backedUp := scheduled(s, step, err), backedUp(s)
	scheduled.Message, backedUp.Message = excerpt.Of(scheduled.Message, longestReason), excerpt.Of(backedUp.Message, longestReason)
	status.Conditions = conditions.Set(status.Conditions, s.Now, s.Schedule.Generation, scheduled, backedUp)
	verification(s, step, err, &status)
	return status
}

// settled is the time that a step has done with; zero: none.
func settled(step Step) time.Time {
	switch step := step.(type) {
	case Make:
		return step.At
	case Note:
		return step.At
	case Pass:
		return step.At
	case Skip:
		return step.At
	case Rest, Prune, BeginVerification, SkipVerification, MakeThrowaway, EndVerification, DeleteThrowaway, Relabel:
	}
	return time.Time{}
}

// upcoming is when the next backup begins; zero: none does.
func upcoming(s *Snapshot) time.Time {
	t, refused := timesOf(s.Schedule)
	if refused != nil || s.Schedule.Spec.Suspend {
		return time.Time{}
	}
	return t.upcoming(since(s), s.Now)
}

func scheduled(s *Snapshot, step Step, err error) metav1.Condition {
	is := func(holds bool, reason, message string) metav1.Condition {
		return conditions.Condition(v1alpha1.ScheduleConditionScheduled, conditions.Status(holds), reason, message)
	}
	_, refused := timesOf(s.Schedule)
	_, makes := step.(Make)
	switch {
	case refused != nil:
		return is(false, refused.reason, refused.message)
	case s.Schedule.Spec.Suspend:
		return is(false, v1alpha1.ScheduleSuspended, "spec.suspend is true: no backups are made")
	case s.Cluster == nil:
		return is(false, v1alpha1.ScheduleNoCluster, fmt.Sprintf("spec.cluster: there is no RedisCluster %s in this namespace, or it is being "+
			"deleted: the backup that was due last is made when there is one", s.Schedule.Spec.Cluster))
	case makes && err != nil:
		return is(false, v1alpha1.ScheduleNotMade, fmt.Sprintf("it is tried again: %v", err))
	}
	if skipped, ok := step.(Skip); ok {
		return is(true, skipped.Reason, skipped.Message)
	}
	// What was left out is told until another one is made.
	c := meta.FindStatusCondition(s.Schedule.Status.Conditions, v1alpha1.ScheduleConditionScheduled)
	left := c != nil && (c.Reason == v1alpha1.ScheduleSkippedActive || c.Reason == v1alpha1.ScheduleSkippedTaken ||
		c.Reason == v1alpha1.ScheduleSkippedAsleep)
	if left && settled(step).IsZero() {
		return is(true, c.Reason, c.Message)
	}
	followed := "backups are made as the spec says"
	if s.Unlabelled != "" {
		followed += "; what was made under other labels stays another operator's: " + s.Unlabelled
	}
	return is(true, v1alpha1.ScheduleFollowed, followed)
}

// backedUp is about the latest backup that came to its end.
func backedUp(s *Snapshot) metav1.Condition {
	is := func(status metav1.ConditionStatus, reason, message string) metav1.Condition {
		return conditions.Condition(v1alpha1.ScheduleConditionBackedUp, status, reason, message)
	}
	ended := slices.DeleteFunc(ours(s), func(b *v1alpha1.RedisBackup) bool { return !b.Ended() })
	if len(ended) == 0 {
		return is(metav1.ConditionUnknown, v1alpha1.ScheduleNoBackup, "no backup has come to its end")
	}
	last := slices.MinFunc(ended, later)
	if last.Status.Phase == v1alpha1.BackupFailed {
		return is(metav1.ConditionFalse, v1alpha1.ScheduleBackupFailed, fmt.Sprintf("RedisBackup %s failed: %s", last.Name, last.Status.Reason))
	}
	return is(metav1.ConditionTrue, v1alpha1.ScheduleBackupComplete, fmt.Sprintf("RedisBackup %s is complete", last.Name))
}

// second is a time as the API keeps it.
func second(t time.Time) *metav1.Time {
	at := metav1.NewTime(t.UTC().Truncate(time.Second))
	return &at
}
