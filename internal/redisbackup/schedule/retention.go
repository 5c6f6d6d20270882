// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

const (
	// failedKept is how many backups that failed are kept, to see why.
	failedKept = 3
	// prunedAtOnce is how many backups are being deleted at a time: each has a Job of its own, also while the store does not answer.
	prunedAtOnce = 4
	// ahead is by how much clocks may differ. A backup that was made later than that was dated by a clock that was wrong.
	ahead = time.Hour
)

// expired is the oldest backup of the schedule that is not to be kept, and why; nil: there is none. Age is counted back from the newest
// complete one, so that no clock and no failure makes a backup old: another one does. It is that of the object, which the API server dated:
// the moment that the data is of is told by a pod, whose clock is that of any node.
func expired(s *Snapshot) (*v1alpha1.RedisBackup, string) {
	r := s.Schedule.Spec.Retention
	if r == nil {
		return nil, ""
	}
	count, window := 0, time.Duration(0)
	if r.KeepLast != nil {
		count = int(*r.KeepLast)
	}
	if r.KeepFor != nil {
		window = r.KeepFor.Duration
	}
	if count <= 0 && window <= 0 { // the schema refuses it; a CRD may have been changed
		return nil, ""
	}
	if going(s) >= prunedAtOnce {
		return nil, ""
	}
	list := complete(s)
	for i := len(list) - 1; i > 0; i-- {
		b := list[i]
		older := list[0].CreationTimestamp.Sub(b.CreationTimestamp.Time)
		if i < count || window > 0 && older <= window || b.Name == verifying(s.Schedule) {
			continue
		}
		return b, fmt.Sprintf("%d complete backups are newer, and the newest by %s", i, older)
	}
	if failed := failures(s); len(failed) > failedKept {
		return failed[len(failed)-1], fmt.Sprintf("it failed, and %d later ones failed as well", len(failed)-1)
	}
	return nil, ""
}

// going is how many backups of the schedule are being deleted.
func going(s *Snapshot) (n int) {
	for i := range s.Backups {
		if b := &s.Backups[i]; s.Schedule.Made(b) && b.DeletionTimestamp != nil {
			n++
		}
	}
	return n
}

// ours are the backups that the schedule made of its present cluster and that are to stay.
func ours(s *Snapshot) (list []*v1alpha1.RedisBackup) {
	for i := range s.Backups {
		b := &s.Backups[i]
		if s.Schedule.Made(b) && b.Spec.Cluster == s.Schedule.Spec.Cluster && b.DeletionTimestamp == nil {
			list = append(list, b)
		}
	}
	return list
}

// complete are those of ours that are complete, the newest first. What was made at a time to come is left alone and does not count.
func complete(s *Snapshot) []*v1alpha1.RedisBackup {
	list := slices.DeleteFunc(ours(s), func(b *v1alpha1.RedisBackup) bool {
		return b.Status.Phase != v1alpha1.BackupCompleted || b.CreationTimestamp.After(s.Now.Add(ahead))
	})
	slices.SortFunc(list, later)
	return list
}

// failures are those of ours that failed, the latest first.
func failures(s *Snapshot) []*v1alpha1.RedisBackup {
	list := slices.DeleteFunc(ours(s), func(b *v1alpha1.RedisBackup) bool { return b.Status.Phase != v1alpha1.BackupFailed })
	slices.SortFunc(list, later)
	return list
}

// later orders backups by when they were made, the latest first.
func later(a, b *v1alpha1.RedisBackup) int {
	return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
}
