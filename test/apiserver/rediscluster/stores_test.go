// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
)

func newClaim(namespace, name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
}

// A claim and an identity are used once they bear the label, and a claim of instances never; the pods are of the restricted standard.
func TestBackupStores(t *testing.T) {
	t.Parallel()
	cluster, _, _ := running(t)
	claim, account := newClaim(cluster.Namespace, "backups"), &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "writer", Labels: map[string]string{}}}
	create(t, claim)
	create(t, account)
	onClaim, asWriter, onInstance := newBackup(cluster, "on-claim"), newBackup(cluster, "as-writer"), newBackup(cluster, "on-instance")
	onClaim.Spec.Store = v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: claim.Name, Prefix: "redis"}}
	asWriter.Spec.Store = v1alpha1.BackupStore{ServiceAccountName: account.Name,
		Azure: &v1alpha1.AzureStore{Container: "backups", StorageAccount: "account"}}
	onInstance.Spec.Store = v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: cluster.ClaimName(0, 0)}}
	create(t, onClaim)
	awaitBackup(t, onClaim, v1alpha1.BackupPending, "spec.store.claim.claimName: PersistentVolumeClaim backups lacks the label")
	create(t, asWriter)
	awaitBackup(t, asWriter, v1alpha1.BackupPending, "spec.store.serviceAccountName: ServiceAccount writer lacks the label")
	instances := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.ClaimName(0, 0)}}
	if !get(t, instances) {
		instances = newClaim(cluster.Namespace, instances.Name)
		create(t, instances)
	}
	change(t, instances, func(c *corev1.PersistentVolumeClaim) {
		c.Labels = map[string]string{v1alpha1.LabelBackup: "true"}
	})
	create(t, onInstance)
	awaitBackup(t, onInstance, v1alpha1.BackupPending, "holds the data of instances of RedisCluster cache: name another one")

	change(t, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{v1alpha1.LabelBackup: "true"} })
	job := awaitJob(t, onClaim, "")
	restricted(t, job)
	if pod := job.Spec.Template.Spec; pod.Volumes[0].PersistentVolumeClaim == nil || pod.ServiceAccountName != "" {
		t.Errorf("the pod is given %+v", pod.Volumes)
	}
	remove(t, onClaim)
	change(t, account, func(a *corev1.ServiceAccount) { a.Labels = map[string]string{v1alpha1.LabelBackup: "true"} })
	job = awaitJob(t, asWriter, "")
	restricted(t, job)
	pod := job.Spec.Template
	if pod.Spec.ServiceAccountName != account.Name || *pod.Spec.AutomountServiceAccountToken ||
		pod.Labels["azure.workload.identity/use"] != "true" {
		t.Errorf("the pod is %q, has a token: %t, and labels %v", pod.Spec.ServiceAccountName, *pod.Spec.AutomountServiceAccountToken, pod.Labels)
	}
	remove(t, asWriter)
	remove(t, onInstance)
}

// A cluster begins with a backup on a claim that bears the label for that, and the pods change nothing there.
func TestRestoreFromAClaim(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	cluster := newCluster(namespace, "cache")
	seen := make(chan *batchv1.Job, 1)
	k := runKubelet(t, namespace, func(k *kubelet) {
		k.restores = func(shard int, _ *report.Report) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.RestoreJobName(shard)}}
			if shard == 0 && get(t, job) && len(seen) == 0 {
				seen <- job
			}
		}
	})
	startOperator(t, namespace, k.world)
	claim := newClaim(namespace, "backups")
	claim.Labels[v1alpha1.LabelBackup] = "true" // which is another one
	create(t, claim)
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{MaxBytesPerSecond: "30M", Location: &v1alpha1.BackupLocation{
		Store:     v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: "backups"}},
		Namespace: "shop", Cluster: "cache", Name: "monday"}}}
	create(t, cluster)
	awaitStalled(t, cluster, "CannotRestore",
		"spec.bootstrap.restore.location.store.claim.claimName: PersistentVolumeClaim backups lacks the label redis.middleware.hc.cn/restore")
	change(t, claim, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{v1alpha1.LabelRestore: "true"} })
	awaitWhole(t, cluster)
	job := <-seen
	restricted(t, job)
	pod := job.Spec.Template.Spec
	for _, volume := range pod.Volumes {
		if c := volume.PersistentVolumeClaim; c != nil && c.ReadOnly != (c.ClaimName == "backups") {
			t.Errorf("claim %s is read-only: %t", c.ClaimName, c.ReadOnly)
		}
	}
	if is := cluster.Status.Restored; is == nil || is.Location != "claim://backups/shop/cache/monday" {
		t.Errorf("it began with %+v", is)
	}
}
