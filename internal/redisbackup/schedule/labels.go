// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Relabel gives what the schedule made its labels by which operators select, so that it is of the operator that the schedule is of: the
// schedule may have come from another one, in the middle of a verification, too. The throw-away cluster comes after the backup that it is
// restored from, without which nobody can go on with it.
type Relabel struct {
	Backups   []*v1alpha1.RedisBackup
	Throwaway *v1alpha1.RedisCluster // nil: it has them, or there is none
}

func (Relabel) step() {}

// lentFor is when to look again for backups that are not to be relabelled yet.
const lentFor = time.Minute

// relabel is that step; nil: all has the labels.
func relabel(s *Snapshot) Step {
	var step Relabel
	for i := range s.Backups {
		if b := &s.Backups[i]; s.Schedule.Made(b) && !inherits(s, b) && !stays(s, b) {
			step.Backups = append(step.Backups, b)
		}
	}
	if s.Schedule.Throwaway(s.Throwaway) && !inherits(s, s.Throwaway) {
		step.Throwaway = s.Throwaway
	}
	if len(step.Backups) == 0 && step.Throwaway == nil {
		return nil
	}
	return step
}

// stays reports whether a backup is being taken of a RedisCluster that is another operator's: it ends where that one is, which keeps its
// slots from moving meanwhile.
func stays(s *Snapshot, b *v1alpha1.RedisBackup) bool {
	return s.Elsewhere && !b.Ended() && b.DeletionTimestamp == nil
}

// lent reports whether there is such a backup.
func lent(s *Snapshot) bool {
	return slices.ContainsFunc(s.Backups, func(b v1alpha1.RedisBackup) bool {
		return s.Schedule.Made(&b) && !inherits(s, &b) && stays(s, &b)
	})
}

// keysOf are the keys that a selector names. The labels that say which schedule made an object are not among them: each object has its own.
func keysOf(selector labels.Selector) (keys []string) {
	requirements, _ := selector.Requirements()
	for _, requirement := range requirements {
		if key := requirement.Key(); key != v1alpha1.LabelSchedule && key != v1alpha1.LabelScheduleUID && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

func inherits(s *Snapshot, made metav1.Object) bool {
	return !slices.ContainsFunc(s.Keys, func(key string) bool {
		want, labelled := s.Schedule.Labels[key]
		has, is := made.GetLabels()[key]
		return labelled != is || want != has
	})
}

// inherit gives what a schedule makes the schedule's labels of the keys: those that it does not have are taken off.
func inherit(keys []string, schedule *v1alpha1.RedisBackupSchedule, made metav1.Object) {
	own := map[string]string{}
	for key, value := range made.GetLabels() {
		own[key] = value
	}
	for _, key := range keys {
		if value, labelled := schedule.Labels[key]; labelled {
			own[key] = value
		} else {
			delete(own, key)
		}
	}
	made.SetLabels(own)
}
