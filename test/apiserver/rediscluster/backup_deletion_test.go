// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

// awaitFinalizer waits until a backup's finalizer is there, or is not.
func awaitFinalizer(t *testing.T, backup *v1alpha1.RedisBackup, there bool) {
	t.Helper()
	eventually(t, fmt.Sprintf("backup %s has its finalizer: %t", backup.Name, there), func() string {
		if get(t, backup); slices.Contains(backup.Finalizers, v1alpha1.FinalizerBackup) != there {
			return fmt.Sprintf("finalizers %v", backup.Finalizers)
		}
		return ""
	})
}

// complete has a backup taken, as Jobs and pods are.
func complete(t *testing.T, backup *v1alpha1.RedisBackup) {
	t.Helper()
	create(t, backup)
	job := awaitJob(t, backup, "")
	message, err := report.Report{Engine: "redis", Version: "7.0.15", Marked: time.Now(), Manifest: strings.Repeat("a", 64), Count: 3}.Encode()
	check(t, err)
	podOf(t, job, backup.Name+"-taker", string(message), true)
	end(t, job)
	awaitBackup(t, backup, v1alpha1.BackupCompleted, "read back")
}

// A backup that is to go from the store stays until a Job has deleted it there, also when its cluster is gone; it can be let go; and it
// does not hold up a namespace.
func TestBackupIsDeletedFromTheStore(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	newSecret := func() *corev1.Secret {
		return labelled(cluster.Namespace, "store", v1alpha1.LabelBackup,
			map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
	}
	secret := newSecret()
	create(t, secret)
	backups := map[string]*v1alpha1.RedisBackup{}
	for _, name := range []string{"monday", "tuesday", "wednesday"} {
		backups[name] = newBackup(cluster, name)
		backups[name].Spec.DeletionPolicy = v1alpha1.BackupDelete
		complete(t, backups[name])
		awaitFinalizer(t, backups[name], true)
	}
	eventually(t, "slots may move", func() string {
		if get(t, cluster); cluster.Status.HeldForBackup != "" {
			return fmt.Sprintf("they stay for %s", cluster.Status.HeldForBackup)
		}
		return ""
	})
	monday := backups["monday"]
	for _, policy := range []v1alpha1.BackupDeletionPolicy{v1alpha1.BackupRetain, v1alpha1.BackupDelete} {
		change(t, monday, func(b *v1alpha1.RedisBackup) { b.Spec.DeletionPolicy = policy })
		awaitFinalizer(t, monday, policy == v1alpha1.BackupDelete)
	}
	remove(t, cluster)
	awaitGone(t, cluster)
	remove(t, secret)
	remove(t, monday)
	awaitBackup(t, monday, v1alpha1.BackupCompleted,
		"there is no Secret store in this namespace; mend that, or set spec.deletionPolicy to Retain")
	create(t, newSecret())
	job := awaitJobOf(t, monday, monday.DeletionJobName(), "")
	restricted(t, job)
	message, err := report.Deletion{Deleted: true}.Encode()
	check(t, err)
	podOf(t, job, "forged", string(message), false)
	podOf(t, job, "own", string(message), true)
	end(t, job)
	awaitGone(t, monday)

	// In a namespace that is being deleted there is no Job any more; after a while, no Secret either.
	check(t, api.Delete(context.Background(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: cluster.Namespace}}))
	remove(t, backups["tuesday"])
	awaitGone(t, backups["tuesday"])
	remove(t, newSecret())
	remove(t, backups["wednesday"])
	awaitGone(t, backups["wednesday"])
}
