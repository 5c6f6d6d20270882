// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redisbackup/schedule"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// scheduled is a schedule whose operator has a clock that the test sets.
type scheduled struct {
	t     *testing.T
	at    *v1alpha1.RedisBackupSchedule
	clock atomic.Int64 // in seconds; it goes on with pass only
}

// startSchedules runs the controller of schedules alone, for one namespace, with a schedule of every hour.
func startSchedules(t *testing.T) *scheduled {
	t.Helper()
	return startSchedule(t, newBareNamespace(t), &v1alpha1.BackupRetention{KeepLast: ptr.To[int32](1)}, nil)
}

// startSchedule is startSchedules in a namespace.
func startSchedule(t *testing.T, namespace string, retention *v1alpha1.BackupRetention, verify *v1alpha1.BackupVerification) *scheduled {
	t.Helper()
	s := &scheduled{t: t, at: &v1alpha1.RedisBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "hourly"},
		Spec: v1alpha1.RedisBackupScheduleSpec{Schedule: "@hourly", Cluster: "cache",
			Store:     v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}},
			Retention: retention, Verify: verify},
	}}
	create(t, s.at)
	s.clock.Store(s.at.CreationTimestamp.Truncate(time.Hour).Add(time.Hour / 2).Unix())
	mgr, _, err := environment.NewManager(operatorConfig(), scheme, namespace)
	check(t, err)
	check(t, schedule.Add(mgr, schedule.Options{Now: func() time.Time { return time.Unix(s.clock.Load(), 0) }}))
	environment.Start(t, mgr)
	return s
}

// pass lets time pass, and has the operator look.
func (s *scheduled) pass(hours int) {
	s.t.Helper()
	s.clock.Add(int64(time.Duration(hours) * time.Hour / time.Second))
	change(s.t, s.at, func(at *v1alpha1.RedisBackupSchedule) {
		at.Spec.Timeout = &metav1.Duration{Duration: at.Spec.Timeout.Duration + time.Minute}
	})
}

// await waits for a condition, as Status Reason, of the present generation.
func (s *scheduled) await(condition, want string) {
	s.t.Helper()
	eventually(s.t, condition+" is "+want, func() string {
		get(s.t, s.at)
		c := meta.FindStatusCondition(s.at.Status.Conditions, condition)
		if c == nil || string(c.Status)+" "+c.Reason != want || c.ObservedGeneration != s.at.Generation {
			return fmt.Sprintf("%+v", c)
		}
		return ""
	})
}

// backups are the names of the RedisBackups, in their order.
func (s *scheduled) backups() (names []string) {
	s.t.Helper()
	var list v1alpha1.RedisBackupList
	check(s.t, api.List(context.Background(), &list, client.InNamespace(s.at.Namespace)))
	for _, b := range list.Items {
		names = append(names, b.Name)
	}
	slices.Sort(names)
	return names
}

// awaitBackups waits until there are so many, and returns the last one.
func (s *scheduled) awaitBackups(n int) *v1alpha1.RedisBackup {
	s.t.Helper()
	var names []string
	eventually(s.t, fmt.Sprintf("there are %d backups", n), func() string {
		if names = s.backups(); len(names) != n {
			return fmt.Sprintf("there are %v", names)
		}
		return ""
	})
	last := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.at.Namespace, Name: names[n-1]}}
	get(s.t, last)
	return last
}

// end brings a backup to its end.
func (s *scheduled) end(backup *v1alpha1.RedisBackup, phase v1alpha1.BackupPhase) {
	s.t.Helper()
	get(s.t, backup)
	backup.Status.Phase, backup.Status.MarkedAt = phase, ptr.To(metav1.Now())
	check(s.t, api.Status().Update(context.Background(), backup))
}

// A schedule makes a backup at its times, one at a time, keeps what it is to keep, and leaves its backups alone when it goes.
func TestSchedule(t *testing.T) {
	t.Parallel()
	s := startSchedules(t)
	s.pass(1)
	s.await(v1alpha1.ScheduleConditionScheduled, "False ClusterNotFound")
	s.await(v1alpha1.ScheduleConditionBackedUp, "Unknown NoBackup")
	if there := s.backups(); len(there) > 0 {
		t.Fatalf("without a cluster there are %v", there)
	}
	create(t, newCluster(s.at.Namespace, "cache"))
	first := s.awaitBackups(1)
	if first.Spec.DeletionPolicy != v1alpha1.BackupDelete || len(first.OwnerReferences) > 0 ||
		first.Labels[v1alpha1.LabelSchedule] != "hourly" || !strings.HasPrefix(first.Name, "hourly-20") || !strings.HasSuffix(first.Name, "00") {
		t.Errorf("it made %+v", first)
	}

	s.pass(1)
	s.await(v1alpha1.ScheduleConditionScheduled, "True FormerStillTaken")
	s.awaitBackups(1)
	s.end(first, v1alpha1.BackupCompleted)
	s.await(v1alpha1.ScheduleConditionBackedUp, "True BackupComplete")
	s.pass(1)
	second := s.awaitBackups(2)
	s.await(v1alpha1.ScheduleConditionScheduled, "True Followed")
	s.end(second, v1alpha1.BackupCompleted)
	if left := s.awaitBackups(1); left.UID != second.UID {
		t.Errorf("%s is left, and the newest is %s", left.Name, second.Name)
	}
	eventually(t, "the status says which is the newest", func() string {
		get(t, s.at)
		is, newest := s.at.Status, s.at.Status.LastSuccessfulBackup
		if newest == nil || newest.Name != second.Name || is.Backups != 1 || is.Active != "" {
			return fmt.Sprintf("%+v", is)
		}
		return ""
	})

	change(t, s.at, func(at *v1alpha1.RedisBackupSchedule) { at.Spec.Suspend = true })
	s.await(v1alpha1.ScheduleConditionScheduled, "False Suspended")
	s.pass(3)
	s.await(v1alpha1.ScheduleConditionScheduled, "False Suspended")
	change(t, s.at, func(at *v1alpha1.RedisBackupSchedule) { at.Spec.Suspend = false })
	s.await(v1alpha1.ScheduleConditionScheduled, "True Followed")
	s.awaitBackups(1)

	s.pass(1)
	third := s.awaitBackups(2)
	s.end(third, v1alpha1.BackupFailed)
	s.await(v1alpha1.ScheduleConditionBackedUp, "False BackupFailed")
	if !get(t, second) {
		t.Error("the newest complete backup is gone")
	}

	// Somebody else's backup has the name of the next one.
	get(t, s.at)
	taken := newBackup(&v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.at.Namespace, Name: "cache"}},
		s.at.BackupName(s.at.Status.NextScheduleTime.Time))
	create(t, taken)
	s.pass(1)
	s.await(v1alpha1.ScheduleConditionScheduled, "True NameTaken")
	change(t, s.at, func(at *v1alpha1.RedisBackupSchedule) { at.Spec.Schedule = "99 * * * *" })
	s.await(v1alpha1.ScheduleConditionScheduled, "False InvalidSchedule")

	remove(t, s.at)
	awaitGone(t, s.at)
	if there := s.backups(); !slices.Equal(there, []string{second.Name, third.Name, taken.Name}) {
		t.Errorf("when the schedule is gone, there are %v", there)
	}
}
