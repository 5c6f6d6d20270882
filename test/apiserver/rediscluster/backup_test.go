// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

func newBackup(cluster *v1alpha1.RedisCluster, name string) *v1alpha1.RedisBackup {
	return &v1alpha1.RedisBackup{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: name},
		Spec: v1alpha1.RedisBackupSpec{Cluster: cluster.Name,
			Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}}},
	}
}

func awaitBackup(t *testing.T, backup *v1alpha1.RedisBackup, phase v1alpha1.BackupPhase, reason string) {
	t.Helper()
	eventually(t, fmt.Sprintf("backup %s is %s", backup.Name, phase), func() string {
		get(t, backup)
		if backup.Status.Phase != phase || !strings.Contains(backup.Status.Reason, reason) {
			return fmt.Sprintf("%s: %s", backup.Status.Phase, backup.Status.Reason)
		}
		return ""
	})
}

// awaitJob waits for a Job that takes a backup other than the former one.
func awaitJob(t *testing.T, backup *v1alpha1.RedisBackup, former types.UID) *batchv1.Job {
	t.Helper()
	return awaitJobOf(t, backup, backup.JobName(), former)
}

func awaitJobOf(t *testing.T, backup *v1alpha1.RedisBackup, name string, former types.UID) *batchv1.Job {
	t.Helper()
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: name}}
	eventually(t, "there is a Job", func() string {
		if !get(t, job) || job.UID == former {
			return "there is none"
		}
		return ""
	})
	return job
}

// podOf is a pod as a Job's controller makes it, that has said something at its end.
func podOf(t *testing.T, job *batchv1.Job, name, said string, owned bool) {
	t.Helper()
	pod := jobsPod(job, name, owned)
	create(t, pod)
	pod.Status = endedSaying(pod, said)
	pod.ResourceVersion = "" // the kubelet of these tests may have said that it runs
	check(t, api.Status().Update(context.Background(), pod))
}

func jobsPod(job *batchv1.Job, name string, owned bool) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: name, Labels: job.Spec.Template.Labels},
		Spec: *job.Spec.Template.Spec.DeepCopy()}
	if owned {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	}
	return pod
}

func endedSaying(pod *corev1.Pod, said string) corev1.PodStatus {
	return corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: said}}}}}
}

// end makes a Job complete, as its controller does.
func end(t *testing.T, job *batchv1.Job) {
	t.Helper()
	check(t, api.Status().Update(context.Background(), completed(job)))
}

func completed(job *batchv1.Job) *batchv1.Job {
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &now, &now, 1
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, condition := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue,
			LastProbeTime: now, LastTransitionTime: now})
	}
	return job
}

// A backup waits for what it needs, has slots stay while it is taken, and is complete when the Job's own pod says so, and nobody else.
func TestBackup(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	secret := labelled(cluster.Namespace, "store", "other", map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
	create(t, secret)
	backup := newBackup(cluster, "monday")
	create(t, backup)
	awaitBackup(t, backup, v1alpha1.BackupPending, "spec.store.s3.credentialsSecretName: Secret store lacks the label")
	change(t, secret, func(s *corev1.Secret) { s.Labels[v1alpha1.LabelBackup] = "true" })
	awaitBackup(t, backup, v1alpha1.BackupRunning, "")
	job := awaitJob(t, backup, "")
	restricted(t, job)
	if get(t, cluster); cluster.Status.HeldForBackup != backup.UID {
		t.Errorf("slots stay for %q, and the backup is %q", cluster.Status.HeldForBackup, backup.UID)
	}
	second := newBackup(cluster, "second")
	create(t, second)

	// Slots stay, also when they are to move, and when nobody looked meanwhile.
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Shards, c.Spec.Replicas = ptr.To[int32](4), ptr.To[int32](8) })
	eventually(t, "the plan says why slots stay", func() string {
		get(t, cluster)
		if p := cluster.Status.Plan; p == nil || p.BlockedBy != "no_backup" || !strings.Contains(p.Reason, "RedisBackup monday") {
			return fmt.Sprintf("%+v", p)
		}
		return ""
	})
	if cluster.Status.Migration != nil {
		t.Errorf("slots move: %+v", cluster.Status.Migration)
	}
	awaitBackup(t, second, v1alpha1.BackupPreparing, "another backup")

	// Whoever may make pods cannot say what became of the backup.
	message, err := report.Report{Engine: "redis", Version: "7.0.15", Marked: time.Now(), Consistent: true, Manifest: strings.Repeat("a", 64),
		Bytes: 10, Stored: 5, Count: 3}.Encode()
	check(t, err)
	podOf(t, job, "forged", string(message), false)
	end(t, job)
	again := awaitJob(t, backup, job.UID)
	if get(t, backup); backup.Ended() {
		t.Fatalf("a pod of somebody else's made it %s", backup.Status.Phase)
	}
	podOf(t, again, "own", string(message), true)
	end(t, again)
	awaitBackup(t, backup, v1alpha1.BackupCompleted, "read back")
	if backup.Status.Bytes != 10 || backup.Status.Location != "s3://backups/"+cluster.Namespace+"/cache/monday" {
		t.Errorf("the status is %+v", backup.Status)
	}

	// It is the next one's turn, and when that is gone, slots move.
	awaitBackup(t, second, v1alpha1.BackupRunning, "")
	remove(t, second)
	eventually(t, "slots move", func() string {
		if get(t, cluster); cluster.Status.HeldForBackup != "" || cluster.Status.Shards != 4 {
			return fmt.Sprintf("%d shards, slots stay for %q", cluster.Status.Shards, cluster.Status.HeldForBackup)
		}
		return ""
	})
	awaitWhole(t, cluster)
}

// restricted checks that the pod security standard of that name allows a Job's pods.
func restricted(t *testing.T, job *batchv1.Job) {
	t.Helper()
	namespace := newBareNamespace(t)
	change(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, func(n *corev1.Namespace) {
		metav1.SetMetaDataLabel(&n.ObjectMeta, "pod-security.kubernetes.io/enforce", "restricted")
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tried"}, Spec: *job.Spec.Template.Spec.DeepCopy()}
	check(t, api.Create(context.Background(), pod, client.DryRunAll))
}

// A Job of somebody else's that has the name is left alone, and said.
func TestBackupLeavesTheJobsOfOthersAlone(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	create(t, labelled(cluster.Namespace, "store", v1alpha1.LabelBackup,
		map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}))
	foreign := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "monday-backup"},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{Name: "a", Image: "b"}}}}}}
	create(t, foreign)
	backup := newBackup(cluster, "monday")
	create(t, backup)
	awaitBackup(t, backup, v1alpha1.BackupPending, "Job monday-backup exists and is not of this backup")
	before := foreign.ResourceVersion
	if !get(t, foreign) || foreign.ResourceVersion != before {
		t.Error("the Job of somebody else was changed")
	}
	if get(t, cluster); cluster.Status.HeldForBackup != "" {
		eventually(t, "slots do not stay for it", func() string {
			if get(t, cluster); cluster.Status.HeldForBackup != "" {
				return "they do"
			}
			return ""
		})
	}
	check(t, api.Delete(context.Background(), foreign, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	awaitBackup(t, backup, v1alpha1.BackupRunning, "")
	another := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"store":{"s3":{"bucket":"another"}}}}`))
	if err := api.Patch(context.Background(), backup, another); err == nil || !strings.Contains(err.Error(), "make another RedisBackup") {
		t.Errorf("the spec can be changed: %v", err)
	}
}

// A backup whose cluster is deleted is what its pod says, or fails with the reason, and leaves nothing; one that has not begun fails.
func TestBackupOfAClusterThatGoes(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	create(t, labelled(cluster.Namespace, "store", v1alpha1.LabelBackup,
		map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}))
	first, second := newBackup(cluster, "first"), newBackup(cluster, "second")
	create(t, first)
	awaitBackup(t, first, v1alpha1.BackupRunning, "")
	job := awaitJob(t, first, "")
	create(t, second)
	awaitBackup(t, second, v1alpha1.BackupPreparing, "another backup")
	remove(t, cluster)
	awaitGone(t, cluster)
	awaitBackup(t, second, v1alpha1.BackupFailed, "RedisCluster cache is being deleted")
	get(t, first)
	if first.Ended() {
		t.Errorf("it is %s while its Job runs: %s", first.Status.Phase, first.Status.Reason)
	}
	message, err := report.Report{Error: "shard 0: no instance can be followed"}.Encode()
	check(t, err)
	podOf(t, job, "taker", string(message), true)
	failed(t, job)
	awaitBackup(t, first, v1alpha1.BackupFailed, "shard 0: no instance can be followed")
	awaitFinalizer(t, first, false)
}

// failed makes a Job fail, as its controller does.
func failed(t *testing.T, job *batchv1.Job) {
	t.Helper()
	now := metav1.Now()
	job.Status.StartTime, job.Status.Failed = &now, 1
	job.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{}
	for _, condition := range []batchv1.JobConditionType{batchv1.JobFailureTarget, batchv1.JobFailed} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: condition, Status: corev1.ConditionTrue,
			Reason: batchv1.JobReasonBackoffLimitExceeded, LastProbeTime: now, LastTransitionTime: now})
	}
	check(t, api.Status().Update(context.Background(), job))
}

// takeBackup has a backup taken, as Jobs and pods are, and leaves nothing of it: slots stay meanwhile, and may move afterwards.
func takeBackup(t *testing.T, cluster *v1alpha1.RedisCluster) {
	t.Helper()
	secret := labelled(cluster.Namespace, "store", v1alpha1.LabelBackup,
		map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
	create(t, secret)
	backup := newBackup(cluster, "monday")
	create(t, backup)
	message, err := report.Report{Engine: "redis", Version: "7.0.15", Marked: time.Now(), Manifest: strings.Repeat("a", 64), Count: 3}.Encode()
	check(t, err)
	done := map[types.UID]bool{}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: backup.Namespace, Name: backup.JobName()}}
	eventually(t, "the backup is complete, and slots may move", func() string {
		if get(t, job) && !done[job.UID] && job.DeletionTimestamp == nil {
			if get(t, cluster); cluster.Status.HeldForBackup != backup.UID {
				t.Errorf("there is a Job, and slots stay for %q", cluster.Status.HeldForBackup)
			}
			podOf(t, job, "taker-"+string(job.UID)[:8], string(message), true)
			end(t, job)
			done[job.UID] = true
		}
		get(t, backup)
		get(t, cluster)
		if backup.Status.Phase != v1alpha1.BackupCompleted || len(backup.Finalizers) > 0 || cluster.Status.HeldForBackup != "" {
			return fmt.Sprintf("%s: %s; slots stay for %q", backup.Status.Phase, backup.Status.Reason, cluster.Status.HeldForBackup)
		}
		return ""
	})
	if len(done) != 1 {
		t.Errorf("%d Jobs were made", len(done))
	}
	inNamespace := client.InNamespace(backup.Namespace)
	check(t, api.DeleteAllOf(context.Background(), &corev1.Pod{}, inNamespace, client.MatchingLabels{batchv1.JobNameLabel: job.Name},
		client.GracePeriodSeconds(0)))
	check(t, api.Delete(context.Background(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	remove(t, secret)
	remove(t, backup)
}
