// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis/slots"
)

var fromStore = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{Location: &v1alpha1.BackupLocation{
	Store:     v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "store"}},
	Namespace: "shop", Cluster: "cache", Name: "monday"}}}

// restoredKey is a key of a shard of the backup.
func restoredKey(shard int) string { return keyOf(slots.All().Split(3)[shard]) }

// keyOf is the key that is restored of a shard with these slots.
func keyOf(part slots.Set) string {
	for i := 0; ; i++ {
		if key := fmt.Sprint("key", i); part.Contains(slots.KeySlot(key)) {
			return key
		}
	}
}

func storeSecret(namespace string) *corev1.Secret {
	return labelled(namespace, "store", v1alpha1.LabelRestore, map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
}

// restore stands in for the controller of Jobs and the collector of garbage, as far as shards are restored: a Job whose claim is there
// says what it has put into it, and claims and pods go with their Jobs.
func (k *kubelet) restore(ctx context.Context) error {
	var jobs batchv1.JobList
	var claims corev1.PersistentVolumeClaimList
	var pods corev1.PodList
	in := client.InNamespace(k.namespace)
	// Jobs last: one that comes between two lists is not missing.
	if err := errors.Join(api.List(ctx, &claims, in), api.List(ctx, &pods, in), api.List(ctx, &jobs, in)); err != nil {
		return err
	}
	exists := map[types.UID]bool{}
	for i := range jobs.Items {
		exists[jobs.Items[i].UID] = true
	}
	with := map[types.UID]*corev1.PersistentVolumeClaim{}
	for i := range claims.Items {
		for _, owner := range claims.Items[i].OwnerReferences {
			if owner.Kind == "Job" && !exists[owner.UID] {
				return deleteClaim(ctx, &claims.Items[i])
			}
			with[owner.UID] = &claims.Items[i]
		}
	}
	for i := range pods.Items {
		if owner := metav1.GetControllerOf(&pods.Items[i]); owner != nil && owner.Kind == "Job" && !exists[owner.UID] {
			return client.IgnoreNotFound(api.Delete(ctx, &pods.Items[i], client.GracePeriodSeconds(0)))
		}
	}
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if claim := with[job.UID]; strings.HasSuffix(job.Name, "-restore") && claim != nil && len(job.Status.Conditions) == 0 {
			if err := k.restoreShard(ctx, job, strings.TrimPrefix(claim.Name, "data-")); err != nil {
				return err
			}
		}
	}
	return nil
}

// deleteClaim deletes a claim that no pod uses, unless it has changed since it was read: it may have another owner.
func deleteClaim(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	var asRead client.Preconditions
	if claim.ResourceVersion != "" {
		asRead = client.Preconditions{UID: &claim.UID, ResourceVersion: &claim.ResourceVersion}
	}
	if err := api.Delete(ctx, claim, asRead); apierrors.IsConflict(err) {
		return nil // the next look tells
	} else if err != nil {
		return client.IgnoreNotFound(err)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	return client.IgnoreNotFound(api.Patch(ctx, claim, patch))
}

func (k *kubelet) restoreShard(ctx context.Context, job *batchv1.Job, instance string) error {
	args := job.Spec.Template.Spec.Containers[0].Args
	at := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, "--shard=") })
	shard, err := strconv.Atoi(strings.TrimPrefix(args[at], "--shard="))
	if err != nil {
		return err
	}
	parts := slots.All().Split(3)
	if files := filesOf(args); len(files) > 0 {
		parts = files
	}
	part := parts[shard]
	said := report.Report{Engine: "redis", Version: "7.0.15", Marked: time.Unix(1e9, 0), Manifest: strings.Repeat("a", 64), Count: len(parts),
		Restored: part.String()}
	if k.restores != nil {
		k.restores(shard, &said)
	}
	message, err := said.Encode()
	if err != nil {
		return err
	}
	pod := jobsPod(job, job.Name+"-"+string(job.UID)[:8], true)
	if err := api.Create(ctx, pod); err != nil {
		return client.IgnoreAlreadyExists(err)
	}
	pod.Status = endedSaying(pod, string(message))
	if err := api.Status().Update(ctx, pod); err != nil {
		return err
	}
	k.restored[instance] = restoredShard{shard, part}
	if said.Error != "" {
		return nil
	}
	return api.Status().Update(ctx, completed(job))
}

// A new cluster begins with a backup: nothing starts before all shards are restored, each master has its slots and keys, and nothing of the
// restore is left.
func TestRestore(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	var wrong report.Report
	k := runKubelet(t, namespace, func(k *kubelet) {
		k.restores = func(shard int, said *report.Report) {
			if shard == 1 && wrong.Error != "" {
				*said = wrong
			}
		}
	})
	wrong.Error = "403 Forbidden"
	startOperator(t, namespace, k.world)
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Bootstrap = fromStore
	create(t, cluster)
	awaitStalled(t, cluster, "CannotRestore", "spec.bootstrap.restore.location.store.s3.credentialsSecretName: there is no Secret store")
	create(t, storeSecret(namespace))
	awaitPhase(t, cluster, v1alpha1.PhaseCreating, "2 of 3 shards are restored; shard 1: 403 Forbidden")
	if sets := statefulSets(t, cluster); len(sets) > 0 {
		t.Errorf("before all shards are restored there are StatefulSets %v", sets)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.RestoreJobName(1)}}
	get(t, job)
	restricted(t, job)
	k.mu.Lock()
	wrong.Error = ""
	k.mu.Unlock()
	check(t, api.Delete(t.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	awaitWhole(t, cluster)
	is := cluster.Status.Restored
	if is == nil || is.Location != "s3://backups/shop/cache/monday" ||
		!slices.Equal(is.Slots, []string{"0-5460", "5461-10922", "10923-16383"}) {
		t.Errorf("it began with %+v", is)
	}
	for shard := range 3 {
		for ordinal := range 2 {
			name := fmt.Sprintf("cache-%d-%d", shard, ordinal)
			if keys := k.node(name).Keys(); keys[restoredKey(shard)] != "restored" {
				t.Errorf("%s has keys %v", name, keys)
			}
		}
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: cluster.ClaimName(shard, 0)}}
		if !get(t, claim) || slices.ContainsFunc(claim.OwnerReferences, func(o metav1.OwnerReference) bool { return o.Kind == "Job" }) {
			t.Errorf("claim %s goes with %v", claim.Name, claim.OwnerReferences)
		}
	}
	eventually(t, "no Job is left", func() string {
		var jobs batchv1.JobList
		if check(t, api.List(t.Context(), &jobs, client.InNamespace(namespace))); len(jobs.Items) > 0 {
			return jobs.Items[0].Name
		}
		return ""
	})
	other := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"bootstrap":{"restore":{"location":{"name":"tuesday"}}}}}`))
	if err := api.Patch(t.Context(), cluster, other); !apierrors.IsInvalid(err) {
		t.Errorf("the backup that the cluster began with becomes another one: %v", err)
	}
}

// Nothing is restored over a claim that was there before, and a cluster that is deleted before it began leaves no claim behind.
func TestRestoreLeavesClaimsOfOthersAlone(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := runKubelet(t, namespace, func(k *kubelet) {
		k.restores = func(shard int, said *report.Report) {
			if shard == 2 {
				*said = report.Report{Error: "no such backup"}
			}
		}
	})
	startOperator(t, namespace, k.world)
	create(t, storeSecret(namespace))
	cluster := newCluster(namespace, "cache")
	cluster.Spec.Bootstrap = fromStore
	former := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "data-cache-1-0",
		Labels: map[string]string{v1alpha1.LabelCluster: "cache", "app.kubernetes.io/managed-by": "middleware-operator"}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}}
	create(t, former)
	create(t, cluster)
	awaitStalled(t, cluster, "CannotRestore", "claims exist, and nothing is restored over, or beside, what may be in them: data-cache-1-0")
	var jobs batchv1.JobList
	if check(t, api.List(t.Context(), &jobs, client.InNamespace(namespace))); len(jobs.Items) > 0 {
		t.Errorf("there are %d Jobs", len(jobs.Items))
	}
	check(t, deleteClaim(t.Context(), former))
	awaitPhase(t, cluster, v1alpha1.PhaseCreating, "2 of 3 shards are restored; shard 2: no such backup")
	remove(t, cluster)
	eventually(t, "it is gone", func() string {
		if get(t, cluster) {
			return cluster.Status.Reason
		}
		return ""
	})
	var claims corev1.PersistentVolumeClaimList
	check(t, api.List(t.Context(), &claims, client.InNamespace(namespace)))
	for _, claim := range claims.Items {
		if len(claim.OwnerReferences) != 1 || claim.OwnerReferences[0].Kind != "Job" {
			t.Errorf("claim %s of a restore that was given up stays: %v", claim.Name, claim.OwnerReferences)
		}
	}
}

// A cluster that names a RedisBackup waits until that is complete, and restores what it says.
func TestRestoreWaitsForItsBackup(t *testing.T) {
	t.Parallel()
	namespace := newNamespace(t)
	k := startKubelet(t, namespace)
	startOperator(t, namespace, k.world)
	create(t, storeSecret(namespace))
	cluster := newCluster(namespace, "copy")
	cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Restore: &v1alpha1.Restore{RedisBackup: "monday"}}
	create(t, cluster)
	awaitStalled(t, cluster, "CannotRestore", "there is no RedisBackup monday")
	backup := newBackup(cluster, "monday")
	backup.Spec.Cluster = "gone"
	create(t, backup)
	awaitStalled(t, cluster, "CannotRestore", "RedisBackup monday is not Completed")
	count, sum := int32(4), strings.Repeat("a", 64)
	complete := func() {
		t.Helper()
		eventually(t, "the backup is said to be complete", func() string {
			get(t, backup)
			backup.Status.Phase, backup.Status.ShardCount, backup.Status.ManifestChecksum = v1alpha1.BackupCompleted, count, sum
			if err := api.Status().Update(t.Context(), backup); err != nil {
				return err.Error()
			}
			return ""
		})
	}
	complete()
	awaitStalled(t, cluster, "CannotRestore", "the backup has 4 shards, and the cluster 3")
	count = 3
	complete()
	awaitWhole(t, cluster)
	if is := cluster.Status.Restored; is == nil || is.Location != "s3://backups/"+namespace+"/gone/monday" {
		t.Errorf("it began with %+v", is)
	}
}
