// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package schedule

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// noTemplate says why no throw-away cluster can be made after the likeness of a RedisCluster; empty: one can.
func noTemplate(source *v1alpha1.RedisCluster) string {
	for _, pod := range source.Spec.Pod {
		if v := pod.Volumes; v != nil && (v.Type != v1alpha1.VolumePVC || v.PersistentVolumeClaimName != "") {
			return fmt.Sprintf("RedisCluster %s keeps its data in volumes of type %s, and only a cluster with claims of its own (storage) "+
				"can begin with a backup", source.Name, v.Type)
		}
	}
	return ""
}

// restoreOf is what the throw-away cluster begins with.
func restoreOf(s *v1alpha1.RedisBackupSchedule, backup *v1alpha1.RedisBackup) *v1alpha1.Restore {
	restore := &v1alpha1.Restore{RedisBackup: backup.Name, MaxBytesPerSecond: s.Spec.MaxBytesPerSecond}
	if len(backup.Spec.Recipients) > 0 {
		restore.IdentitySecretName = s.Spec.Verify.IdentitySecretName
	}
	return restore
}

// throwawayOf is the RedisCluster that a backup is restored into: like the one that was backed up, as far as the data needs that, of one
// instance a shard, with a password of its own. It goes with the schedule, and its claims go with it. What would lead others to it (labels
// of its pods, an exporter), or would be in others' way (a priority, a disruption budget), it does not have.
func throwawayOf(s *v1alpha1.RedisBackupSchedule, source *v1alpha1.RedisCluster, backup *v1alpha1.RedisBackup) *v1alpha1.RedisCluster {
	from, shards := source.Spec.DeepCopy(), backup.Status.ShardCount
	storage := v1alpha1.Storage{Size: resource.MustParse(v1alpha1.DefaultStorageSize)}
	if from.Storage != nil {
		storage = *from.Storage
	}
	storage.Retain = v1alpha1.RetainDelete
	config := map[string]string{}
	for name, value := range from.Config {
		config[name] = value
	}
	config["appendonly"] = "yes"              // data is restored as an append-only file
	config["maxmemory-policy"] = "noeviction" // what is evicted would be missed
	cluster := &v1alpha1.RedisCluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.ThrowawayName(),
			Labels:          map[string]string{v1alpha1.LabelSchedule: s.Name, v1alpha1.LabelScheduleUID: string(s.UID)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, kind)}},
		Spec: v1alpha1.RedisClusterSpec{
			Shards: &shards, Replicas: &shards, Repository: from.Repository, Version: from.Version, Modules: from.Modules,
			Storage: &storage, Config: config, NetworkPolicy: from.NetworkPolicy,
			PodDisruptionBudget: v1alpha1.Toggle{Enabled: ptr.To(false)}, Finalizers: v1alpha1.DeletionForeground,
			Bootstrap: &v1alpha1.Bootstrap{Restore: restoreOf(s, backup)},
		},
	}
	for _, pod := range from.Pod {
		cluster.Spec.Pod = append(cluster.Spec.Pod, v1alpha1.PodTemplate{
			Env: pod.Env, Resources: pod.Resources, Configmap: pod.Configmap, MiddlewareImage: pod.MiddlewareImage,
			ImagePullSecrets: pod.ImagePullSecrets, NodeSelector: pod.NodeSelector, Tolerations: pod.Tolerations, Affinity: pod.Affinity,
		})
	}
	return cluster
}
