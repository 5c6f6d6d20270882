// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/excerpt"
	"middleware.hc.cn/operator/internal/pods"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// importing reads how far an import has come, but for what the server says; nil when there is none, or the cluster has formed.
func (o *Observer) importing(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) (*snapshot.Import, error) {
	asked, is := cluster.Import(), cluster.Status.Import
	if s.Formed || asked == nil && is == nil {
		return nil, nil
	}
	i := &snapshot.Import{}
	if is != nil {
		i.Following, i.CutOver = is.Phase == v1alpha1.ImportFollowing, is.CutOverAt != nil
	}
	var err error
	if i.Relay, i.RelayIP, err = o.importJob(ctx, cluster, cluster.ImportName(), backupjob.Relay); err != nil {
		return nil, err
	}
	if i.Prepared, _, err = o.importJob(ctx, cluster, cluster.RestoreJobName(0), backupjob.Follow); err != nil {
		return nil, err
	}
	if asked == nil || i.CutOver || len(s.Shards) > 0 && i.Relay != nil {
		return i, nil
	}
	if o.BackupImage == "" {
		i.Withheld = "the operator does not know its own image, which imports: run it in a pod, or name the image with --backup-image"
		return i, nil
	}
	const at = "spec.bootstrap.import"
	needed := []access.Needed{{Field: at + ".credentialsSecretName", Name: asked.CredentialsSecretName, Label: v1alpha1.LabelRestore}}
	if asked.TLS != nil {
		needed = append(needed, access.Needed{Field: at + ".tls.caSecretName", Name: asked.TLS.CASecretName, Label: v1alpha1.LabelRestore})
	}
	i.Withheld, err = o.reader().Usable(ctx, cluster.Namespace, needed...)
	return i, err
}

// importJob reads a Job of an import, and the address of a pod of it that runs and is ready.
func (o *Observer) importJob(ctx context.Context, cluster *v1alpha1.RedisCluster, name, command string) (*snapshot.RestoreJob, string,
	error) {
	found := &batchv1.Job{}
	err := o.Children.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: name}, found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, "", nil
	case err != nil:
		return nil, "", fmt.Errorf("read Job %s from the cache: %w", name, err)
	case !metav1.IsControlledBy(found, cluster) || !backupjob.For(found.Spec.Template.Spec, string(cluster.UID), command):
		return nil, "", nil // whose it is, is told when it is made
	}
	is := &snapshot.RestoreJob{Name: found.Name, UID: string(found.UID), Terminating: found.DeletionTimestamp != nil,
		Done: backupjob.Condition(found, batchv1.JobComplete) != nil}
	if failed := backupjob.Condition(found, batchv1.JobFailed); failed != nil {
		is.Failed, is.Message = true, failed.Message
	}
	said, err := backupjob.Said(ctx, o.Children, found, func(text string) (report.Following, bool, error) {
		said, err := report.ParseFollowing(text)
		return said, said.Error == "", err
	})
	if err != nil {
		return nil, "", err
	}
	if said != nil && said.Error != "" {
		is.Message = said.Error
	}
	if !is.Done && !is.Failed && is.Message == "" {
		if is.Message, err = backupjob.Waits(ctx, o.Children, found); err != nil {
			return nil, "", err
		}
	}
	ip, err := o.ready(ctx, found)
	return is, ip, err
}

// ready is the address of a pod of a Job that is ready; empty: none is.
func (o *Observer) ready(ctx context.Context, job *batchv1.Job) (string, error) {
	var list corev1.PodList
	if err := o.Children.List(ctx, &list, client.InNamespace(job.Namespace),
		client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
		return "", fmt.Errorf("list the pods of Job %s: %w", job.Name, err)
	}
	for i := range list.Items {
		pod := &list.Items[i]
		if metav1.IsControlledBy(pod, job) && backupjob.Runs(pod, job) && pods.Ready(pod) && pod.DeletionTimestamp == nil {
			return pod.Status.PodIP, nil
		}
	}
	return "", nil
}

// sourceWithin is how long a server outside may take to answer.
const sourceWithin = 2 * time.Second

// askSource asks the server outside, by the relay, while a cluster follows it.
func (o *Observer) askSource(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, s *snapshot.Snapshot, timeout time.Duration) {
	i := s.Import
	if i == nil || i.CutOver || len(s.Shards) == 0 {
		return
	}
	if i.RelayIP == "" {
		i.Error = "its Job is gone"
		if i.Relay != nil {
			i.Error = i.Relay.Message
		}
		return
	}
	err := contain.Call(ctx, "ask the server outside", func() error {
		ctx, cancel := context.WithTimeout(ctx, max(timeout, sourceWithin))
		defer cancel()
		is, err := o.Redis.Node(snapshot.Address(i.RelayIP), m.Credentials(cluster)).Outside(ctx)
		if err == nil {
			i.Source = &snapshot.Source{Engine: string(is.Engine), Version: is.Version, Master: is.Role == redis.RoleMaster, History: is.At.ID,
				Offset: is.At.Offset, Others: is.Others}
		}
		return err
	})
	if err != nil {
		i.Error = excerpt.Of(err.Error(), longestError)
	}
}
