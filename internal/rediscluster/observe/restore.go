// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	admission "middleware.hc.cn/operator/internal/admission/rediscluster"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// restore reads how far restoring a new cluster has come; nil when it begins with nothing, or has formed. held is how long pods kept the
// operator waiting.
func (o *Observer) restore(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, m *Memory) (_ *snapshot.Restore,
	held time.Duration, _ error) {
	if s.Formed {
		m.restoring = nil
		return nil, 0, nil
	}
	r := &snapshot.Restore{Jobs: map[int]snapshot.RestoreJob{}}
	running, err := o.restoreJobs(ctx, cluster, r)
	if err != nil {
		return nil, 0, err
	}
	began := o.now()
	o.hear(ctx, cluster, r, running, m)
	held = o.now().Sub(began)
	r, err = o.toRestore(ctx, cluster, s, r)
	return r, held, err
}

// hear asks the pods that restore shards how far they are, all at once.
func (o *Observer) hear(ctx context.Context, cluster *v1alpha1.RedisCluster, r *snapshot.Restore, running map[int]*corev1.Pod, m *Memory) {
	former := m.restoring
	m.restoring = map[types.UID]*backupjob.Listener{}
	var wait sync.WaitGroup
	heard, now := make(map[int]*report.Heard, len(running)), o.now()
	var mu sync.Mutex
	for shard, pod := range running {
		uid := types.UID(r.Jobs[shard].UID)
		l := former[uid]
		if l == nil {
			l = &backupjob.Listener{}
		}
		m.restoring[uid] = l
		wait.Go(func() {
			said := l.Hear(ctx, o.Ask, pod, string(cluster.UID), now)
			mu.Lock()
			defer mu.Unlock()
			heard[shard] = said
		})
	}
	wait.Wait()
	for shard, said := range heard {
		job := r.Jobs[shard]
		job.Heard = said
		r.Jobs[shard] = job
	}
}

// toRestore reads what a restore that has not come to its end needs, and why it cannot begin; nil when there is none.
func (o *Observer) toRestore(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot,
	r *snapshot.Restore) (*snapshot.Restore, error) {
	asked := cluster.Restore()
	switch {
	case asked == nil && len(r.Jobs) == 0:
		return nil, nil
	case asked == nil || s.Restored != nil || len(s.Shards) > 0:
		return r, nil
	}
	var err error
	if r.From, r.Withheld, err = o.backupToRestore(ctx, cluster, asked); err != nil || r.Withheld != "" {
		return r, err
	}
	if o.BackupImage == "" {
		r.Withheld = "the operator does not know its own image, which restores backups: run it in a pod, or name the image with --backup-image"
		return r, nil
	}
	at := "spec.bootstrap.restore"
	from := at + ".location.store"
	if asked.Files != nil {
		from = at + ".files.store"
	}
	if asked.RedisBackup != "" {
		from = fmt.Sprintf("RedisBackup %s, spec.store", asked.RedisBackup)
	}
	needed := append(backupjob.Needs(r.From.Store, from, v1alpha1.LabelRestore),
		access.Needed{Field: at + ".identitySecretName", Name: asked.IdentitySecretName, Label: v1alpha1.LabelRestore})
	r.Withheld, err = o.reader().Usable(ctx, cluster.Namespace, needed...)
	return r, err
}

// backupToRestore is where the backup lies that is asked for, or why that is not known.
func (o *Observer) backupToRestore(ctx context.Context, cluster *v1alpha1.RedisCluster,
	asked *v1alpha1.Restore) (from v1alpha1.BackupLocation, withheld string, err error) {
	const at = "spec.bootstrap.restore.redisBackup"
	name := asked.RedisBackup
	switch {
	case asked.Files != nil:
		refused := admission.CheckFiles(asked, field.NewPath("spec", "bootstrap", "restore"))
		if len(refused) > 0 {
			return from, refused.ToAggregate().Error(), nil
		}
		return asked.Files.Location(), "", nil
	case asked.Location != nil:
		from = *asked.Location
		if refused := admission.CheckStore(from.Store, field.NewPath("spec", "bootstrap", "restore", "location", "store")); len(refused) > 0 {
			return from, refused.ToAggregate().Error(), nil
		}
		if from.Moment != nil {
			from.Moment = from.Moment.Before(cluster.CreationTimestamp)
		}
		return from, "", nil
	case o.Backups == nil:
		return from, at + ": RedisBackups are not served here: install their CRD, or set location instead", nil
	}
	var backup v1alpha1.RedisBackup
	err = o.Backups.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, &backup)
	switch {
	case apierrors.IsNotFound(err):
		return from, fmt.Sprintf("%s: there is no RedisBackup %s in this namespace: make it, or make the RedisCluster anew with location", at, name), nil
	case err != nil:
		return from, "", fmt.Errorf("read RedisBackup %s from the cache: %w", name, err)
	case backup.Status.Phase != v1alpha1.BackupCompleted:
		return from, fmt.Sprintf("%s: RedisBackup %s is not Completed: %s", at, name, backup.Status.Reason), nil
	case backup.DeletionTimestamp != nil:
		return from, fmt.Sprintf("%s: RedisBackup %s is being deleted", at, name), nil
	}
	if refused := admission.CheckStore(backup.Spec.Store, field.NewPath("spec", "store")); len(refused) > 0 {
		return from, fmt.Sprintf("%s: RedisBackup %s, %s", at, name, refused.ToAggregate()), nil
	}
	if is, want := backup.Status.ShardCount, cluster.Spec.ShardCount(); is != want {
		return from, fmt.Sprintf("spec.shards: the backup has %d shards, and the cluster %d: make a RedisCluster of %d shards, and scale that",
			is, want, is), nil
	}
	return backup.Location(), "", nil
}

// restoreJobs reads the Jobs that restore shards, by their names and their owner, and the pods of theirs that run.
func (o *Observer) restoreJobs(ctx context.Context, cluster *v1alpha1.RedisCluster, r *snapshot.Restore) (map[int]*corev1.Pod, error) {
	running := map[int]*corev1.Pod{}
	var list batchv1.JobList
	if err := o.Children.List(ctx, &list, ofCluster(cluster)...); err != nil {
		return nil, fmt.Errorf("list the Jobs: %w", err)
	}
	for i := range list.Items {
		found := &list.Items[i]
		shard, named := cluster.RestoredBy(found.Name)
		if !named || !metav1.IsControlledBy(found, cluster) || !backupjob.For(found.Spec.Template.Spec, string(cluster.UID), backupjob.Restore) {
			continue // whose it is, is told when it is made
		}
		said, err := backupjob.ReportOf(ctx, o.Children, o.Secrets, found)
		if err != nil {
			return nil, err
		}
		is := snapshot.RestoreJob{Name: found.Name, UID: string(found.UID), Terminating: found.DeletionTimestamp != nil,
			Done: backupjob.Condition(found, batchv1.JobComplete) != nil, From: found.Annotations[v1alpha1.AnnotationRestoredFrom]}
		if failed := backupjob.Condition(found, batchv1.JobFailed); failed != nil {
			is.Failed, is.Message = true, failed.Message
		}
		switch {
		case said != nil && said.Error != "":
			is.Message = said.Error
		case said != nil:
			is.Report = said
		}
		if !is.Done && !is.Failed {
			waits, err := backupjob.Waits(ctx, o.Children, found)
			if err != nil {
				return nil, err
			}
			is.Message = strings.Trim(is.Message+"; "+waits, "; ")
			pod, err := backupjob.Running(ctx, o.Children, found)
			if err != nil {
				return nil, err
			}
			if pod != nil {
				running[shard] = pod
			}
		}
		r.Jobs[shard] = is
	}
	return running, nil
}
