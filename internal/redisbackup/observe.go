// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisbackup

import (
	"cmp"
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/outcome"
	"middleware.hc.cn/operator/internal/rediscluster/access"
)

// observe does all the reading of a reconciliation. What it cannot read is an error, never an absence.
func (r *reconciler) observe(ctx context.Context, backup *v1alpha1.RedisBackup) (*Snapshot, error) {
	s := &Snapshot{Backup: backup, Now: r.now(), DeletionMade: r.memory.Get(backup.UID).erased}
	deleted := backup.DeletionTimestamp != nil
	erased := deleted && guarded(backup) && backup.Deletes()
	if backup.Ended() && !erased || deleted && !guarded(backup) {
		return s, nil
	}
	if refused := admission.CheckStore(backup.Spec.Store, field.NewPath("spec", "store")); len(refused) > 0 { // as the schema does
		return nil, reconcile.TerminalError(refused.ToAggregate())
	}
	if erased {
		return s, r.erased(ctx, s)
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
		if s.Report, err = backupjob.ReportOf(ctx, r.children, r.live, s.Job); err == nil && !backupjob.Ended(s.Job) {
			s.Waits, err = backupjob.Waits(ctx, r.children, s.Job)
		}
		if err == nil && !backupjob.Ended(s.Job) {
			s.Heard, err = r.hear(ctx, s)
		}
		if err == nil && s.Cluster == nil && backupjob.Ended(s.Job) {
			s.Cluster, err = r.unselected(ctx, backup)
		}
		return s, err
	}
	if guarded(backup) {
		if s.Pods, err = r.pods(ctx, backup); err != nil {
			return nil, err
		}
	}
	itsTurn := cluster.Status.HeldForBackup == backup.UID
	if s.Cluster != nil && s.Taken == "" && !deleted && (!backup.Active() || itsTurn) {
		s.Withheld, err = r.withheld(ctx, backup, cluster)
	}
	return s, err
}

// unselected is the RedisCluster of a backup that no cache shows: it may have come to another operator while the backup was taken, of which
// that one did not know. nil: there is none. The operator may list them, and not get one.
func (r *reconciler) unselected(ctx context.Context, backup *v1alpha1.RedisBackup) (*v1alpha1.RedisCluster, error) {
	var list v1alpha1.RedisClusterList
	if err := r.live.List(ctx, &list, client.InNamespace(backup.Namespace)); err != nil {
		return nil, fmt.Errorf("list the RedisClusters: %w", err)
	}
	for i := range list.Items {
		if c := &list.Items[i]; c.Name == backup.Spec.Cluster {
			return c, nil
		}
	}
	return nil, nil
}

// hear asks the pod that takes the backup how far it is.
func (r *reconciler) hear(ctx context.Context, s *Snapshot) (*report.Heard, error) {
	pod, err := backupjob.Running(ctx, r.children, s.Job)
	if err != nil {
		return nil, err
	}
	listener := r.memory.Get(s.Backup.UID).taking
	heard := listener.Hear(ctx, r.ask, pod, string(s.Backup.UID), s.Now)
	r.memory.Update(s.Backup.UID, func(m *remembered) { m.taking = listener })
	return heard, nil
}

// job reads the Job. One that the cache does not show may have been made just now, be somebody else's, or have lost its label: the API
// server is asked where the status says that there is one, and before the backup takes its turn.
func (r *reconciler) job(ctx context.Context, s *Snapshot) error {
	past := s.Backup.Status.JobName != "" || !s.Backup.Active() || s.Backup.DeletionTimestamp != nil
	found, foreign, err := r.own(ctx, s.Backup, s.Backup.JobName(), backupjob.Take, past)
	if foreign {
		s.Taken = fmt.Sprintf("Job %s exists and is not of this backup: delete it, or make a RedisBackup of another name", s.Backup.JobName())
	}
	s.Job = found
	return err
}

// erased reads what a deletion from the store has to know: of the pods that wrote there, and of the Job that deletes. The RedisCluster is
// not looked at.
func (r *reconciler) erased(ctx context.Context, s *Snapshot) (err error) {
	if s.Job, _, err = r.own(ctx, s.Backup, s.Backup.JobName(), backupjob.Take, true); err != nil {
		return err
	}
	if s.Pods, err = r.pods(ctx, s.Backup); err != nil || !s.Backup.Ended() {
		return err
	}
	name, foreign := s.Backup.DeletionJobName(), false
	if s.Deletion, foreign, err = r.own(ctx, s.Backup, name, backupjob.Delete, true); err != nil {
		return err
	}
	switch {
	case foreign:
		s.Taken = fmt.Sprintf("Job %s exists and is not of this backup: delete it, or set spec.deletionPolicy to Retain", name)
	case s.Deletion == nil:
		if s.Withheld, err = r.storeWithheld(ctx, s.Backup); s.Withheld != "" {
			s.NamespaceGoes = r.namespaceGoes(ctx, s.Backup)
		}
	default:
		if s.Deleted, err = backupjob.Said(ctx, r.live, s.Deletion, parseDeletion); err == nil && !backupjob.Ended(s.Deletion) {
			s.Waits, err = backupjob.Waits(ctx, r.children, s.Deletion)
		}
	}
	return err
}

// namespaceGoes asks, by a Job that is not made, whether one could be. In a namespace that is being deleted the Secret is gone, too, and
// nobody will bring it back.
func (r *reconciler) namespaceGoes(ctx context.Context, backup *v1alpha1.RedisBackup) bool {
	return outcome.NamespaceGoing(r.live.Create(ctx, r.fit(deletionJob(backup, cmp.Or(r.image, backupjob.Container))), client.DryRunAll))
}

// own reads a Job of the backup that runs a command. foreign: the one that has the name is none. past: if the cache does not show one,
// the API server is asked.
func (r *reconciler) own(
	ctx context.Context, backup *v1alpha1.RedisBackup, name, command string, past bool,
) (_ *batchv1.Job, foreign bool, _ error) {
	found, key := &batchv1.Job{}, types.NamespacedName{Namespace: backup.Namespace, Name: name}
	err := r.children.Get(ctx, key, found)
	if apierrors.IsNotFound(err) && past {
		err = r.live.Get(ctx, key, found)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, false, nil
	case err != nil:
		return nil, false, fmt.Errorf("read Job %s: %w", name, err)
	case !metav1.IsControlledBy(found, backup) || !backupjob.For(found.Spec.Template.Spec, string(backup.UID), command):
		return nil, true, nil
	}
	return found, false, nil
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
		if !over && backupjob.For(pod.Spec, string(backup.UID), backupjob.Take) {
			names = append(names, pod.Name)
		}
	}
	return names, nil
}

// parseDeletion reads a message. final: it counts, whatever others say.
func parseDeletion(text string) (said report.Deletion, final bool, err error) {
	said, err = report.ParseDeletion(text)
	return said, said.Deleted || said.Another, err
}

// withheld says why the pod may not be given what it needs. Who may write RedisBackups chooses where it connects to, and may not read
// every Secret: what is mounted was labelled by somebody who may write Secrets.
func (r *reconciler) withheld(ctx context.Context, backup *v1alpha1.RedisBackup, cluster *v1alpha1.RedisCluster) (string, error) {
	secrets := access.Reader{Client: r.live, ServiceAccount: r.serviceAccount}
	if cluster.AuthEnabled() {
		if why, err := secrets.BackupReady(ctx, cluster); why != "" || err != nil {
			return why, err
		}
		if !meta.IsStatusConditionTrue(cluster.Status.Conditions, v1alpha1.ConditionAccessApplied) {
			return fmt.Sprintf("not every instance of RedisCluster %s accepts the present passwords and users yet", cluster.Name), nil
		}
	}
	if why, err := r.storeWithheld(ctx, backup); why != "" || err != nil {
		return why, err
	}
	if _, secured := cluster.ClientTLS(); !secured {
		return "", nil
	}
	return secrets.Usable(ctx, backup.Namespace, backupjob.NeedsOfTLS(cluster, "spec.tls of RedisCluster "+cluster.Name)...)
}

// storeWithheld says why a pod may not be given what it needs for the store.
func (r *reconciler) storeWithheld(ctx context.Context, backup *v1alpha1.RedisBackup) (string, error) {
	if r.image == "" {
		return "the operator does not know its own image, which takes backups: run it in a pod, or name the image with --backup-image", nil
	}
	if refused := admission.CheckRate(backup.Spec.MaxBytesPerSecond, field.NewPath("spec", "maxBytesPerSecond")); len(refused) > 0 {
		return refused.ToAggregate().Error(), nil
	}
	return access.Reader{Client: r.live, ServiceAccount: r.serviceAccount}.Usable(ctx, backup.Namespace,
		backupjob.Needs(backup.Spec.Store, "spec.store", v1alpha1.LabelBackup)...)
}
