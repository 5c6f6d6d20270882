// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/conditions"
	"middleware.hc.cn/operator/internal/excerpt"
)

// verification brings what the status says of verifications up to date. Without spec.verify it says nothing.
func verification(s *Snapshot, step Step, err error, status *v1alpha1.RedisBackupScheduleStatus) {
	status.NextVerificationTime = nil
	if s.Schedule.Spec.Verify == nil {
		status.LastVerificationTime, status.Verification, status.LastVerified = nil, nil, nil
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ScheduleConditionVerified)
		return
	}
	t, refused := verificationTimesOf(s.Schedule)
	if refused == nil && !s.Schedule.Spec.Suspend {
		if next := t.Next(s.Now); !next.IsZero() {
			status.NextVerificationTime = second(next)
		}
	}
	resumes := suspended(s.Schedule) && !s.Schedule.Spec.Suspend
	if last := status.LastVerificationTime; last == nil || last.After(s.Now.Add(ahead)) || resumes {
		status.LastVerificationTime = second(s.Now)
	}
	verified := stillVerified(s)
	switch step := step.(type) {
	case BeginVerification:
		status.Verification = &v1alpha1.VerificationStatus{Backup: step.Backup, Cluster: s.Schedule.ThrowawayName(), StartedAt: *second(s.Now)}
	case SkipVerification:
		status.LastVerificationTime = second(s.Now)
		verified = Finding{Status: metav1.ConditionUnknown, Reason: step.Reason, Message: step.Message}
	case EndVerification: // times that came meanwhile are left out
		if step.Status == metav1.ConditionTrue {
			status.LastVerified = &v1alpha1.VerifiedBackup{Backup: verifying(s.Schedule), Time: *second(s.Now), Keys: step.Keys}
		}
		status.Verification, status.LastVerificationTime, verified = nil, second(s.Now), step.Finding
	case Rest, Make, Note, Pass, Skip, Prune, MakeThrowaway, DeleteThrowaway, Relabel:
		if status.Verification != nil {
			status.Verification.Message = excerpt.Of(progress(s, step, err), longestReason)
		}
	}
	if refused != nil {
		verified = Finding{Status: metav1.ConditionUnknown, Reason: v1alpha1.ScheduleVerifyInvalid, Message: refused.message}
	}
	status.Conditions = conditions.Set(status.Conditions, s.Now, s.Schedule.Generation, conditions.Condition(
		v1alpha1.ScheduleConditionVerified, verified.Status, verified.Reason, excerpt.Of(verified.Message, longestReason)))
}

// stillVerified is what was found last, until something else is, or what is in the way of finding out.
func stillVerified(s *Snapshot) Finding {
	c := meta.FindStatusCondition(s.Schedule.Status.Conditions, v1alpha1.ScheduleConditionVerified)
	switch {
	case s.Cluster == nil && s.Schedule.Status.Verification == nil && !dueToVerify(s).IsZero():
		return Finding{Status: metav1.ConditionUnknown, Reason: v1alpha1.ScheduleVerifyNoCluster, Message: noCluster(s.Schedule)}
	case c == nil, c.Reason == v1alpha1.ScheduleVerifyInvalid, c.Reason == v1alpha1.ScheduleVerifyNoCluster:
		return Finding{Status: metav1.ConditionUnknown, Reason: v1alpha1.ScheduleNotVerified, Message: "no verification has come to its end"}
	}
	return Finding{Status: c.Status, Reason: c.Reason, Message: c.Message}
}

func noCluster(s *v1alpha1.RedisBackupSchedule) string {
	return fmt.Sprintf("spec.cluster: there is no RedisCluster %s in this namespace, or it is being deleted: backups are restored into one "+
		"that is made after its likeness", s.Spec.Cluster)
}

// progress is what there is to tell of a verification that is under way.
func progress(s *Snapshot, step Step, err error) string {
	c := s.Throwaway
	_, makes := step.(MakeThrowaway)
	switch {
	case makes && err != nil:
		return fmt.Sprintf("it is tried again: %v", err)
	case c == nil, makes:
		return "the RedisCluster is made"
	case c.DeletionTimestamp != nil:
		return "a former RedisCluster of the name is being deleted"
	}
	return c.Status.Reason
}

// wake is when to look again, if nothing changes: when the next backup or verification begins, or the one that is under way is to be given
// up; zero: never.
func wake(s *Snapshot, status *v1alpha1.RedisBackupScheduleStatus) time.Time {
	var first time.Time
	at := func(t time.Time) {
		if first.IsZero() || t.Before(first) {
			first = t
		}
	}
	for _, t := range []*metav1.Time{status.NextScheduleTime, status.NextVerificationTime} {
		if t != nil {
			at(t.Time)
		}
	}
	if len(s.Keys) > 0 { // what another operator's cache holds tells nothing here
		at(s.Now.Add(latest))
	}
	if lent(s) {
		at(s.Now.Add(lentFor))
	}
	deadline := s.Schedule.VerificationDeadline()
	if deadline.IsZero() {
		return first
	}
	at(deadline)
	if c := s.Throwaway; c != nil && meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionStalled) {
		at(meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled).LastTransitionTime.Add(stalledFor))
	}
	return first
}
