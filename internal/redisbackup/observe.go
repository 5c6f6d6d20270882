// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"context"
	"errors"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

// observe does all the reading of a reconciliation. What it cannot read is an error, never an absence.
func (r *reconciler) observe(ctx context.Context, backup *v1alpha1.RedisBackup) (*Snapshot, error) {
	s := &Snapshot{Backup: backup, Now: r.now()}
	if backup.Ended() || backup.DeletionTimestamp != nil && !guarded(backup) {
		return s, nil
	}
	if backup.Spec.Store.S3 == nil { // the schema refuses it; a CRD may have been changed
		return nil, reconcile.TerminalError(errors.New("spec.store.s3: it is required"))
	}
	cluster := &v1alpha1.RedisCluster{}
	err := r.cache.Get(ctx, types.NamespacedName{Namespace: backup.Namespace, Name: backup.Spec.Cluster}, cluster)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read RedisCluster %s from the cache: %w", backup.Spec.Cluster, err)
	}
	if err == nil {
		s.Cluster = cluster
	}
	if err := r.job(ctx, s); err != nil {
		return nil, err
	}
	if s.Job != nil {
		s.Report, err = reportOf(ctx, r.children, s.Job)
		if err == nil && hasEnded(s.Job) && (s.Report == nil || s.Report.Error != "") {
			s.Report, err = reportOf(ctx, r.live, s.Job) // the caches of Jobs and of pods are two
		}
		return s, err
	}
	if guarded(backup) {
		if s.Pods, err = r.pods(ctx, backup); err != nil {
			return nil, err
		}
	}
	itsTurn := cluster.Status.HeldForBackup == backup.UID
	if s.Cluster != nil && s.Taken == "" && backup.DeletionTimestamp == nil && (!backup.Active() || itsTurn) {
		s.Withheld, err = r.withheld(ctx, backup, cluster)
	}
	return s, err
}

// job reads the Job. One that the cache does not show may have been made just now, be somebody else's, or have lost its label: the API
// server is asked where the status says that there is one, and before the backup takes its turn.
func (r *reconciler) job(ctx context.Context, s *Snapshot) error {
	found, key := &batchv1.Job{}, types.NamespacedName{Namespace: s.Backup.Namespace, Name: s.Backup.JobName()}
	err := r.children.Get(ctx, key, found)
	if apierrors.IsNotFound(err) && (s.Backup.Status.JobName != "" || !s.Backup.Active()) {
		err = r.live.Get(ctx, key, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read Job %s: %w", key.Name, err)
	case !metav1.IsControlledBy(found, s.Backup) || !takes(found.Spec.Template.Spec, s.Backup):
		s.Taken = fmt.Sprintf("Job %s exists and is not of this backup: delete it, or make a RedisBackup of another name", key.Name)
		return nil
	}
	s.Job = found
	return nil
}

// pods are those that still take the backup, by what they run: their Job may be gone, or be another one by now.
func (r *reconciler) pods(ctx context.Context, backup *v1alpha1.RedisBackup) ([]string, error) {
	var pods corev1.PodList
	err := r.live.List(ctx, &pods, client.InNamespace(backup.Namespace), client.MatchingLabels{batchv1.JobNameLabel: backup.JobName()})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s: %w", backup.JobName(), err)
	}
	var names []string
	for i := range pods.Items {
		pod := &pods.Items[i]
		over := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		if !over && takes(pod.Spec, backup) {
			names = append(names, pod.Name)
		}
	}
	return names, nil
}

// reportOf reads what the pods of a Job said at their end: that one was completed, or else what the last one failed for. A pod counts that
// the Job owns and that runs what the Job says: labels and owners are anybody's to write.
func reportOf(ctx context.Context, from client.Reader, job *batchv1.Job) (*report.Report, error) {
	var pods corev1.PodList
	err := from.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
	if err != nil {
		return nil, fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	slices.SortFunc(pods.Items, func(a, b corev1.Pod) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var last *report.Report
	for i := range pods.Items {
		pod := &pods.Items[i]
		if !metav1.IsControlledBy(pod, job) || !runs(pod, job) {
			continue
		}
		for _, c := range pod.Status.ContainerStatuses {
			if c.Name != container || c.State.Terminated == nil {
				continue
			}
			said, err := report.Parse(c.State.Terminated.Message)
			if err != nil {
				continue // it was stopped before it could say anything
			}
			if last = &said; said.Error == "" {
				return last, nil
			}
		}
	}
	return last, nil
}

// runs reports whether a pod's container of the name runs what a Job says. Admission may have added other containers, and may have given
// the image another name.
func runs(pod *corev1.Pod, job *batchv1.Job) bool {
	is, want := taking(pod.Spec), taking(job.Spec.Template.Spec)
	return is != nil && want != nil && slices.Equal(is.Command, want.Command) && slices.Equal(is.Args, want.Args) &&
		is.TerminationMessagePath == want.TerminationMessagePath
}

// takes reports whether a pod takes a backup.
func takes(pod corev1.PodSpec, backup *v1alpha1.RedisBackup) bool {
	c := taking(pod)
	return c != nil && slices.Equal(c.Command, []string{program}) && slices.Contains(c.Args, requestFlag+string(backup.UID))
}

func taking(pod corev1.PodSpec) *corev1.Container {
	for i := range pod.Containers {
		if pod.Containers[i].Name == container {
			return &pod.Containers[i]
		}
	}
	return nil
}

// withheld says why the pod may not be given what it needs. Who may write RedisBackups chooses where it connects to, and may not read
// every Secret: what is mounted was labelled by somebody who may write Secrets.
func (r *reconciler) withheld(ctx context.Context, backup *v1alpha1.RedisBackup, cluster *v1alpha1.RedisCluster) (string, error) {
	if r.image == "" {
		return "the operator does not know its own image, which takes backups: run it in a pod, or name the image with --backup-image", nil
	}
	secrets := access.Reader{Client: r.live, ServiceAccount: r.serviceAccount}
	if cluster.AuthEnabled() {
		if why, err := secrets.BackupReady(ctx, cluster); why != "" || err != nil {
			return why, err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionAccessApplied) {
			return fmt.Sprintf("not every instance of RedisCluster %s accepts the present passwords and users yet", cluster.Name), nil
		}
	}
	s3 := backup.Spec.Store.S3
	needed := []struct{ field, name, label string }{
		{"spec.store.s3.credentialsSecretName", s3.CredentialsSecretName, v1alpha1.LabelBackup},
		{"spec.store.s3.caSecretName", s3.CASecretName, v1alpha1.LabelBackup},
	}
	if cluster.Spec.TLS != nil {
		needed = append(needed, struct{ field, name, label string }{"spec.tls of RedisCluster " + cluster.Name, cluster.TLSTrustSecretName(),
			v1alpha1.LabelTLS})
	}
	for _, n := range needed {
		if n.name == "" {
			continue
		}
		secret := &metav1.PartialObjectMetadata{}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		err := r.live.Get(ctx, types.NamespacedName{Namespace: backup.Namespace, Name: n.name}, secret)
		switch {
		case apierrors.IsNotFound(err):
			return fmt.Sprintf("%s: there is no Secret %s in this namespace", n.field, n.name), nil
		case apierrors.IsForbidden(err):
			return secrets.Forbidden(backup.Namespace), nil
		case err != nil:
			return "", fmt.Errorf("read Secret %s: %w", n.name, err)
		case secret.Labels[n.label] != "true":
			return fmt.Sprintf("%s: Secret %s lacks the label %s: \"true\", which says that backups may use it", n.field, n.name, n.label), nil
		}
	}
	return "", nil
}
