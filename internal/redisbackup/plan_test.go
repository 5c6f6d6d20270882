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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

var now = time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)

// snapshotOf is what is seen of a backup whose turn it is, changed.
func snapshotOf(change func(*Snapshot)) *Snapshot {
	s := &Snapshot{
		Now: now,
		Backup: &v1alpha1.RedisBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday", UID: "b", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour)),
				Finalizers: []string{v1alpha1.FinalizerBackup}},
			Spec: v1alpha1.RedisBackupSpec{Cluster: "cache", Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups",
				Region: "eu-west-1", CredentialsSecretName: "store"}}},
			Status: v1alpha1.RedisBackupStatus{Phase: v1alpha1.BackupPreparing},
		},
		Cluster: &v1alpha1.RedisCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "cache"},
			Status: v1alpha1.RedisClusterStatus{HeldForBackup: "b", Shards: 3, Nodes: []v1alpha1.NodeStatus{
				{Name: "cache-0-0", Status: metav1.ConditionTrue, Instance: "10.0.0.1:6379", NodeID: "n1"},
				{Name: "cache-0-1", Status: metav1.ConditionFalse, Instance: "10.0.0.2:6379"},
			}},
		},
	}
	change(s)
	return s
}

func jobWith(conditions ...batchv1.JobCondition) *batchv1.Job {
	return &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "monday-backup", UID: "j"},
		Status: batchv1.JobStatus{Conditions: conditions}}
}

func complied(t batchv1.JobConditionType, reason, message string) batchv1.JobCondition {
	return batchv1.JobCondition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

var done = report.Report{Engine: "redis", Version: "8.0.6", Marked: now.Add(-time.Minute), Consistent: true, Paused: 0.0012, Skew: 0.0004,
	Manifest: strings.Repeat("a", 64), Bytes: 1000, Stored: 100, Count: 1,
	Counts: &report.Counts{Keys: 7, WithTTL: 2, WithFieldTTL: 1},
	Shards: []report.Shard{{Slots: "0-16383", Bytes: 1000, Stored: 100}}}

func TestPlan(t *testing.T) {
	const moving = "slots of RedisCluster cache move, or another backup of it is being taken"
	for what, tt := range map[string]struct {
		change func(*Snapshot)
		want   Step
	}{
		"its turn":               {func(*Snapshot) {}, Start{}},
		"new":                    {func(s *Snapshot) { s.Backup.Status.Phase = "" }, Wait{"it is the next", true}},
		"slots move":             {func(s *Snapshot) { s.Cluster.Status.HeldForBackup = "" }, Wait{moving, true}},
		"slots stay for another": {func(s *Snapshot) { s.Cluster.Status.HeldForBackup = "c" }, Wait{moving, true}},
		"its Job was deleted":    {func(s *Snapshot) { s.Backup.Status.Phase = v1alpha1.BackupRunning }, Start{}},
		"no cluster": {func(s *Snapshot) { s.Cluster = nil },
			Wait{"spec.cluster: there is no RedisCluster cache in this namespace", false}},
		"hibernated": {func(s *Snapshot) { s.Cluster.Status.Nodes, s.Cluster.Spec.Hibernate = nil, true },
			Wait{"RedisCluster cache is hibernated: the backup is taken when spec.hibernate is false", false}},
		"a Secret is not labelled": {func(s *Snapshot) { s.Withheld = "label it" }, Wait{"label it", false}},
		"somebody else's Job":      {func(s *Snapshot) { s.Taken = "delete it" }, Wait{"delete it", false}},
		"no instance serves":       {func(s *Snapshot) { s.Cluster.Status.Nodes = nil }, Wait{"no instance of RedisCluster cache serves", false}},
		"the cluster goes": {func(s *Snapshot) { s.Cluster.DeletionTimestamp = ptr.To(metav1.NewTime(now)) },
			Fail{Reason: "RedisCluster cache is being deleted"}},
		"too late": {func(s *Snapshot) {
			s.Backup.Spec.Timeout = &metav1.Duration{Duration: time.Hour}
			s.Backup.Status.Reason = "label it"
		}, Fail{Reason: "it was not complete in time: label it"}},
		"its turn, without the finalizer": {func(s *Snapshot) { s.Backup.Finalizers = nil }, Guard{}},
		"a pod of a Job that was deleted": {func(s *Snapshot) { s.Pods = []string{"monday-backup-x"} },
			Wait{"pod monday-backup-x still ends", true}},
		"it is deleted": {func(s *Snapshot) { s.Backup.DeletionTimestamp = ptr.To(metav1.NewTime(now)) }, Release{}},
		"it is deleted, and was never begun": {func(s *Snapshot) {
			s.Backup.DeletionTimestamp, s.Backup.Finalizers = ptr.To(metav1.NewTime(now)), nil
		}, Rest{}},
		"it is deleted while the Job runs": {func(s *Snapshot) {
			s.Backup.DeletionTimestamp, s.Job = ptr.To(metav1.NewTime(now)), jobWith()
		}, Stop{"it is being deleted: Job monday-backup goes first"}},
		"it is deleted, and its pod still ends": {func(s *Snapshot) {
			s.Backup.DeletionTimestamp, s.Pods = ptr.To(metav1.NewTime(now)), []string{"a", "b"}
		}, Stop{"it is being deleted: pod a, b still ends"}},
		"it is deleted, and its pod does not end": {func(s *Snapshot) {
			s.Backup.DeletionTimestamp, s.Pods, s.Now = ptr.To(metav1.NewTime(now)), []string{"a"}, now.Add(6*time.Hour)
		}, Release{}},
		"complete": {func(s *Snapshot) { s.Backup.Status.Phase = v1alpha1.BackupCompleted }, Release{}},
		"failed":   {func(s *Snapshot) { s.Backup.Status.Phase = v1alpha1.BackupFailed }, Release{}},
		"complete, and released": {func(s *Snapshot) {
			s.Backup.Status.Phase, s.Backup.Finalizers = v1alpha1.BackupCompleted, nil
		}, Rest{}},

		"the Job runs": {func(s *Snapshot) { s.Job = jobWith() }, Follow{"Job monday-backup takes the backup"}},
		"the Job's pod waits": {func(s *Snapshot) { s.Job, s.Waits = jobWith(), "not scheduled: no node" },
			Follow{"Job monday-backup takes the backup: not scheduled: no node"}},
		"the Job runs again": {func(s *Snapshot) { s.Job, s.Report, s.Waits = jobWith(), &report.Report{Error: "no space"}, "starting" },
			Follow{"Job monday-backup takes the backup, again after a pod that failed (no space): starting"}},
		"the Job runs, and the cluster is gone": {func(s *Snapshot) { s.Job, s.Cluster = jobWith(), nil },
			Follow{"Job monday-backup takes the backup"}},
		"the Job goes": {func(s *Snapshot) {
			s.Job = jobWith(complied(batchv1.JobComplete, "", ""))
			s.Job.DeletionTimestamp = ptr.To(metav1.NewTime(now))
		}, Follow{"the former Job is being deleted"}},
		"the Job is complete": {func(s *Snapshot) { s.Job, s.Report = jobWith(complied(batchv1.JobComplete, "", "")), &done }, Complete{done}},
		"the Job is complete, and slots did not stay": {func(s *Snapshot) {
			s.Job, s.Report, s.Cluster.Status.HeldForBackup = jobWith(complied(batchv1.JobComplete, "", "")), &done, ""
		}, Fail{Reason: "slots may have moved while it was taken: the RedisCluster's status does not say that they stayed"}},
		"the Job is complete, and the cluster is gone": {func(s *Snapshot) {
			s.Job, s.Report, s.Cluster = jobWith(complied(batchv1.JobComplete, "", "")), &done, nil
		}, Complete{done}},
		"the Job failed, and its pod says that it took the backup": {func(s *Snapshot) {
			s.Job, s.Report = jobWith(complied(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "over")), &done
		}, Complete{done}},
		"the Job does not end": {func(s *Snapshot) {
			s.Job, s.Now = jobWith(), now.Add(6*time.Hour)
		}, Fail{Reason: "Job monday-backup has not ended in time", Stop: true}},
		"too many Jobs": {func(s *Snapshot) { s.Backup.Status.Jobs = 3 },
			Fail{Reason: "3 Jobs ended, or were deleted, without a word of what they took"}},
		"the Job is complete, and its pod is gone": {func(s *Snapshot) { s.Job = jobWith(complied(batchv1.JobComplete, "", "")) },
			Repeat{"the pod that took the backup did not say what it took: it is asked again"}},
		"the Job is complete, and its pod says that it failed": {func(s *Snapshot) {
			s.Job, s.Report = jobWith(complied(batchv1.JobComplete, "", "")), &report.Report{Error: "no"}
		}, Repeat{"the pod that took the backup did not say what it took: it is asked again"}},
		"a pod says that it is complete, and the Job has not ended": {func(s *Snapshot) { s.Job, s.Report = jobWith(), &done },
			Follow{"Job monday-backup takes the backup"}},
		"the Job failed": {func(s *Snapshot) {
			s.Job = jobWith(complied(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "too often"))
		}, Fail{Reason: "too often"}},
		"the Job failed, and its pod said why": {func(s *Snapshot) {
			s.Job = jobWith(complied(batchv1.JobFailed, batchv1.JobReasonBackoffLimitExceeded, "too often"))
			s.Report = &report.Report{Error: "writing: no such bucket"}
		}, Fail{Reason: "writing: no such bucket"}},
		"the Job took too long": {func(s *Snapshot) {
			s.Job = jobWith(complied(batchv1.JobFailed, batchv1.JobReasonDeadlineExceeded, "over"))
		}, Fail{Reason: "it took longer than spec.timeout: over"}},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, Plan(snapshotOf(tt.change))); diff != "" {
				t.Errorf("step (-want +got):\n%s", diff)
			}
		})
	}
}

func TestStatusOfACompleteBackup(t *testing.T) {
	s := snapshotOf(func(s *Snapshot) { s.Job = jobWith() })
	status := ComputeStatus(s, Complete{done}, nil)
	if status.Phase != v1alpha1.BackupCompleted || status.Location != "s3://backups/shop/cache/monday" || status.PausedMilliseconds != 2 ||
		status.SkewMilliseconds != 1 || status.Consistent == nil || !*status.Consistent || status.Bytes != 1000 || status.ShardCount != 1 ||
		len(status.Shards) != 1 || !status.MarkedAt.Equal(ptr.To(metav1.NewTime(done.Marked))) {
		t.Errorf("status %+v", status)
	}
	if keys := status.Keys; keys == nil || *keys != (v1alpha1.KeyCount{Total: 7, WithTTL: 2, WithFieldTTL: 1}) {
		t.Errorf("its keys are %+v", keys)
	}
	if !meta.IsStatusConditionTrue(status.Conditions, v1alpha1.BackupConditionCompleted) {
		t.Errorf("conditions %+v", status.Conditions)
	}
	s.Backup.Status = status
	if after := ComputeStatus(s, Plan(s), nil); !cmp.Equal(after, status) {
		t.Errorf("it changed later:\n%s", cmp.Diff(status, after))
	}
}

// While TLS is switched some instances take it at the one port and some at the other, and a backup asks both; nobody is asked for TLS
// where a cluster has none.
func TestJobAsksWhereInstancesMayListen(t *testing.T) {
	for _, tt := range []struct {
		is, wanted v1alpha1.TLSMode
		want       []string
	}{
		{v1alpha1.TLSRequired, v1alpha1.TLSRequired, []string{"--from=10.0.0.1:6379", "--from=10.0.0.1:6380"}},
		{v1alpha1.TLSRequired, v1alpha1.TLSBoth, []string{"--from=10.0.0.1:6380", "--from=10.0.0.1:6379"}},
		{v1alpha1.TLSBoth, v1alpha1.TLSRequired, []string{"--from=10.0.0.1:6380", "--from=10.0.0.1:6379"}},
		{v1alpha1.TLSBoth, v1alpha1.TLSDisabled, []string{"--from=10.0.0.1:6379"}},
		{v1alpha1.TLSDisabled, v1alpha1.TLSBoth, []string{"--from=10.0.0.1:6379"}},
	} {
		s := snapshotOf(func(s *Snapshot) {
			s.Cluster.Spec.TLS = &v1alpha1.TLS{SecretName: "certificate", Mode: tt.wanted}
			s.Cluster.Status.TLS = &v1alpha1.TLSStatus{Mode: tt.is}
		})
		got := slices.DeleteFunc(arguments(s.Backup, s.Cluster), func(arg string) bool { return !strings.HasPrefix(arg, "--from=") })
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s, on the way to %s (-want +got):\n%s", tt.is, tt.wanted, diff)
		}
	}
}

// What the object's author wrote is one argument, and one part of a URL.
func TestJobHoldsWhatTheAuthorWroteApart(t *testing.T) {
	s := snapshotOf(func(s *Snapshot) {
		s.Backup.Spec.Store.S3 = &v1alpha1.S3Store{Bucket: "backups", Region: "eu&endpoint=http://evil", Endpoint: "https://minio.store.svc:9000",
			Prefix: "a&b=c", CredentialsSecretName: "store", CASecretName: "authority"}
		s.Backup.Spec.Recipients, s.Backup.Spec.MaxBytesPerSecond = []string{"age1x"}, "50M"
		s.Cluster.Spec.TLS = &v1alpha1.TLS{SecretName: "certificate"}
	})
	made := job(s, "registry/operator:1")
	c := made.Spec.Template.Spec.Containers[0]
	want := []string{"take", "monday",
		"--store=s3://backups?endpoint=https%3A%2F%2Fminio.store.svc%3A9000&prefix=a%26b%3Dc%2Fshop%2Fcache%2F&region=eu%26endpoint%3Dhttp%3A%2F%2Fevil&use_path_style=true",
		"--cluster=shop/cache", "--request=b", "--listen=:8090", "--slots-stay", "--from=10.0.0.1:6379", "--node=n1", "--from=10.0.0.1:6380",
		"--user=operator-backup", "--password-file=/etc/backup/login/password", "--ca-file=/etc/backup/trust/ca.crt",
		"--server-name=any.cache-nodes.shop.svc", "--recipient=age1x", "--max-bytes-per-second=50000000", "--report-file=/dev/termination-log"}
	if diff := cmp.Diff(want, c.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	secrets := []string{}
	for _, volume := range made.Spec.Template.Spec.Volumes {
		if len(volume.Secret.Items) != 1 {
			t.Errorf("volume %s shows %d keys", volume.Name, len(volume.Secret.Items))
		}
		secrets = append(secrets, volume.Secret.SecretName+"/"+volume.Secret.Items[0].Key)
	}
	if diff := cmp.Diff([]string{"authority/ca.crt", "cache-auth/backup-password", "certificate/ca.crt"}, secrets); diff != "" {
		t.Errorf("Secrets (-want +got):\n%s", diff)
	}
	if *made.Spec.ActiveDeadlineSeconds != int64((v1alpha1.DefaultBackupTimeout-time.Hour)/time.Second) {
		t.Errorf("it may take %d s", *made.Spec.ActiveDeadlineSeconds)
	}
	if made.Spec.Template.Spec.ServiceAccountName != "" || *made.Spec.Template.Spec.AutomountServiceAccountToken {
		t.Error("the pod has an identity in Kubernetes")
	}
	if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Value != "" && strings.Contains(e.Value, "evil") }) {
		t.Errorf("variables %v", c.Env)
	}
}
