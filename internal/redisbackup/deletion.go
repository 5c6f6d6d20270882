// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/backupjob"
)

const (
	// erasePace is how long a Job that failed to delete a backup is left, with its pods' logs, before it is made again.
	erasePace = 5 * time.Minute
	// eraseLeast is the time between two such Jobs, whatever became of the former one.
	eraseLeast = time.Minute
)

// remedy is what to do about a deletion that fails.
const remedy = "mend that, or set spec.deletionPolicy to Retain, which leaves in the store what is there"

// keep leaves the finalizer on a backup that has ended as long as something of it is to go from the store with the object.
func keep(backup *v1alpha1.RedisBackup) Step {
	deletes := backup.Deletes() && backup.Status.Jobs > 0
	switch {
	case deletes && !guarded(backup):
		return Guard{}
	case !deletes && guarded(backup):
		return Release{}
	}
	return Rest{}
}

// leave lets a backup go that is being deleted. One whose pods do not end, on a node that is gone, is not waited for when its time is over.
func leave(s *Snapshot) Step {
	overdue := s.Now.After(s.Backup.Deadline().Add(grace))
	ended := s.Backup.Ended()
	switch {
	case !guarded(s.Backup):
		return Rest{}
	case overdue:
	case s.Job != nil && (!ended || !backupjob.Ended(s.Job)):
		return Stop{Reason: fmt.Sprintf("it is being deleted: Job %s goes first", s.Job.Name)}
	case len(s.Pods) > 0:
		return Stop{Reason: "it is being deleted: " + ending(s.Pods)}
	}
	switch {
	case !s.Backup.Deletes():
		return Release{}
	case !ended: // slots may move while the store is cleared
		return Fail{Reason: "it was deleted before it was complete"}
	}
	return fromStore(s)
}

// fromStore deletes from the store what the backup's pods wrote. None of them runs any more.
func fromStore(s *Snapshot) Step {
	name := s.Backup.DeletionJobName()
	switch {
	case s.NamespaceGoes: // the Secret goes as well; what is in the store stays there
		return Release{}
	case s.Taken != "":
		return AwaitErased{Reason: "it is not deleted from the store: " + s.Taken, After: later}
	case s.Deletion != nil:
		return followDeletion(s)
	case s.Withheld != "":
		return AwaitErased{Reason: fmt.Sprintf("it is not deleted from the store: %s; %s", s.Withheld, remedy), After: later}
	}
	if next := s.DeletionMade.Add(eraseLeast); s.Now.Before(next) {
		return AwaitErased{Reason: fmt.Sprintf("Job %s was deleted; another one is made within %s", name, eraseLeast), After: next.Sub(s.Now)}
	}
	return Erase{}
}

// followDeletion reads what became of the Job that deletes.
func followDeletion(s *Snapshot) Step {
	name, said := s.Deletion.Name, s.Deleted
	failed, complete := backupjob.Condition(s.Deletion, batchv1.JobFailed), backupjob.Condition(s.Deletion, batchv1.JobComplete)
	var why string
	var at time.Time
	switch {
	case said != nil && (said.Another || said.Deleted && backupjob.Ended(s.Deletion)):
		return Release{}
	case s.Deletion.DeletionTimestamp != nil:
		return AwaitErased{Reason: fmt.Sprintf("the former Job %s is being deleted", name), After: later}
	case complete != nil:
		why, at = "its pod did not say so", complete.LastTransitionTime.Time
	case failed != nil && said != nil && said.Error != "":
		why, at = said.Error, failed.LastTransitionTime.Time
	case failed != nil:
		why, at = failed.Message, failed.LastTransitionTime.Time
	default:
		return AwaitErased{Reason: underWay(fmt.Sprintf("Job %s deletes it from the store", name), s.Waits), After: later}
	}
	reason := fmt.Sprintf("it is not deleted from the store, which is tried again every %s: %s; %s", erasePace, why, remedy)
	if again := at.Add(erasePace); s.Now.Before(again) {
		return AwaitErased{Reason: reason, After: min(again.Sub(s.Now), erasePace)}
	}
	return EraseAgain{Reason: reason}
}
