// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

var now = time.Date(2026, 11, 23, 10, 0, 30, 0, time.UTC)

func stamp(t time.Time) *metav1.Time { return ptr.To(metav1.NewTime(t)) }

// snapshotOf is what is seen of a schedule that was followed until the day before, changed.
func snapshotOf(change func(*Snapshot)) *Snapshot {
	s := &Snapshot{Now: now, Cluster: &v1alpha1.RedisCluster{}, Schedule: &v1alpha1.RedisBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "nightly", UID: "s", Generation: 1,
			CreationTimestamp: metav1.NewTime(now.AddDate(0, 0, -10))},
		Spec: v1alpha1.RedisBackupScheduleSpec{Schedule: "0 10 * * *", TimeZone: "Etc/UTC", Cluster: "cache",
			Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}}},
		Status: v1alpha1.RedisBackupScheduleStatus{LastScheduleTime: stamp(now.AddDate(0, 0, -1).Truncate(time.Hour))},
	}}
	change(s)
	return s
}

// backup is one of the schedule, made some time ago, in a phase.
func backup(name string, ago time.Duration, phase v1alpha1.BackupPhase) v1alpha1.RedisBackup {
	b := v1alpha1.RedisBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: metav1.NewTime(now.Add(-ago)),
			Labels: map[string]string{v1alpha1.LabelSchedule: "nightly", v1alpha1.LabelScheduleUID: "s"}},
		Spec:   v1alpha1.RedisBackupSpec{Cluster: "cache"},
		Status: v1alpha1.RedisBackupStatus{Phase: phase},
	}
	if phase == v1alpha1.BackupCompleted {
		b.Status.MarkedAt = stamp(now.Add(-ago).Add(time.Minute))
	}
	return b
}

func TestPlan(t *testing.T) {
	today := now.Truncate(time.Hour)
	const name = "nightly-202611231000"
	for what, tt := range map[string]struct {
		change func(*Snapshot)
		want   Step
	}{
		"due":          {func(*Snapshot) {}, Make{today}},
		"not yet due":  {func(s *Snapshot) { s.Now = today.Add(-time.Second) }, Rest{}},
		"made already": {func(s *Snapshot) { s.Schedule.Status.LastScheduleTime = stamp(today) }, Rest{}},
		"new": {func(s *Snapshot) {
			s.Schedule.CreationTimestamp, s.Schedule.Status.LastScheduleTime = metav1.NewTime(now), nil
		}, Rest{}},
		"several were missed": {func(s *Snapshot) { s.Schedule.Status.LastScheduleTime = stamp(today.AddDate(0, 0, -9)) }, Make{today}},
		"it begins later":     {func(s *Snapshot) { s.Schedule.Spec.Jitter = &metav1.Duration{Duration: time.Hour} }, Rest{}},
		"it begins later, and that is over": {func(s *Snapshot) {
			s.Schedule.Spec.Jitter, s.Now = &metav1.Duration{Duration: time.Hour}, now.Add(time.Hour)
		}, Make{today}},
		"one before was missed, and this one begins later": {func(s *Snapshot) {
			s.Schedule.Spec.Jitter = &metav1.Duration{Duration: time.Hour}
			s.Schedule.Status.LastScheduleTime = stamp(today.AddDate(0, 0, -2))
		}, Make{today.AddDate(0, 0, -1)}},
		"the process ended after it was made": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup(name, 0, v1alpha1.BackupRunning)}
		}, Note{today}},
		"the process ended after it was made, and the cluster is gone": {func(s *Snapshot) {
			s.Backups, s.Cluster = []v1alpha1.RedisBackup{backup(name, 0, v1alpha1.BackupFailed)}, nil
		}, Note{today}},
		"somebody else's has the name": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup(name, 0, v1alpha1.BackupCompleted)}
			s.Backups[0].Labels[v1alpha1.LabelScheduleUID] = "another"
		}, Skip{today, v1alpha1.ScheduleSkippedTaken,
			"there is a RedisBackup nightly-202611231000 which this schedule has not made: none was made for that time"}},
		"the former one is still taken": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup("nightly-1", time.Hour, v1alpha1.BackupPending)}
		}, Skip{today, v1alpha1.ScheduleSkippedActive, "RedisBackup nightly-1 was still being taken: nightly-202611231000 was not made"}},
		"its cluster is hibernated": {func(s *Snapshot) { s.Cluster.Name, s.Cluster.Spec.Hibernate = "cache", true },
			Skip{today, v1alpha1.ScheduleSkippedAsleep,
				"RedisCluster cache is hibernated, or is to be (spec.hibernate): nightly-202611231000 was not made"}},
		"the former one is deleted while it is taken": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup("nightly-1", time.Hour, "")}
			s.Backups[0].DeletionTimestamp = stamp(now)
		}, Skip{today, v1alpha1.ScheduleSkippedActive, "RedisBackup nightly-1 was still being taken: nightly-202611231000 was not made"}},
		"the former one has failed": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup("nightly-1", time.Hour, v1alpha1.BackupFailed)}
		}, Make{today}},
		"another schedule's is being taken": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup("hourly-1", time.Hour, v1alpha1.BackupRunning)}
			s.Backups[0].Labels[v1alpha1.LabelScheduleUID] = "another"
		}, Make{today}},
		"no cluster":                    {func(s *Snapshot) { s.Cluster = nil }, Rest{}},
		"due, and known to be followed": {func(s *Snapshot) { s.Schedule.Status = ComputeStatus(s, Rest{}, nil) }, Make{today}},
		"its last time is of before it was made": {func(s *Snapshot) {
			s.Schedule.CreationTimestamp, s.Schedule.Status.LastScheduleTime = metav1.NewTime(now), stamp(now.AddDate(0, 0, -9))
		}, Rest{}},
		"suspended": {func(s *Snapshot) { s.Schedule.Spec.Suspend = true }, Rest{}},
		"it was suspended": {func(s *Snapshot) {
			s.Schedule.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ScheduleConditionScheduled, Reason: v1alpha1.ScheduleSuspended}}
		}, Pass{today}},
		"what is written is no schedule": {func(s *Snapshot) { s.Schedule.Spec.Schedule = "99 * * * *" }, Rest{}},
		"it is being deleted":            {func(s *Snapshot) { s.Schedule.DeletionTimestamp = stamp(now) }, Rest{}},

		"the clock was a year ahead, and is right again": {func(s *Snapshot) {
			s.Schedule.Status.LastScheduleTime = stamp(today.AddDate(1, 0, 0))
		}, Make{today}},
		"the clock was a year ahead, is right again, and the backup is there": {func(s *Snapshot) {
			s.Schedule.Status.LastScheduleTime = stamp(today.AddDate(1, 0, 0))
			s.Backups = []v1alpha1.RedisBackup{backup(name, time.Minute, v1alpha1.BackupCompleted)}
		}, Note{today}},
		"another process' clock is a little ahead": {func(s *Snapshot) {
			s.Now, s.Schedule.Status.LastScheduleTime = today.Add(-2*time.Second), stamp(today)
		}, Rest{}},
		"the clock is years behind": {func(s *Snapshot) { s.Now = now.AddDate(-20, 0, 0) }, Rest{}},
	} {
		t.Run(what, func(t *testing.T) {
			s := snapshotOf(tt.change)
			step := Plan(s)
			if diff := cmp.Diff(tt.want, step); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
			s.Schedule.Status = ComputeStatus(s, step, nil)
			if again := Plan(s); step != Step(Rest{}) && again == step {
				t.Errorf("it does so again: %+v", again)
			}
		})
	}
}

// What is due goes before what is old; and what is old goes whether or not backups are made.
func TestPlanPrunes(t *testing.T) {
	old := func(s *Snapshot) {
		s.Schedule.Spec.Retention = &v1alpha1.BackupRetention{KeepLast: ptr.To[int32](1)}
		// made in the same second
		s.Backups = []v1alpha1.RedisBackup{backup("b", time.Hour, v1alpha1.BackupCompleted), backup("a", time.Hour, v1alpha1.BackupCompleted)}
	}
	s := snapshotOf(old)
	if step, makes := Plan(s).(Make); !makes {
		t.Errorf("what is due: %+v", step)
	}
	for what, change := range map[string]func(*Snapshot){
		"followed":  func(s *Snapshot) { s.Now = s.Now.Add(-time.Hour / 2) },
		"suspended": func(s *Snapshot) { s.Schedule.Spec.Suspend = true },
		"refused":   func(s *Snapshot) { s.Schedule.Spec.TimeZone = "Local" },
	} {
		s := snapshotOf(func(s *Snapshot) { old(s); change(s) })
		step, prunes := Plan(s).(Prune)
		if !prunes || step.Backup.Name != "a" || step.Why == "" {
			t.Errorf("%s: %+v", what, step)
		}
		scheduled := meta.FindStatusCondition(ComputeStatus(s, step, errors.New("no")).Conditions, v1alpha1.ScheduleConditionScheduled)
		if scheduled.Reason == v1alpha1.ScheduleNotMade {
			t.Errorf("%s: what cannot be deleted is told as %+v", what, scheduled)
		}
	}
}

// What is over is not told any more, and what is of another is not told at all.
func TestStatusIsOfNow(t *testing.T) {
	s := snapshotOf(func(s *Snapshot) {
		s.Schedule.Spec.Suspend = true
		s.Schedule.Status.NextScheduleTime, s.Schedule.Status.Active = stamp(now), "gone"
		s.Schedule.Status.LastSuccessfulBackup = &v1alpha1.ScheduledBackup{Name: "gone"}
		s.Backups = []v1alpha1.RedisBackup{backup("other", 0, v1alpha1.BackupRunning)}
		s.Backups[0].Labels[v1alpha1.LabelScheduleUID] = "another"
	})
	if is := ComputeStatus(s, Rest{}, nil); is.NextScheduleTime != nil || is.Active != "" || is.LastSuccessfulBackup != nil {
		t.Errorf("%+v", is)
	}
	s.Backups = []v1alpha1.RedisBackup{backup("a", time.Hour, v1alpha1.BackupCompleted)}
	if of := ComputeStatus(s, Rest{}, nil).LastSuccessfulBackup; of == nil || !of.Time.Equal(s.Backups[0].Status.MarkedAt) {
		t.Errorf("the newest is %+v", of)
	}
	s.Backups[0].Status.MarkedAt = nil
	if of := ComputeStatus(s, Rest{}, nil).LastSuccessfulBackup; of == nil || !of.Time.Equal(&s.Backups[0].CreationTimestamp) {
		t.Errorf("the newest is %+v", of)
	}
	before := s.Schedule.Status
	s.Schedule.DeletionTimestamp = stamp(now)
	if diff := cmp.Diff(before, ComputeStatus(s, Rest{}, nil)); diff != "" {
		t.Errorf("while it is deleted it changes (-before +after):\n%s", diff)
	}
}

func TestStatus(t *testing.T) {
	tomorrow := now.Truncate(time.Hour).AddDate(0, 0, 1)
	taken := Skip{now.Truncate(time.Hour), v1alpha1.ScheduleSkippedActive, "it was left out"}
	for what, tt := range map[string]struct {
		change           func(*Snapshot)
		step             Step
		err              error
		scheduled        string // status, reason, part of the message
		backedUp         string
		next             *metav1.Time
		newest, active   string
		backups          int32
		lastScheduleTime *metav1.Time
	}{
		"made": {func(*Snapshot) {}, Make{now.Truncate(time.Hour)}, nil, "True Followed", "Unknown NoBackup", stamp(tomorrow), "",
			"nightly-202611231000", 0, stamp(now.Truncate(time.Hour))},
		"not made": {func(*Snapshot) {}, Make{now.Truncate(time.Hour)}, errors.New("quota"), "False BackupNotMade it is tried again: quota",
			"Unknown NoBackup", stamp(tomorrow), "", "", 0, stamp(now.AddDate(0, 0, -1).Truncate(time.Hour))},
		"left out": {func(*Snapshot) {}, taken, nil, "True FormerStillTaken it was left out", "Unknown NoBackup", stamp(tomorrow), "", "", 0,
			stamp(now.Truncate(time.Hour))},
		"left out before": {func(s *Snapshot) { s.Schedule.Status = ComputeStatus(s, taken, nil) }, Rest{}, nil,
			"True FormerStillTaken it was left out", "Unknown NoBackup", stamp(tomorrow), "", "", 0, stamp(now.Truncate(time.Hour))},
		"left out before, for it was hibernated": {func(s *Snapshot) {
			s.Schedule.Status = ComputeStatus(s, Skip{now.Truncate(time.Hour), v1alpha1.ScheduleSkippedAsleep, "it was left out"}, nil)
		}, Rest{}, nil, "True ClusterHibernated it was left out", "Unknown NoBackup", stamp(tomorrow), "", "", 0, stamp(now.Truncate(time.Hour))},
		"left out before, for its name": {func(s *Snapshot) {
			s.Schedule.Status = ComputeStatus(s, Skip{now.Truncate(time.Hour), v1alpha1.ScheduleSkippedTaken, "it was left out"}, nil)
		}, Rest{}, nil, "True NameTaken it was left out", "Unknown NoBackup", stamp(tomorrow), "", "", 0, stamp(now.Truncate(time.Hour))},
		"left out before, and the next one was made": {func(s *Snapshot) {
			s.Schedule.Status = ComputeStatus(s, taken, nil)
			s.Now = s.Now.AddDate(0, 0, 1)
		}, Make{tomorrow}, nil, "True Followed", "Unknown NoBackup", stamp(tomorrow.AddDate(0, 0, 1)), "", "nightly-202611241000", 0,
			stamp(tomorrow)},
		"suspended": {func(s *Snapshot) { s.Schedule.Spec.Suspend = true }, Rest{}, nil, "False Suspended", "Unknown NoBackup", nil, "", "", 0,
			stamp(now.AddDate(0, 0, -1).Truncate(time.Hour))},
		"refused": {func(s *Snapshot) { s.Schedule.Spec.Schedule = "30 2 31 2 *" }, Rest{}, nil,
			"False InvalidSchedule spec.schedule: position 6", "Unknown NoBackup", nil, "", "", 0, stamp(now.AddDate(0, 0, -1).Truncate(time.Hour))},
		"no cluster": {func(s *Snapshot) { s.Cluster = nil }, Rest{}, nil, "False ClusterNotFound spec.cluster: there is no RedisCluster cache",
			"Unknown NoBackup", stamp(tomorrow), "", "", 0, stamp(now.AddDate(0, 0, -1).Truncate(time.Hour))},
		"the latest failed": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup("a", 3*time.Hour, v1alpha1.BackupCompleted), backup("b", 2*time.Hour, v1alpha1.BackupFailed),
				backup("c", time.Hour, v1alpha1.BackupRunning)}
			s.Backups[1].Status.Reason = "access denied"
		}, Make{now.Truncate(time.Hour)}, nil, "True Followed", "False BackupFailed RedisBackup b failed: access denied", stamp(tomorrow), "a",
			"c", 1, stamp(now.Truncate(time.Hour))},
		"the latest is complete": {func(s *Snapshot) {
			s.Backups = []v1alpha1.RedisBackup{backup("b", time.Hour, v1alpha1.BackupCompleted), backup("a", 2*time.Hour, v1alpha1.BackupFailed),
				backup("other", 0, v1alpha1.BackupFailed)}
			s.Backups[2].Spec.Cluster = "other"
		}, Make{now.Truncate(time.Hour)}, nil, "True Followed", "True BackupComplete RedisBackup b is complete", stamp(tomorrow), "b",
			"nightly-202611231000", 1, stamp(now.Truncate(time.Hour))},
	} {
		t.Run(what, func(t *testing.T) {
			s := snapshotOf(tt.change)
			status := ComputeStatus(s, tt.step, tt.err)
			for condition, want := range map[string]string{v1alpha1.ScheduleConditionScheduled: tt.scheduled,
				v1alpha1.ScheduleConditionBackedUp: tt.backedUp} {
				c := meta.FindStatusCondition(status.Conditions, condition)
				if got := string(c.Status) + " " + c.Reason + " " + c.Message; !strings.HasPrefix(got, want) {
					t.Errorf("%s is %q, want %q", condition, got, want)
				}
			}
			newest := ""
			if status.LastSuccessfulBackup != nil {
				newest = status.LastSuccessfulBackup.Name
			}
			if newest != tt.newest || status.Active != tt.active || status.Backups != tt.backups || !status.NextScheduleTime.Equal(tt.next) ||
				!status.LastScheduleTime.Equal(tt.lastScheduleTime) {
				t.Errorf("status %+v, next %s, last %s", status, status.NextScheduleTime, status.LastScheduleTime)
			}
		})
	}
}
