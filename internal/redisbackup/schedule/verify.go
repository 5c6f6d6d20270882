// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// A verification is begun by a note in the status, which names the backup. Then the throw-away cluster is made, and judged by what its
// status says, until something is found. That takes the note away, and a throw-away cluster without a note is deleted. So whoever
// comes after a crash goes on from what he finds.
type (
	// BeginVerification notes which backup is to be verified.
	BeginVerification struct{ Backup string }
	// SkipVerification leaves out the times until now, for a reason of the condition Verified.
	SkipVerification struct{ Reason, Message string }
	// MakeThrowaway makes the RedisCluster that a backup is restored into.
	MakeThrowaway struct {
		Backup *v1alpha1.RedisBackup
	}
	// EndVerification says what was found.
	EndVerification struct{ Finding }
	// DeleteThrowaway deletes the RedisCluster, of which nothing is to be found out any more.
	DeleteThrowaway struct{ Cluster *v1alpha1.RedisCluster }
)

func (BeginVerification) step() {}
func (SkipVerification) step()  {}
func (MakeThrowaway) step()     {}
func (EndVerification) step()   {}
func (DeleteThrowaway) step()   {}

// Finding is what became of a verification, as the condition Verified says it. Keys were found.
type Finding struct {
	Status          metav1.ConditionStatus
	Reason, Message string
	Keys            int64
}

// stalledFor is for how long a throw-away cluster may wait for a person before its backup is given up. A cache may be behind by less.
const stalledFor = 10 * time.Minute

// verify is the step of a verification; nil: there is nothing to do, or it is waited for.
func verify(s *Snapshot) Step {
	if backup := verifying(s.Schedule); backup != "" {
		if finding := judge(s, backup); finding != nil {
			return EndVerification{*finding}
		}
		if s.Throwaway == nil {
			return MakeThrowaway{Backup: find(s, backup)}
		}
		return nil
	}
	if s.Schedule.Throwaway(s.Throwaway) && s.Throwaway.DeletionTimestamp == nil {
		return DeleteThrowaway{Cluster: s.Throwaway}
	}
	if dueToVerify(s).IsZero() {
		return nil
	}
	return beginVerification(s)
}

// verifying is the backup that is being verified; empty: none is.
func verifying(s *v1alpha1.RedisBackupSchedule) string {
	if s.Spec.Verify == nil || s.Status.Verification == nil {
		return ""
	}
	return s.Status.Verification.Backup
}

// dueToVerify is the time whose verification should have begun by now; zero: there is none. Times before spec.verify was first seen are
// none, and neither are those of a suspension: ComputeStatus notes when it is over.
func dueToVerify(s *Snapshot) time.Time {
	from := s.Schedule.Status.LastVerificationTime
	if s.Schedule.Spec.Verify == nil || s.Schedule.Spec.Suspend || suspended(s.Schedule) || from == nil {
		return time.Time{}
	}
	t, refused := verificationTimesOf(s.Schedule)
	if refused != nil {
		return time.Time{}
	}
	return t.Latest(from.Time, s.Now)
}

// beginVerification is the step of a verification that is due. It waits for the RedisCluster that was backed up, after whose likeness the
// throw-away one is made.
func beginVerification(s *Snapshot) Step {
	list := complete(s)
	switch taken := s.Throwaway; {
	case s.Cluster == nil:
		return nil
	case len(list) == 0:
		return SkipVerification{v1alpha1.ScheduleVerifyNoBackup, "there was no complete backup to verify"}
	case taken != nil && taken.DeletionTimestamp != nil:
		return nil
	case taken != nil:
		return SkipVerification{v1alpha1.ScheduleVerifySkippedTaken, nameTaken(taken)}
	}
	if why := noTemplate(s.Cluster); why != "" {
		return SkipVerification{v1alpha1.ScheduleNoTemplate, why}
	}
	return BeginVerification{Backup: list[0].Name}
}

func nameTaken(c *v1alpha1.RedisCluster) string {
	return fmt.Sprintf("there is a RedisCluster %s which was not made to verify backups of this schedule: delete it, or name the schedule "+
		"otherwise", c.Name)
}

// find is a backup that the schedule made; nil: there is none.
func find(s *Snapshot, name string) *v1alpha1.RedisBackup {
	for i := range s.Backups {
		if b := &s.Backups[i]; b.Name == name && s.Schedule.Made(b) {
			return b
		}
	}
	return nil
}

// judge says what became of the verification that is under way; nil: nothing yet.
func judge(s *Snapshot, name string) *Finding {
	is := func(status metav1.ConditionStatus, reason, format string, arguments ...any) *Finding {
		return &Finding{Status: status, Reason: reason, Message: fmt.Sprintf("RedisBackup %s: ", name) + fmt.Sprintf(format, arguments...)}
	}
	interrupted := func(format string, arguments ...any) *Finding {
		return is(metav1.ConditionUnknown, v1alpha1.ScheduleVerifyInterrupted, format, arguments...)
	}
	backup, c, deadline := find(s, name), s.Throwaway, s.Schedule.VerificationDeadline()
	switch {
	case backup == nil, backup.DeletionTimestamp != nil:
		return interrupted("it was deleted while it was being verified")
	case backup.Spec.Cluster != s.Schedule.Spec.Cluster:
		return interrupted("spec.cluster was changed while it was being verified")
	case s.Schedule.Status.Verification.StartedAt.After(s.Now.Add(ahead)):
		return interrupted("its verification began at a time to come: a clock was wrong")
	case !s.Now.Before(deadline):
		return is(metav1.ConditionFalse, v1alpha1.ScheduleVerifyTimedOut, "it was not restored in time (spec.verify.timeout): %s",
			s.Schedule.Status.Verification.Message)
	case c == nil && s.Cluster == nil:
		return is(metav1.ConditionUnknown, v1alpha1.ScheduleVerifyNoCluster, "%s", noCluster(s.Schedule))
	case c == nil, c.DeletionTimestamp != nil:
		return nil // it is made, or made again
	case !s.Schedule.Throwaway(c):
		return is(metav1.ConditionUnknown, v1alpha1.ScheduleVerifySkippedTaken, "%s", nameTaken(c))
	case c.Generation > 1, !equality.Semantic.DeepEqual(c.Restore(), restoreOf(s.Schedule, backup)):
		return interrupted("RedisCluster %s, which it was restored into, or spec.verify was changed", c.Name)
	}
	stalled := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionStalled)
	switch {
	case stalled != nil && stalled.Status == metav1.ConditionTrue && !s.Now.Before(stalled.LastTransitionTime.Add(stalledFor)):
		return is(metav1.ConditionFalse, v1alpha1.ScheduleCannotRestore, "%s", stalled.Message)
	case !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady), c.Status.Restored == nil:
		return nil
	case backup.Status.ManifestChecksum != c.Status.Restored.ManifestChecksum:
		return is(metav1.ConditionFalse, v1alpha1.ScheduleCannotRestore, "the store has another backup in its place")
	case backup.Status.Keys == nil, c.Status.Restored.Keys == nil:
		return is(metav1.ConditionUnknown, v1alpha1.ScheduleNotCounted,
			"it was restored, and its keys were not counted: it was taken, or restored, by a version that did not count them")
	}
	return compare(backup, c.Status.Restored.Keys)
}

// compare compares keys. Those that have no time to live must all be there, and no more; of the others, some have gone since the backup.
// Each shard's keys were counted at the moment that its data is of, also where these moments differ.
func compare(backup *v1alpha1.RedisBackup, found *v1alpha1.KeyCount) *Finding {
	has := backup.Status.Keys
	most := has.Total - has.WithTTL
	least := max(0, most-has.WithFieldTTL) // a hash goes with the last of its fields
	stay := found.Total - found.WithTTL
	v := &Finding{Status: metav1.ConditionTrue, Reason: v1alpha1.ScheduleVerified, Keys: found.Total}
	if stay < least || stay > most || found.Total > has.Total {
		v.Status, v.Reason = metav1.ConditionFalse, v1alpha1.ScheduleKeysDiffer
	}
	v.Message = fmt.Sprintf(
		"RedisBackup %s: it was restored with %d keys, %d of them with a time to live; it was taken of %d, %d of them with one", backup.Name,
		found.Total, found.WithTTL, has.Total, has.WithTTL)
	if has.WithFieldTTL > 0 {
		v.Message += fmt.Sprintf(", and %d hashes whose fields expire", has.WithFieldTTL)
	}
	return v
}
