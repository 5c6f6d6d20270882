// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"sync"
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
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// importing reads how far an import or a clone has come, but for what the server says; nil when there is none, or all of it is over.
func (o *Observer) importing(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot) (*snapshot.Import, error) {
	is, i := cluster.Status.Import, &snapshot.Import{}
	if is != nil {
		i.Following = is.Phase == v1alpha1.ImportFollowing
		if i.CutOver = is.CutOverAt != nil; i.CutOver {
			i.CutOverAt = is.CutOverAt.Time
		}
		i.Slots = beginning(is.Slots)
	}
	if !cluster.Follows() && is == nil || s.Formed && !i.CutOver {
		return nil, nil
	}
	if i.Following && cluster.Follows() && is.Address != cluster.SourceAddress() {
		i.Other = excerpt.Of("what is at "+is.Address+" (status.import.address)", longestError)
	}
	if err := o.importShards(ctx, cluster, i); err != nil {
		return nil, err
	}
	if i.Following && !i.CutOver {
		if err := o.addresses(ctx, cluster, s, i); err != nil {
			return nil, err
		}
	}
	complete := true
	for _, of := range i.Shards {
		complete = complete && of.Relay != nil && of.Service && (of.Prepared != nil || len(s.Shards) > 0)
	}
	if !cluster.Follows() || i.CutOver || complete {
		return i, nil
	}
	return i, o.leadsToSource(ctx, cluster, i)
}

// beginning are the slots that shards begin with; nil: that is not known.
func beginning(texts []string) []slots.Set {
	sets := make([]slots.Set, len(texts))
	for i, text := range texts {
		var err error
		if sets[i], err = slots.Parse(text); err != nil {
			return nil
		}
	}
	return sets
}

// importShards reads what was made for each shard.
func (o *Observer) importShards(ctx context.Context, cluster *v1alpha1.RedisCluster, i *snapshot.Import) error {
	var list batchv1.JobList
	if err := o.Children.List(ctx, &list, ofCluster(cluster)...); err != nil {
		return fmt.Errorf("list the Jobs: %w", err)
	}
	relays, prepares := map[int]*batchv1.Job{}, map[int]*batchv1.Job{}
	ours := func(job *batchv1.Job, command string) bool { // whose it is otherwise, is told when it is made
		is := metav1.IsControlledBy(job, cluster) && backupjob.For(job.Spec.Template.Spec, string(cluster.UID), command)
		from := job.Annotations[v1alpha1.AnnotationImportedFrom]
		if is && from != "" && from != cluster.Source() && cluster.Follows() {
			i.Other = excerpt.Of("spec.bootstrap."+from, longestError)
		}
		at := backupjob.FromAddress(job.Spec.Template.Spec)
		if is && from == "" && at != "" && at != cluster.SourceAddress() && cluster.Follows() { // of an operator of before
			i.Other = excerpt.Of("what is at "+at, longestError)
		}
		return is
	}
	for n := range list.Items {
		job := &list.Items[n]
		if shard, named := cluster.RelayedBy(job.Name); named && ours(job, backupjob.Relay) {
			relays[shard] = job
		} else if shard, named := cluster.RestoredBy(job.Name); named && ours(job, backupjob.Follow) {
			prepares[shard] = job
		}
	}
	count, left := max(1, len(i.Slots)), false
	for shard := 0; shard < count; shard++ {
		of, err := o.importShard(ctx, cluster, shard, relays[shard], prepares[shard])
		if err != nil {
			return err
		}
		if shard == 0 && len(i.Slots) == 0 && of.Said != nil {
			count = of.Said.Shards
		}
		left = left || of.Relay != nil || of.Prepared != nil || of.Service
		i.Shards = append(i.Shards, of)
		delete(prepares, shard)
	}
	for _, job := range prepares {
		i.Beyond = job.Name
	}
	if i.CutOver && !left {
		i.Shards = nil // all of it is over
	}
	return nil
}

func (o *Observer) importShard(ctx context.Context, cluster *v1alpha1.RedisCluster, shard int,
	relay, prepare *batchv1.Job) (of snapshot.ImportShard, err error) {
	if relay != nil {
		if of.Relay, _, err = o.importJob(ctx, relay); err != nil {
			return of, err
		}
		if of.RelayIP, err = o.ready(ctx, relay); err != nil {
			return of, err
		}
	}
	if prepare != nil {
		if of.Prepared, of.Said, err = o.importJob(ctx, prepare); err != nil {
			return of, err
		}
		of.Told = backupjob.MasterIP(prepare.Spec.Template.Spec)
	}
	service := &metav1.PartialObjectMetadata{}
	service.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Service"))
	err = o.Children.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.RelayName(shard)}, service)
	if err != nil && !apierrors.IsNotFound(err) {
		return of, fmt.Errorf("read Service %s from the cache: %w", cluster.RelayName(shard), err)
	}
	of.Service = err == nil && metav1.IsControlledBy(service, cluster) && service.DeletionTimestamp == nil
	return of, nil
}

// addresses reads where the relays' Services are of shards that have not started, past the cache, which does not keep that, and is behind.
func (o *Observer) addresses(ctx context.Context, cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, i *snapshot.Import) error {
	for shard := range i.Shards {
		of := &i.Shards[shard]
		if !of.Service || s.Started(shard) {
			continue
		}
		service := &corev1.Service{}
		key := types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.RelayName(shard)}
		if err := o.Secrets.Get(ctx, key, service); client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("read Service %s: %w", key.Name, err)
		}
		of.Service = metav1.IsControlledBy(service, cluster) // one that is not there is nobody's
		if of.Service && service.DeletionTimestamp == nil {
			of.At = service.Spec.ClusterIP
		}
	}
	return nil
}

// importJob reads a Job of an import, and what it did; nil: not known.
func (o *Observer) importJob(ctx context.Context, found *batchv1.Job) (*snapshot.RestoreJob, *report.Following, error) {
	is := &snapshot.RestoreJob{Name: found.Name, UID: string(found.UID), Terminating: found.DeletionTimestamp != nil,
		Done: backupjob.Condition(found, batchv1.JobComplete) != nil}
	if failed := backupjob.Condition(found, batchv1.JobFailed); failed != nil {
		is.Failed, is.Message = true, failed.Message
	}
	parse := func(text string) (report.Following, bool, error) {
		said, err := report.ParseFollowing(text)
		return said, said.Error == "", err
	}
	said, err := backupjob.Said(ctx, o.Children, found, parse)
	if err == nil && is.Done && (said == nil || said.Error != "") { // the caches of Jobs and of pods are two
		said, err = backupjob.Said(ctx, o.Secrets, found, parse)
	}
	if err != nil {
		return nil, nil, err
	}
	if said != nil && said.Error != "" {
		is.Message, said = said.Error, nil
	}
	if !is.Done && !is.Failed && is.Message == "" {
		is.Message, err = backupjob.Waits(ctx, o.Children, found)
	}
	return is, said, err
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

// leadsToSource reads what leads to the server, and whether pods may be given that.
func (o *Observer) leadsToSource(ctx context.Context, cluster *v1alpha1.RedisCluster, i *snapshot.Import) (err error) {
	if o.BackupImage == "" {
		i.Withheld = "the operator does not know its own image, which imports: run it in a pod, or name the image with --backup-image"
		return nil
	}
	asked := cluster.Import()
	if asked == nil {
		return o.leadsToCluster(ctx, cluster, i)
	}
	const at = "spec.bootstrap.import"
	i.From = snapshot.ImportFrom{Address: asked.Address, User: asked.User, PasswordSecret: asked.CredentialsSecretName,
		PasswordKey: v1alpha1.SecretKeyPassword}
	needed := []access.Needed{{Field: at + ".credentialsSecretName", Name: asked.CredentialsSecretName, Label: v1alpha1.LabelRestore}}
	if asked.TLS != nil {
		i.From.TrustSecret, i.From.ServerName = asked.TLS.CASecretName, asked.TLS.ServerName
		needed = append(needed, access.Needed{Field: at + ".tls.caSecretName", Name: asked.TLS.CASecretName, Label: v1alpha1.LabelRestore})
	}
	i.Withheld, err = o.reader().Usable(ctx, cluster.Namespace, needed...)
	return err
}

// leadsToCluster reads what leads to the RedisCluster that is cloned: its backup user has the rights, and may read nothing else. Who may
// make RedisClusters may not read every other one: that its Secret bears the label says that this one may be cloned.
func (o *Observer) leadsToCluster(ctx context.Context, cluster *v1alpha1.RedisCluster, i *snapshot.Import) error {
	const at = "spec.bootstrap.clone.name"
	source := &v1alpha1.RedisCluster{}
	err := o.Clusters.Get(ctx, types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.CloneOf()}, source)
	switch {
	case apierrors.IsNotFound(err):
		i.Withheld = fmt.Sprintf("%s: there is no RedisCluster %s in this namespace", at, cluster.CloneOf())
		return nil
	case err != nil:
		return fmt.Errorf("read RedisCluster %s: %w", cluster.CloneOf(), err)
	case source.Status.TLS != nil && source.Status.TLS.Mode != source.TLSMode():
		i.Withheld = fmt.Sprintf("%s: RedisCluster %s is on its way to spec.tls.mode %s: it can be cloned when status.tls.mode says so", at,
			source.Name, source.TLSMode())
		return nil
	case source.DeletionTimestamp != nil:
		i.Withheld = fmt.Sprintf("%s: RedisCluster %s is being deleted", at, source.Name)
		return nil
	}
	i.From = snapshot.ImportFrom{Address: cluster.SourceAddress()}
	if source.TLSMode() == v1alpha1.TLSRequired {
		i.From.TrustSecret, i.From.ServerName = source.TLSTrustSecretName(), source.TLSServerName()
	}
	var needed []access.Needed
	if source.TLSMode() == v1alpha1.TLSRequired && source.ShowsCertificate() {
		i.From.ShownSecret = source.TLSSecretName()
		needed = append(needed, access.Needed{Field: at, Name: i.From.ShownSecret, Label: v1alpha1.LabelTLS})
	}
	if source.AuthEnabled() {
		i.From.User, i.From.PasswordSecret, i.From.PasswordKey = access.BackupUser, source.AuthSecretName(), access.KeyBackup
		needed = append(needed, access.Needed{Field: at, Name: source.AuthSecretName(), Label: v1alpha1.LabelClone})
	}
	i.Withheld, err = o.reader().Usable(ctx, cluster.Namespace, needed...)
	return err
}

const (
	// sourceWithin is how long a server outside may take to answer.
	sourceWithin = 2 * time.Second
	// sourcesAtOnce is how many are asked at the same time.
	sourcesAtOnce = 16
)

// askSources asks the server outside, by the relays, while a cluster follows it, and until the pause of its writes is over.
func (o *Observer) askSources(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, s *snapshot.Snapshot, timeout time.Duration) {
	i := s.Import
	if i == nil || len(s.Shards) == 0 || i.CutOver && cluster.CloneOf() != "" {
		return
	}
	var wait sync.WaitGroup
	turns := make(chan struct{}, sourcesAtOnce)
	for n := range i.Shards {
		of := &i.Shards[n]
		if of.RelayIP == "" {
			of.Error = "its Job is gone"
			if of.Relay != nil {
				of.Error = of.Relay.Message
			}
			continue
		}
		wait.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			err := contain.Call(ctx, "ask the server outside", func() (err error) {
				ctx, cancel := context.WithTimeout(ctx, max(timeout, sourceWithin))
				defer cancel()
				of.Source, err = source(ctx, o.Redis.Node(snapshot.Address(of.RelayIP), m.Credentials(cluster)))
				return err
			})
			if err != nil {
				of.Error = excerpt.Of(err.Error(), longestError)
			}
		})
	}
	wait.Wait()
}

func source(ctx context.Context, relay *redis.Node) (*snapshot.Source, error) {
	is, err := relay.Outside(ctx)
	if err != nil {
		return nil, err
	}
	return &snapshot.Source{Engine: string(is.Engine), Version: is.Version, Master: is.Role == redis.RoleMaster, History: is.At.ID,
		Offset: is.At.Offset, Others: is.Others, Slots: is.Slots, Open: is.Open, Held: is.Held}, nil
}
