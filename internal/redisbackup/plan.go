// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package redisbackup takes a RedisBackup: it has the RedisCluster keep its slots where they are, makes a Job that takes the backup, and
// says in the status what became of it. One reconciliation is observe, Plan, act, one status patch and events; Plan and ComputeStatus
// are pure.
package redisbackup

import (
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
)

// Snapshot is what one reconciliation saw.
type Snapshot struct {
	Backup *v1alpha1.RedisBackup
	// Cluster is the RedisCluster that is backed up; nil: there is none.
	Cluster *v1alpha1.RedisCluster
	// Job is the one that was made for this backup; nil: there is none. Taken says whose Job has its name, or that of Deletion.
	Job   *batchv1.Job
	Taken string
	// Deletion is the Job that deletes the backup from the store; nil: there is none, or none is asked for. Deleted is what its pod said
	// at its end; nil: nothing that could be read.
	Deletion *batchv1.Job
	Deleted  *report.Deletion
	// DeletionMade is when this process made one last; zero: it made none.
	DeletionMade time.Time
	// NamespaceGoes reports whether no Job can be made, because the namespace is being deleted.
	NamespaceGoes bool
	// Report is what the Job's pod said at its end; nil: nothing that could be read.
	Report *report.Report
	// Pods are those that still take the backup, of whichever Job. They are looked at when there is no Job, or it is to go.
	Pods []string
	// Withheld says, with a remedy, why the pod may not be given what it needs, such as a Secret. It is looked at before the backup
	// takes its turn, and before there is a Job of either kind.
	Withheld string
	// Waits says what keeps the pod of the Job that is under way from running; empty: it runs.
	Waits string
	// Heard is what that pod said of how far it is; nil: not known.
	Heard *report.Heard
	Now   time.Time
}

// Step is what a reconciliation does. It is one of the types below.
//
//sumtype:decl
type Step interface{ step() }

type (
	// Rest does nothing: the backup has ended, or is being deleted.
	Rest struct{}
	// Wait waits for what the reason says. Ready reports whether all is there that the backup needs, so that it is its turn next.
	Wait struct {
		Reason string
		Ready  bool
	}
	// Guard puts the finalizer on, without which there is no Job, and nothing is deleted from the store.
	Guard struct{}
	// Release takes the finalizer off: nothing takes the backup any more, and what is left in the store is to stay there.
	Release struct{}
	// Stop deletes the Job of a backup that is being deleted, or waits for its pods to end.
	Stop struct{ Reason string }
	// Start makes the Job.
	Start struct{}
	// Follow waits for the Job.
	Follow struct{ Reason string }
	// Repeat deletes a Job that came to its end without a word, so that it is made again. A backup that is complete is recognised.
	Repeat struct{ Reason string }
	// Erase makes the Job that deletes the backup from the store.
	Erase struct{}
	// AwaitErased waits for that Job, or for what the reason says.
	AwaitErased struct {
		Reason string
		After  time.Duration
	}
	// EraseAgain deletes a Job that failed to, so that it is made again.
	EraseAgain struct{ Reason string }
	// Complete says that the backup is complete.
	Complete struct{ Report report.Report }
	// Fail says that the backup is not taken any more, and deletes the Job if one still runs.
	Fail struct {
		Reason string
		Stop   bool
	}
)

func (Rest) step()        {}
func (Wait) step()        {}
func (Guard) step()       {}
func (Release) step()     {}
func (Stop) step()        {}
func (Start) step()       {}
func (Follow) step()      {}
func (Repeat) step()      {}
func (Erase) step()       {}
func (AwaitErased) step() {}
func (EraseAgain) step()  {}
func (Complete) step()    {}
func (Fail) step()        {}

// Plan decides on a step.
func Plan(s *Snapshot) Step {
	if s.Backup.DeletionTimestamp != nil {
		return leave(s)
	}
	if s.Backup.Ended() {
		return keep(s.Backup)
	}
	if s.Job != nil {
		return follow(s)
	}
	if overdue := !s.Now.Before(s.Backup.Deadline()); overdue {
		why := s.Backup.Status.Reason
		if why == "" {
			why = "nothing was begun"
		}
		return Fail{Reason: "it was not complete in time: " + why}
	}
	return prepare(s)
}

func ending(pods []string) string { return fmt.Sprintf("pod %s still ends", strings.Join(pods, ", ")) }

func guarded(backup *v1alpha1.RedisBackup) bool {
	return slices.Contains(backup.Finalizers, v1alpha1.FinalizerBackup)
}

// grace is what a Job may take to end after its time is over.
const grace = 5 * time.Minute

// prepare says what is in the way of the Job.
func prepare(s *Snapshot) Step {
	name := s.Backup.Spec.Cluster
	switch {
	case s.Taken != "":
		return Wait{Reason: s.Taken}
	case s.Cluster == nil:
		return Wait{Reason: fmt.Sprintf("spec.cluster: there is no RedisCluster %s in this namespace", name)}
	case s.Cluster.DeletionTimestamp != nil:
		return Fail{Reason: fmt.Sprintf("RedisCluster %s is being deleted", name)}
	case s.Withheld != "":
		return Wait{Reason: s.Withheld}
	case len(seeds(s.Cluster)) == 0 && s.Cluster.Spec.Hibernate:
		return Wait{Reason: fmt.Sprintf("RedisCluster %s is hibernated: the backup is taken when spec.hibernate is false", name)}
	case len(seeds(s.Cluster)) == 0:
		return Wait{Reason: fmt.Sprintf("no instance of RedisCluster %s serves", name)}
	case !s.Backup.Active():
		return Wait{Ready: true, Reason: "it is the next"} // it is told first, so that the RedisCluster's reconciler hears of it
	case s.Cluster.Status.HeldForBackup != s.Backup.UID:
		return Wait{Ready: true, Reason: fmt.Sprintf("slots of RedisCluster %s move, or another backup of it is being taken", name)}
	}
	if s.Backup.Status.Jobs > retries {
		return Fail{Reason: fmt.Sprintf("%d Jobs ended, or were deleted, without a word of what they took", s.Backup.Status.Jobs)}
	}
	switch {
	case !guarded(s.Backup):
		return Guard{}
	case len(s.Pods) > 0:
		return Wait{Ready: true, Reason: ending(s.Pods)}
	}
	return Start{}
}

// underWay says what a Job does, and what keeps it from doing so.
func underWay(does, waits string) string {
	if waits == "" {
		return does
	}
	return does + ": " + waits
}

// follow reads what became of the Job.
func follow(s *Snapshot) Step {
	switch {
	case s.Job.DeletionTimestamp == nil && backupjob.Ended(s.Job) && s.Report != nil && s.Report.Error == "":
		if s.Cluster != nil && s.Cluster.Status.HeldForBackup != s.Backup.UID {
			return Fail{Reason: "slots may have moved while it was taken: the RedisCluster's status does not say that they stayed"}
		}
		return Complete{Report: *s.Report}
	case s.Now.After(s.Backup.Deadline().Add(grace)):
		// The Job has such an end, too; one that was suspended, or changed, or cannot be deleted, has none.
		return Fail{Reason: fmt.Sprintf("Job %s has not ended in time", s.Job.Name), Stop: true}
	case s.Job.DeletionTimestamp != nil:
		return Follow{Reason: "the former Job is being deleted"}
	case backupjob.Condition(s.Job, batchv1.JobComplete) != nil:
		return Repeat{Reason: "the pod that took the backup did not say what it took: it is asked again"}
	}
	if failed := backupjob.Condition(s.Job, batchv1.JobFailed); failed != nil {
		why := failed.Message
		if s.Report != nil && s.Report.Error != "" {
			why = s.Report.Error
		}
		if failed.Reason == batchv1.JobReasonDeadlineExceeded {
			why = "it took longer than spec.timeout: " + why
		}
		return Fail{Reason: why}
	}
	does := fmt.Sprintf("Job %s takes the backup", s.Job.Name)
	if s.Report != nil && s.Report.Error != "" {
		does += fmt.Sprintf(", again after a pod that failed (%s)", s.Report.Error)
	}
	return Follow{Reason: underWay(does, s.Waits)}
}
