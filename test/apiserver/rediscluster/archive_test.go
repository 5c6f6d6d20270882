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

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

func archived(c *v1alpha1.RedisCluster) {
	c.Spec.Backup = &v1alpha1.ClusterBackup{Archive: &v1alpha1.Archive{},
		Store: v1alpha1.BackupStore{S3: &v1alpha1.S3Store{Bucket: "backups", CredentialsSecretName: "archive"}}}
}

func archiveSecret(namespace string) *corev1.Secret {
	return labelled(namespace, "archive", v1alpha1.LabelBackup, map[string]string{"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"})
}

// archiveWriter stands in for the controllers of Deployments: the pod that they would make, ready.
func archiveWriter(t *testing.T, d *appsv1.Deployment) *corev1.Pod {
	t.Helper()
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: d.Name + "-5d4"}}
	if !get(t, set) {
		set.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID,
			Controller: ptr.To(true)}}
		set.Spec = appsv1.ReplicaSetSpec{Selector: d.Spec.Selector, Template: d.Spec.Template}
		create(t, set)
	}
	return deployedPod(t, d, set)
}

// deployedPod is a ready pod of a Deployment's template that says that it is a ReplicaSet's.
func deployedPod(t *testing.T, d *appsv1.Deployment, set *appsv1.ReplicaSet) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: d.Namespace, Name: set.Name + "-x", Labels: d.Spec.Template.Labels,
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set.Name, UID: set.UID,
			Controller: ptr.To(true)}}}, Spec: d.Spec.Template.Spec}
	create(t, pod)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.1.250.250",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	check(t, api.Status().Update(context.Background(), pod))
	return pod
}

// awaitArchiving waits for the condition Archiving; an empty reason means that there is to be none.
func awaitArchiving(t *testing.T, cluster *v1alpha1.RedisCluster, reason, message string) {
	t.Helper()
	eventually(t, "Archiving is "+reason, func() string {
		get(t, cluster)
		c := meta.FindStatusCondition(cluster.Status.Conditions, v1alpha1.ConditionArchiving)
		if c == nil && reason == "" || c != nil && c.Reason == reason && strings.Contains(c.Message, message) {
			return ""
		}
		return fmt.Sprintf("%+v", c)
	})
}

// The archive of a running cluster is asked for, written, put back and given up; no instance restarts for it, and only a Secret that says
// so is given to its pod.
func TestArchiveIsWritten(t *testing.T) {
	t.Parallel()
	cluster, op, _ := running(t)
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name + "-archive"}}
	secret := archiveSecret(cluster.Namespace)
	secret.Labels = nil
	create(t, secret)
	since := len(op.asked())
	change(t, cluster, archived)
	awaitArchiving(t, cluster, v1alpha1.ReasonArchiveWithheld, "lacks the label "+v1alpha1.LabelBackup)
	if get(t, d) {
		t.Fatal("the Deployment is made, and its Secret does not say that it may be used")
	}
	remove(t, secret)
	create(t, archiveSecret(cluster.Namespace))
	change(t, cluster, func(c *v1alpha1.RedisCluster) {
		c.Spec.Backup.Archive.Keep = &metav1.Duration{Duration: 48 * time.Hour}
	})
	awaitArchiving(t, cluster, v1alpha1.ReasonArchiveNotRunning, "no pod")
	if !get(t, d) || !metav1.IsControlledBy(d, cluster) || !slices.Contains(d.Spec.Template.Spec.Containers[0].Args, "--keep=48h0m0s") ||
		d.Spec.Template.Spec.Containers[0].Image != operatorImage {
		t.Errorf("the Deployment is %+v", d)
	}
	if a := cluster.Status.Archive; a == nil || a.Name != cluster.ArchiveLocation().Name || !strings.HasSuffix(a.Location, "/"+a.Name) {
		t.Errorf("status.archive is %+v", a)
	}
	pod := archiveWriter(t, d)
	awaitArchiving(t, cluster, v1alpha1.ReasonArchiveWithin, "")
	eventually(t, "it is told", func() string {
		if events := said(t, cluster); events["Normal ArchiveWithinObjective"] == 0 || events["Warning ArchiveWithheld"] == 0 {
			return fmt.Sprint(events)
		}
		return ""
	})
	d.Spec.Replicas = ptr.To[int32](0)
	check(t, api.Update(context.Background(), d))
	eventually(t, "the Deployment is put back", func() string {
		if get(t, d); *d.Spec.Replicas != 1 {
			return "it is not"
		}
		return ""
	})
	remove(t, pod)
	awaitArchiving(t, cluster, v1alpha1.ReasonArchiveNotRunning, "no pod")
	change(t, cluster, func(c *v1alpha1.RedisCluster) { c.Spec.Backup = nil })
	awaitArchiving(t, cluster, "", "")
	eventually(t, "the Deployment goes", func() string {
		if get(t, d) {
			return "it is there"
		}
		return ""
	})
	if cluster.Status.Archive != nil {
		t.Errorf("status.archive is %+v", cluster.Status.Archive)
	}
	for _, name := range op.written(since) {
		if !strings.HasPrefix(name, "deployments/") && !strings.HasPrefix(name, "events") {
			t.Errorf("%s was written for the archive", name)
		}
	}
}
