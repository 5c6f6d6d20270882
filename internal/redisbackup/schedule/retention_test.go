// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// pruned deletes what is to be deleted, until nothing is.
func pruned(t *testing.T, s *Snapshot) (order []string) {
	t.Helper()
	for range len(s.Backups) + 1 {
		old, why := expired(s)
		if old == nil {
			return order
		}
		if order = append(order, old.Name); why == "" {
			t.Errorf("%s goes without a reason", old.Name)
		}
		s.Backups = slices.DeleteFunc(slices.Clone(s.Backups), func(b v1alpha1.RedisBackup) bool { return b.Name == order[len(order)-1] })
	}
	t.Fatal("it does not end")
	return nil
}

func retention(last int32, hours int) *v1alpha1.BackupRetention {
	r := &v1alpha1.BackupRetention{}
	if last != 0 {
		r.KeepLast = &last
	}
	if hours != 0 {
		r.KeepFor = &metav1.Duration{Duration: time.Duration(hours) * time.Hour}
	}
	return r
}

func TestRetention(t *testing.T) {
	const complete, failed = v1alpha1.BackupCompleted, v1alpha1.BackupFailed
	of := func(name string, hours int, phase v1alpha1.BackupPhase, change ...func(*v1alpha1.RedisBackup)) v1alpha1.RedisBackup {
		b := backup(name, time.Duration(hours)*time.Hour, phase)
		for _, c := range change {
			c(&b)
		}
		return b
	}
	days := []v1alpha1.RedisBackup{of("e", 1, complete), of("d", 25, complete), of("c", 49, complete), of("b", 73, complete),
		of("a", 97, complete)}
	other := func(b *v1alpha1.RedisBackup) { b.Spec.Cluster = "other" }
	foreign := func(b *v1alpha1.RedisBackup) { b.Labels[v1alpha1.LabelScheduleUID] = "another" }
	going := func(b *v1alpha1.RedisBackup) { b.DeletionTimestamp = stamp(now) }
	ahead := func(b *v1alpha1.RedisBackup) { b.CreationTimestamp = *stamp(now.AddDate(1, 0, 0)) }
	marked := func(years int) func(*v1alpha1.RedisBackup) {
		return func(b *v1alpha1.RedisBackup) { b.Status.MarkedAt = stamp(now.AddDate(years, 0, 0)) }
	}
	for what, tt := range map[string]struct {
		retention *v1alpha1.BackupRetention
		backups   []v1alpha1.RedisBackup
		want      []string
	}{
		"nothing is said":                      {nil, days, nil},
		"nothing is said, past the schema":     {retention(0, 0), days, nil},
		"less than one, past the schema":       {retention(-1, 0), days, nil},
		"by count":                             {retention(2, 0), days, []string{"a", "b", "c"}},
		"by count, all":                        {retention(5, 0), days, nil},
		"by age, counted back from the newest": {retention(0, 48), days, []string{"a", "b"}},
		"by both: what either keeps":           {retention(2, 72), days, []string{"a"}},
		"by both: what the count keeps":        {retention(4, 1), days, []string{"a"}},
		"all are old, and none is newer":       {retention(0, 1), []v1alpha1.RedisBackup{of("a", 9000, complete)}, nil},
		"all are old, and none has been taken since": {retention(0, 48), []v1alpha1.RedisBackup{of("a", 9000, complete),
			of("b", 9010, complete)}, nil},
		"what failed or is taken is no reason": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 90, complete), of("b", 1, failed),
			of("c", 0, v1alpha1.BackupRunning)}, nil},
		"what another made is no reason, and stays": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 90, complete),
			of("b", 1, complete, foreign), of("c", 200, complete, foreign)}, nil},
		"what is of another cluster is no reason, and stays": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 90, complete),
			of("b", 1, complete, other), of("c", 200, complete, other)}, nil},
		"what is being deleted is no reason": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 90, complete), of("b", 1, complete, going)}, nil},
		"what was made at a time to come is no reason, and stays": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 90, complete),
			of("b", 100, complete), of("c", 50, complete, ahead)}, []string{"b"}},
		"what was made at a time to come makes nothing old": {retention(0, 48), []v1alpha1.RedisBackup{of("a", 1, complete),
			of("c", 50, complete, ahead)}, nil},
		"a pod whose clock is ahead makes nothing old": {retention(1, 48), []v1alpha1.RedisBackup{of("a", 1, complete),
			of("c", 20, complete, marked(1))}, nil},
		"a pod whose clock is behind makes nothing older": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 90, complete),
			of("b", 1, complete, marked(-1))}, []string{"a"}},
		"some are being deleted, and one more may be": {retention(1, 0), append([]v1alpha1.RedisBackup{of("w", 200, complete, going),
			of("x", 201, complete, going), of("y", 202, failed, going), of("z", 203, complete, going, foreign)}, days...),
			[]string{"a", "b", "c", "d"}},
		"enough are being deleted": {retention(1, 0), append([]v1alpha1.RedisBackup{of("w", 200, complete, going),
			of("x", 201, complete, going), of("y", 202, failed, going), of("z", 203, complete, going)}, days...), nil},
		"the last that failed stay": {retention(1, 0), []v1alpha1.RedisBackup{of("a", 9, failed), of("b", 8, failed), of("c", 7, failed),
			of("d", 6, failed), of("e", 5, failed)}, []string{"a", "b"}},
	} {
		s := snapshotOf(func(s *Snapshot) { s.Schedule.Spec.Retention, s.Backups = tt.retention, slices.Clone(tt.backups) })
		if got := pruned(t, s); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v go, want %v", what, got, tt.want)
		}
	}
}

// Whatever is taken and fails, whichever clocks jump and whatever retention says by then: the newest complete backup stays, at no time
// fewer complete ones are left than retention keeps, and what another made stays.
func TestTheNewestStays(t *testing.T) {
	const runs, steps, seed = 100, 60, 11
	phases := []v1alpha1.BackupPhase{v1alpha1.BackupCompleted, v1alpha1.BackupCompleted, v1alpha1.BackupCompleted, v1alpha1.BackupFailed,
		v1alpha1.BackupRunning, v1alpha1.BackupPending, ""}
	random := rand.New(rand.NewPCG(seed, seed))
	deleted := 0
	for run := range runs {
		real, whole := now, map[string]time.Time{} // the complete ones that are there, by when they were taken in truth
		apiServer := run%2 == 0                    // whose clock jumps; else that of the operator does
		s := snapshotOf(func(*Snapshot) {})
		foreign := 0
		for i := range steps {
			real = real.Add(time.Duration(1+random.IntN(3000)) * time.Minute)
			b := backup(fmt.Sprintf("b-%03d", i), 0, phases[random.IntN(len(phases))])
			b.CreationTimestamp = metav1.NewTime(real)
			b.Status.MarkedAt = stamp(real.Add(time.Minute))
			wrong := random.IntN(10)
			switch wrong {
			case 0: // the clock of the node is a year ahead, or behind
				b.Status.MarkedAt = stamp(real.AddDate(1, 0, 0))
			case 1:
				b.Status.MarkedAt = stamp(real.AddDate(-1, 0, 0))
			case 2:
				b.Labels[v1alpha1.LabelScheduleUID] = "another"
				foreign++
			}
			if apiServer && wrong > 7 {
				b.CreationTimestamp = metav1.NewTime(real.AddDate(1, 0, 0))
			}
			if b.Status.Phase == v1alpha1.BackupCompleted && wrong != 2 {
				whole[b.Name] = real
			}
			s.Backups = append(s.Backups, b)
			s.Schedule.Spec.Retention = retention(random.Int32N(6), random.IntN(400))
			s.Now = real.Add(time.Hour / 2)
			if !apiServer && random.IntN(10) == 0 {
				s.Now = s.Now.AddDate(random.IntN(5)-2, 0, 0)
			}
			before := len(whole)
			newest := slices.MaxFunc(append(slices.Collect(maps.Keys(whole)), ""), func(a, b string) int { return whole[a].Compare(whole[b]) })
			for _, gone := range pruned(t, s) {
				delete(whole, gone)
				deleted++
			}
			if _, there := whole[newest]; newest != "" && !there {
				t.Fatalf("run %d, step %d: the newest, %s, was deleted by %+v", run, i, newest, s.Schedule.Spec.Retention)
			}
			if last := s.Schedule.Spec.Retention.KeepLast; last != nil && len(whole) < min(before, int(*last)) {
				t.Fatalf("run %d, step %d: of %d are %d left, and %d are to be kept", run, i, before, len(whole), *last)
			}
			if there := slices.DeleteFunc(slices.Clone(s.Backups), s.ours); len(there) != foreign {
				t.Fatalf("run %d, step %d: %d of %d that another made are left", run, i, len(there), foreign)
			}
		}
	}
	if deleted < runs*steps/10 {
		t.Errorf("%d were deleted: the test shows nothing", deleted)
	}
}

func (s *Snapshot) ours(b v1alpha1.RedisBackup) bool { return s.Schedule.Made(&b) }

// A backup has what the schedule says, labels by which it is known, and no owner with which it would go.
func TestBackupOf(t *testing.T) {
	s := snapshotOf(func(s *Snapshot) { s.Schedule.Spec.Timeout = &metav1.Duration{Duration: time.Hour} }).Schedule
	for policy, r := range map[v1alpha1.BackupDeletionPolicy]*v1alpha1.BackupRetention{v1alpha1.BackupRetain: nil,
		v1alpha1.BackupDelete: {KeepLast: ptr.To[int32](1)}} {
		s.Spec.Retention = r
		b := backupOf(s, now)
		if b.Name != "nightly-202611231000" || b.Namespace != "shop" || len(b.OwnerReferences) > 0 || !s.Made(b) ||
			b.Labels[v1alpha1.LabelSchedule] != "nightly" || b.Spec.Cluster != "cache" || b.Spec.Store.S3.Bucket != "backups" ||
			b.Spec.Timeout.Duration != time.Hour || b.Spec.DeletionPolicy != policy {
			t.Errorf("%+v", b)
		}
	}
}
