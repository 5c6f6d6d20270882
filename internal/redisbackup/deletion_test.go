// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
)

// deletedBackup is what is seen of a complete backup that is deleted and is to go from the store, changed.
func deletedBackup(change func(*Snapshot)) *Snapshot {
	return snapshotOf(func(s *Snapshot) {
		s.Cluster = nil // which may be gone
		s.Backup.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		s.Backup.Spec.DeletionPolicy = v1alpha1.BackupDelete
		s.Backup.Status = v1alpha1.RedisBackupStatus{Phase: v1alpha1.BackupCompleted, Jobs: 1}
		s.Job = jobWith(complied(batchv1.JobComplete, "", ""))
		change(s)
	})
}

// deletion is the Job that deletes the backup.
func deletion(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday-delete"},
		Status: batchv1.JobStatus{Conditions: conditions}}
}

func since(t batchv1.JobConditionType, message string, ago time.Duration) batchv1.JobCondition {
	c := complied(t, "", message)
	c.LastTransitionTime = metav1.NewTime(now.Add(-ago))
	return c
}

func TestPlanOfADeletion(t *testing.T) {
	const notDeleted = "it is not deleted from the store, which is tried again every 5m0s: "
	const mend = "; mend that, or set spec.deletionPolicy to Retain, which leaves in the store what is there"
	failed := func(ago time.Duration, said *report.Deletion) func(*Snapshot) {
		return func(s *Snapshot) { s.Deletion, s.Deleted = deletion(since(batchv1.JobFailed, "too often", ago)), said }
	}
	running := func(s *Snapshot) { s.Backup.Status.Phase, s.Job = v1alpha1.BackupRunning, nil }
	for what, tt := range map[string]struct {
		change func(*Snapshot)
		want   Step
	}{
		"complete":                   {func(*Snapshot) {}, Erase{}},
		"failed":                     {func(s *Snapshot) { s.Backup.Status.Phase = v1alpha1.BackupFailed }, Erase{}},
		"its Job is gone":            {func(s *Snapshot) { s.Job = nil }, Erase{}},
		"it is to stay in the store": {func(s *Snapshot) { s.Backup.Spec.DeletionPolicy = v1alpha1.BackupRetain }, Release{}},
		"it is to stay in the store, and is being deleted there": {func(s *Snapshot) {
			s.Backup.Spec.DeletionPolicy, s.Deletion = v1alpha1.BackupRetain, deletion()
		}, Release{}},
		"no policy is known":         {func(s *Snapshot) { s.Backup.Spec.DeletionPolicy = "" }, Release{}},
		"without the finalizer":      {func(s *Snapshot) { s.Backup.Finalizers = nil }, Rest{}},
		"the namespace goes as well": {func(s *Snapshot) { s.NamespaceGoes, s.Withheld = true, "no Secret" }, Release{}},
		"it is still being taken": {func(s *Snapshot) { s.Backup.Status.Phase, s.Job = v1alpha1.BackupRunning, jobWith() },
			Stop{"it is being deleted: Job monday-backup goes first"}},
		"it is still being taken, and its Job has just ended": {func(s *Snapshot) { s.Backup.Status.Phase = v1alpha1.BackupRunning },
			Stop{"it is being deleted: Job monday-backup goes first"}},
		"it failed, and its Job still runs": {func(s *Snapshot) { s.Backup.Status.Phase, s.Job = v1alpha1.BackupFailed, jobWith() },
			Stop{"it is being deleted: Job monday-backup goes first"}},
		"it failed, and its pod still writes": {func(s *Snapshot) { s.Backup.Status.Phase, s.Pods = v1alpha1.BackupFailed, []string{"a"} },
			Stop{"it is being deleted: pod a still ends"}},
		"its pod does not end, on a node that is gone":    {func(s *Snapshot) { s.Pods, s.Now = []string{"a"}, now.Add(6*time.Hour) }, Erase{}},
		"it was being taken: no slot waits for the store": {running, Fail{Reason: "it was deleted before it was complete"}},
		"it was being taken, and its pod does not end": {func(s *Snapshot) { running(s); s.Pods, s.Now = []string{"a"}, now.Add(6*time.Hour) },
			Fail{Reason: "it was deleted before it was complete"}},

		"a Secret is gone": {func(s *Snapshot) { s.Withheld = "there is no Secret" },
			AwaitErased{"it is not deleted from the store: there is no Secret" + mend, later}},
		"a Secret is gone, and the Job runs": {func(s *Snapshot) { s.Withheld, s.Deletion = "there is no Secret", deletion() },
			AwaitErased{"Job monday-delete deletes it from the store", later}},
		"somebody else's Job": {func(s *Snapshot) { s.Taken = "delete it" }, AwaitErased{"it is not deleted from the store: delete it", later}},
		"its Job was deleted just now": {func(s *Snapshot) { s.DeletionMade = now.Add(-20 * time.Second) },
			AwaitErased{"Job monday-delete was deleted; another one is made within 1m0s", 40 * time.Second}},
		"its Job was deleted": {func(s *Snapshot) { s.DeletionMade = now.Add(-time.Minute) }, Erase{}},

		"the Job runs": {func(s *Snapshot) { s.Deletion = deletion() }, AwaitErased{"Job monday-delete deletes it from the store", later}},
		"its pod says that it is deleted, and the Job has not ended": {func(s *Snapshot) {
			s.Deletion, s.Deleted = deletion(), &report.Deletion{Deleted: true}
		}, AwaitErased{"Job monday-delete deletes it from the store", later}},
		"it is deleted": {func(s *Snapshot) {
			s.Deletion, s.Deleted = deletion(since(batchv1.JobComplete, "", 0)), &report.Deletion{Deleted: true}
		}, Release{}},
		"it is deleted, and the Job was out of time": {failed(0, &report.Deletion{Deleted: true}), Release{}},
		"the Job succeeded, and its pod says that it did not": {func(s *Snapshot) {
			s.Deletion, s.Deleted = deletion(since(batchv1.JobComplete, "", time.Minute)), &report.Deletion{Error: "no"}
		}, AwaitErased{notDeleted + "its pod did not say so" + mend, 4 * time.Minute}},
		"another's backup has the name": {func(s *Snapshot) {
			s.Deletion, s.Deleted = deletion(), &report.Deletion{Another: true, Error: "another's"}
		}, Release{}},
		"the Job succeeded without a word": {func(s *Snapshot) { s.Deletion = deletion(since(batchv1.JobComplete, "", time.Minute)) },
			AwaitErased{notDeleted + "its pod did not say so" + mend, 4 * time.Minute}},
		"the Job succeeded without a word, long ago": {func(s *Snapshot) { s.Deletion = deletion(since(batchv1.JobComplete, "", time.Hour)) },
			EraseAgain{notDeleted + "its pod did not say so" + mend}},
		"the Job failed": {failed(0, nil), AwaitErased{notDeleted + "too often" + mend, 5 * time.Minute}},
		"the Job failed, and its pod said why": {failed(time.Minute, &report.Deletion{Error: "access denied"}),
			AwaitErased{notDeleted + "access denied" + mend, 4 * time.Minute}},
		"the Job failed long ago": {failed(5*time.Minute, nil), EraseAgain{notDeleted + "too often" + mend}},
		"the Job failed in a time to come, by another clock": {failed(-time.Hour, nil),
			AwaitErased{notDeleted + "too often" + mend, 5 * time.Minute}},
		"the Job that failed goes": {func(s *Snapshot) {
			failed(time.Hour, nil)(s)
			s.Deletion.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}, AwaitErased{"the former Job monday-delete is being deleted", later}},
	} {
		t.Run(what, func(t *testing.T) {
			s := deletedBackup(tt.change)
			step := Plan(s)
			if diff := cmp.Diff(tt.want, step); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
			s.Backup.Status = ComputeStatus(s, step, nil)
			if _, stop := step.(Stop); s.Backup.Active() && !stop {
				t.Error("slots stay for what is only in the store")
			}
		})
	}
}

// What has ended keeps the finalizer as long as something of it is to go from the store, whenever that was said.
func TestFinalizerOfABackupThatHasEnded(t *testing.T) {
	for what, tt := range map[string]struct {
		policy  v1alpha1.BackupDeletionPolicy
		guarded bool
		jobs    int32
		want    Step
	}{
		"it stays in the store":                   {v1alpha1.BackupRetain, true, 1, Release{}},
		"it stays in the store, and is released":  {v1alpha1.BackupRetain, false, 1, Rest{}},
		"it goes":                                 {v1alpha1.BackupDelete, true, 1, Rest{}},
		"it goes, as was said later":              {v1alpha1.BackupDelete, false, 1, Guard{}},
		"it goes, and nothing was ever written":   {v1alpha1.BackupDelete, false, 0, Rest{}},
		"it goes, and nothing was ever begun":     {v1alpha1.BackupDelete, true, 0, Release{}},
		"nothing is said of it, past the schema":  {"", true, 1, Release{}},
		"something else is said, past the schema": {"Erase", true, 1, Release{}},
	} {
		for _, phase := range []v1alpha1.BackupPhase{v1alpha1.BackupCompleted, v1alpha1.BackupFailed} {
			s := snapshotOf(func(s *Snapshot) {
				s.Backup.Spec.DeletionPolicy = tt.policy
				s.Backup.Status = v1alpha1.RedisBackupStatus{Phase: phase, Jobs: tt.jobs}
				if !tt.guarded {
					s.Backup.Finalizers = nil
				}
			})
			if diff := cmp.Diff(tt.want, Plan(s)); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", what, phase, diff)
			}
		}
	}
}

// The Job that deletes gets what the store needs and nothing of the RedisCluster.
func TestDeletionJob(t *testing.T) {
	s := deletedBackup(func(s *Snapshot) { s.Backup.Spec.Store.S3.CASecretName = "authority" })
	made := deletionJob(s.Backup, "registry/operator:1")
	pod := made.Spec.Template.Spec
	want := []string{"delete", "monday", "--store=s3://backups?prefix=shop%2Fcache%2F&region=eu-west-1", "--request=b",
		"--report-file=/dev/termination-log"}
	if diff := cmp.Diff(want, pod.Containers[0].Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if len(pod.Volumes) != 1 || pod.Volumes[0].Secret.SecretName != "authority" || *pod.AutomountServiceAccountToken ||
		made.Name != "monday-delete" {
		t.Errorf("Job %s: %+v", made.Name, pod)
	}
	// A garbage collector that deletes the backup in the foreground would delete the Job before its work is done.
	if owner := metav1.GetControllerOf(made); owner == nil || *owner.BlockOwnerDeletion {
		t.Errorf("its owner is %+v", owner)
	}
	if *made.Spec.ActiveDeadlineSeconds != 600 || *made.Spec.PodReplacementPolicy != batchv1.Failed {
		t.Errorf("two pods may delete at a time, or one for ever: %+v", made.Spec)
	}
	if backupjob.For(pod, string(s.Backup.UID), backupjob.Take) || !backupjob.For(pod, string(s.Backup.UID), backupjob.Delete) {
		t.Error("it is taken for one that takes the backup")
	}
}

// One that has ended, and one that was never begun and goes, ask the API server nothing.
func TestIdleBackupsAskNothing(t *testing.T) {
	r := &reconciler{now: func() time.Time { return now }}
	for what, change := range map[string]func(*Snapshot){
		"it is to go from the store, and stays":    func(s *Snapshot) { s.Backup.DeletionTimestamp = nil },
		"it stays in the store, and goes":          func(s *Snapshot) { s.Backup.Spec.DeletionPolicy = v1alpha1.BackupRetain },
		"it was never begun":                       func(s *Snapshot) { s.Backup.Status.Phase, s.Backup.Finalizers = "", nil },
		"it is to go, and nothing is in the store": func(s *Snapshot) { s.Backup.Finalizers = nil },
	} {
		if seen, err := r.observe(t.Context(), deletedBackup(change).Backup); err != nil || seen.Job != nil {
			t.Errorf("%s: %+v (%v)", what, seen, err)
		}
	}
}

// Before something is deleted from the store, the API server is asked whether anybody still writes there, and whose the Jobs are.
func TestWhatADeletionSees(t *testing.T) {
	scheme := clientgoscheme.Scheme
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	s := deletedBackup(func(*Snapshot) {})
	cluster := snapshotOf(func(*Snapshot) {}).Cluster
	taking := job(snapshotOf(func(*Snapshot) {}), "operator:1")
	writes := podOf(taking, "", func(p *corev1.Pod) { p.Name = "writes" })
	deleting := deletionJob(s.Backup, "operator:1")
	deleting.UID = "d"
	said, err := report.Deletion{Deleted: true}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	deletes := podOf(deleting, string(said), func(p *corev1.Pod) { p.Name = "deletes" })
	empty := fake.NewClientBuilder().WithScheme(scheme).Build()
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster, taking, writes, deleting, deletes).Build()
	r := &reconciler{cache: empty, children: empty, live: live, image: "operator:1", now: func() time.Time { return now }}
	seen, err := r.observe(t.Context(), s.Backup)
	if err != nil || seen.Job == nil || !slices.Equal(seen.Pods, []string{"writes"}) || seen.Deletion == nil || seen.Deleted == nil {
		t.Fatalf("seen %+v (%v)", seen, err)
	}
	deleting.OwnerReferences[0].UID = "c"
	live = fake.NewClientBuilder().WithScheme(scheme).WithObjects(deleting).Build()
	r.live = live
	seen, err = r.observe(t.Context(), s.Backup)
	if err != nil || seen.Deletion != nil || !strings.Contains(seen.Taken, "Job monday-delete exists and is not of this backup") {
		t.Errorf("seen %+v (%v)", seen, err)
	}
	r.live = empty
	seen, err = r.observe(t.Context(), s.Backup)
	if err != nil || seen.NamespaceGoes || !strings.Contains(seen.Withheld, "there is no Secret store in this namespace") {
		t.Errorf("seen %+v (%v)", seen, err)
	}
}
