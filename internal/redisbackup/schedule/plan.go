// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package schedule follows a RedisBackupSchedule: it makes RedisBackups at their times, deletes those that are not to be kept, has one
// restored every so often, and says in the status what became of them. One reconciliation is observe, Plan, act, one status patch and
// events; Plan and ComputeStatus are pure.
package schedule

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Snapshot is what one reconciliation saw.
type Snapshot struct {
	Schedule *v1alpha1.RedisBackupSchedule
	// Keys are those of the labels by which operators select what is theirs; nil: one operator has all. What the schedule makes has its
	// labels of these keys.
	Keys []string
	// Backups are all RedisBackups of the namespace: from a cache, those that are this operator's.
	Backups []v1alpha1.RedisBackup
	// Cluster is the RedisCluster that is backed up; nil: there is none, or it is being deleted, or it is another operator's.
	Cluster *v1alpha1.RedisCluster
	// Elsewhere: it is another operator's, as the API server says.
	Elsewhere bool
	// Throwaway is the RedisCluster that has the name of the one that backups are restored into, whoever made it; nil: there is none.
	Throwaway *v1alpha1.RedisCluster
	// Unlabelled says why something could not be given its labels, which keeps nothing else from being done; empty: that was not tried yet.
	Unlabelled string
	Now        time.Time
}

// Step is what a reconciliation does. It is one of the types below, of those of a verification, or Relabel.
//
//sumtype:decl
type Step interface{ step() }

type (
	// Rest does nothing until something changes, or the next backup is due.
	Rest struct{}
	// Make makes the RedisBackup of a time.
	Make struct{ At time.Time }
	// Note takes the RedisBackup of a time for made, which it is.
	Note struct{ At time.Time }
	// Pass leaves out a time that was within a suspension.
	Pass struct{ At time.Time }
	// Skip leaves out a time, for a reason of the condition Scheduled.
	Skip struct {
		At              time.Time
		Reason, Message string
	}
	// Prune deletes a RedisBackup that is not to be kept.
	Prune struct {
		Backup *v1alpha1.RedisBackup
		Why    string
	}
)

func (Rest) step()  {}
func (Make) step()  {}
func (Note) step()  {}
func (Pass) step()  {}
func (Skip) step()  {}
func (Prune) step() {}

// Plan decides on a step.
func Plan(s *Snapshot) Step {
	if s.Schedule.DeletionTimestamp != nil {
		return Rest{}
	}
	if step := relabel(s); step != nil && s.Unlabelled == "" {
		return step
	}
	verification := verify(s)
	_, ends := verification.(EndVerification)
	if _, deletes := verification.(DeleteThrowaway); ends || deletes {
		return verification // whether or not backups can be made: what it holds is given back
	}
	if t, refused := timesOf(s.Schedule); refused == nil && !s.Schedule.Spec.Suspend {
		if step := begin(s, t); step != nil {
			return step
		}
	}
	if old, why := expired(s); old != nil {
		return Prune{Backup: old, Why: why}
	}
	if verification != nil {
		return verification
	}
	return Rest{}
}

// begin is the step of the backup that is due; nil: none is, or it waits for its cluster. Of those that were missed the last is due.
func begin(s *Snapshot, t *times) Step {
	at := t.due(since(s), s.Now)
	if at.IsZero() {
		return nil
	}
	if suspended(s.Schedule) {
		return Pass{At: at}
	}
	name := s.Schedule.BackupName(at)
	var active string
	for i := range s.Backups {
		b := &s.Backups[i]
		switch ours := s.Schedule.Made(b); {
		case b.Name == name && ours:
			return Note{At: at}
		case b.Name == name:
			return Skip{At: at, Reason: v1alpha1.ScheduleSkippedTaken,
				Message: fmt.Sprintf("there is a RedisBackup %s which this schedule has not made: none was made for that time", name)}
		case ours && !b.Ended():
			active = b.Name
		}
	}
	switch {
	case s.Cluster == nil:
		return nil
	case active != "":
		return Skip{At: at, Reason: v1alpha1.ScheduleSkippedActive,
			Message: fmt.Sprintf("RedisBackup %s was still being taken: %s was not made", active, name)}
	case s.Cluster.Spec.Hibernate:
		return Skip{At: at, Reason: v1alpha1.ScheduleSkippedAsleep,
			Message: fmt.Sprintf("RedisCluster %s is hibernated, or is to be (spec.hibernate): %s was not made", s.Cluster.Name, name)}
	}
	return Make{At: at}
}

// since is the time after which backups are due. What a clock noted that was far ahead does not count: nothing would be due until then.
func since(s *Snapshot) time.Time {
	from := s.Schedule.CreationTimestamp.Time
	if last := s.Schedule.Status.LastScheduleTime; last != nil && last.After(from) && !last.After(s.Now.Add(ahead)) {
		from = last.Time
	}
	return from
}

// suspended reports whether the schedule was suspended when its status was written.
func suspended(s *v1alpha1.RedisBackupSchedule) bool {
	c := meta.FindStatusCondition(s.Status.Conditions, v1alpha1.ScheduleConditionScheduled)
	return c != nil && c.Reason == v1alpha1.ScheduleSuspended
}
