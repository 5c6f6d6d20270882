// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/test/live"
)

// claimStore is a store on a claim whose volume every node of the local cluster can mount, one at a time as far as its access mode says,
// and the directory that it is in.
func claimStore(t *testing.T, namespace string) (v1alpha1.BackupStore, string) {
	t.Helper()
	const class = "by-hand"
	dir, name := t.TempDir(), metav1.ObjectMeta{Namespace: namespace, Name: "tape",
		Labels: map[string]string{v1alpha1.LabelBackup: "true", v1alpha1.LabelRestore: "true"}}
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: namespace + "-tape"}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain, StorageClassName: class,
		ClaimRef:               &corev1.ObjectReference{Namespace: namespace, Name: name.Name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: dir}},
		NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpExists}}}}}}}}
	live.Create(t, volume)
	t.Cleanup(func() { _ = live.Kube.Delete(context.Background(), volume) }) // it goes after the namespace's claim
	live.Create(t, &corev1.PersistentVolumeClaim{ObjectMeta: name, Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes,
		VolumeName: volume.Name, StorageClassName: ptr.To(class), Resources: corev1.VolumeResourceRequirements{Requests: size}}})
	return v1alpha1.BackupStore{Claim: &v1alpha1.ClaimStore{ClaimName: name.Name, Prefix: "a/b"}}, dir
}

// onAClaim has the archive of a cluster written to a claim and, while that is, a backup taken to it, and a cluster begin with a moment of
// the archive: all pods that have the claim come to one node. Of the backup nothing is left when it is deleted, and the claim stays.
func onAClaim(t *testing.T, cluster *v1alpha1.RedisCluster, keys int) v1alpha1.BackupStore {
	t.Helper()
	in, dir := claimStore(t, cluster.Namespace)
	node := ""
	again := archivedAndRestored(t, cluster, in, "again", keys, func() {
		node = nodeOfPod(t, cluster.Namespace, client.MatchingLabels{v1alpha1.LabelArchive: cluster.Name})
		backup := &v1alpha1.RedisBackup{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: "tuesday"},
			Spec: v1alpha1.RedisBackupSpec{Cluster: cluster.Name, Store: in, DeletionPolicy: v1alpha1.BackupDelete}}
		live.Create(t, backup)
		completed(t, backup)
		if at := nodeOfPod(t, cluster.Namespace, client.MatchingLabels{batchv1.JobNameLabel: backup.JobName()}); at != node {
			t.Errorf("the backup was taken on %s, and the archive has the claim on %s", at, node)
		}
		goes(t, backup)
	})
	for pod, at := range nodesOf(t, again) { // its data is in a folder of the node that the Job of its shard ran on
		if at != node {
			t.Errorf("the shard of %s was restored on %s, and the archive had the claim on %s", pod, at, node)
		}
	}
	left, err := os.ReadDir(filepath.Join(dir, "a", "b", cluster.Namespace, cluster.Name))
	if err != nil || len(left) != 1 || left[0].Name() != cluster.Status.Archive.Name {
		t.Errorf("beside the archive there is %v (%v)", left, err)
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: in.Claim.ClaimName}}
	if err := live.Get(t, claim); err != nil || claim.Status.Phase != corev1.ClaimBound || claim.DeletionTimestamp != nil ||
		len(claim.OwnerReferences) > 0 {
		t.Errorf("the claim is %+v (%v)", claim, err)
	}
	return in
}

// nodeOfPod is the node of the one pod with labels.
func nodeOfPod(t *testing.T, namespace string, labels client.MatchingLabels) string {
	t.Helper()
	var pods corev1.PodList
	if err := live.Kube.List(t.Context(), &pods, client.InNamespace(namespace), labels); err != nil || len(pods.Items) != 1 {
		t.Fatalf("there are %d pods with %v (%v)", len(pods.Items), labels, err)
	}
	return pods.Items[0].Spec.NodeName
}

// completed waits until a backup is complete.
func completed(t *testing.T, backup *v1alpha1.RedisBackup) {
	t.Helper()
	live.Eventually(t, "the backup is complete", func() error {
		if err := live.Get(t, backup); err != nil || backup.Ended() {
			return err
		}
		return fmt.Errorf("%s: %s", backup.Status.Phase, backup.Status.Reason)
	})
	s := backup.Status
	t.Logf("%s: %d bytes, %d stored, writes delayed for %d ms", s.Location, s.Bytes, s.StoredBytes, s.PausedMilliseconds)
	if s.Phase != v1alpha1.BackupCompleted || s.Consistent == nil || !*s.Consistent || s.ShardCount != 3 {
		t.Fatalf("the backup is %+v", s)
	}
}

// goes deletes a backup, and waits until it is gone.
func goes(t *testing.T, backup *v1alpha1.RedisBackup) {
	t.Helper()
	if err := live.Kube.Delete(t.Context(), backup); err != nil {
		t.Fatal(err)
	}
	live.Eventually(t, "the backup is gone", func() error {
		if err := gone(t, backup); err != nil {
			return fmt.Errorf("%w: %s: %s", err, backup.Status.Phase, backup.Status.Reason)
		}
		return nil
	})
}
