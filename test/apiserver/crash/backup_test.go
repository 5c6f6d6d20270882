// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redisbackup"
	"middleware.hc.cn/operator/test/apiserver/environment"
)

// beingTaken means with a Job, backedUp without the finalizer unless it is to go from the store.
const beingTaken, backedUp = "Completed=False", "Completed=True"

// backupFlows: a backup, and one whose pod is gone when the Job has ended, so that the Job is made again.
var backupFlows = []flow{
	{name: "RedisBackup", add: addBackup, object: newBackup("monday"), before: hold, last: backedUp},
	{name: "RedisBackup, its pod is lost", add: addBackup, object: newBackup(lost), before: hold, last: backedUp},
	{name: "RedisBackup, delete from the store", add: addBackup, object: newBackup(deleted), before: hold, first: "Completed=True",
		change: remove(metav1.DeletePropagationBackground)},
	{name: "RedisBackup, delete from the store while it is taken", add: addBackup, object: newBackup(slowDeleted), before: hold,
		first: beingTaken, change: remove(metav1.DeletePropagationBackground)},
	{name: "RedisBackup, delete", add: addBackup, object: newBackup(slow), before: hold, first: beingTaken,
		change: remove(metav1.DeletePropagationBackground)},
}

// lost is the name of a backup whose first pod is lost, slow that of one whose Job does not end; the other two go from the store.
const lost, slow, deleted, slowDeleted = "lost", "slow", "deleted", "slow-deleted"

func addBackup(mgr ctrl.Manager, children cache.Cache, _ []string, now func() time.Time) error {
	return redisbackup.Add(mgr, children, redisbackup.Options{Image: "operator:1", Now: now})
}

func newBackup(name string) func([]string) *unstructured.Unstructured {
	return func([]string) *unstructured.Unstructured {
		object := environment.Object(v1alpha1.GroupVersion.WithKind("RedisBackup"), "", name)
		spec := map[string]any{"cluster": "cache",
			"store": map[string]any{"s3": map[string]any{"bucket": "backups", "credentialsSecretName": "store"}}}
		if name == deleted || name == slowDeleted {
			spec["deletionPolicy"] = "Delete"
		}
		object.Object["spec"] = spec
		return object
	}
}

// hold stands in for the RedisCluster's reconciler, which has slots stay for the backup.
func hold(t *testing.T, backup *unstructured.Unstructured) {
	t.Helper()
	check(t, api.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: backup.GetNamespace(), Name: "store",
		Labels: map[string]string{v1alpha1.LabelBackup: "true"}}}))
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: backup.GetNamespace(), Name: "cache"},
		Spec: v1alpha1.RedisClusterSpec{Auth: v1alpha1.Auth{Enabled: ptr.To(false)}}}
	check(t, api.Create(t.Context(), cluster))
	cluster.Status = v1alpha1.RedisClusterStatus{HeldForBackup: backup.GetUID(), Shards: 3,
		Nodes: []v1alpha1.NodeStatus{{Name: "cache-0-0", Instance: "10.0.0.1:6379", Status: metav1.ConditionTrue}}}
	check(t, api.Status().Update(t.Context(), cluster))
}

// mute are the Jobs whose pods are lost, by namespace: the first of each backup of that name.
var mute sync.Map

// runPod is what the kubelet does for a Job that takes a backup, or deletes it.
func runPod(ctx context.Context, job *batchv1.Job) error {
	if job.Name == lost+"-backup" {
		if first, _ := mute.LoadOrStore(job.Namespace, job.UID); first == job.UID {
			return nil
		}
	}
	said, err := report.Report{Engine: "redis", Version: "8.0.6", Marked: time.Now(), Manifest: strings.Repeat("a", 64), Count: 3}.Encode()
	if strings.HasSuffix(job.Name, "-delete") {
		said, err = report.Deletion{Deleted: true}.Encode()
	}
	if err != nil {
		return err
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-" + string(job.UID)[:8],
		Labels:          job.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: *job.Spec.Template.Spec.DeepCopy()}
	if err := api.Create(ctx, pod); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	}
	pod.Status.Phase = corev1.PodSucceeded
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(said)}}}}
	return api.Status().Update(ctx, pod)
}
