// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// backup is the one that slots stay for: the one that they stayed for so far, or else the oldest.
func (o *Observer) backup(ctx context.Context, cluster *v1alpha1.RedisCluster) (snapshot.Backup, error) {
	if o.Backups == nil {
		return snapshot.Backup{}, nil
	}
	var list v1alpha1.RedisBackupList
	if err := o.Backups.List(ctx, &list, client.InNamespace(cluster.Namespace)); err != nil {
		return snapshot.Backup{}, fmt.Errorf("list the RedisBackups: %w", err)
	}
	active := slices.DeleteFunc(list.Items, func(b v1alpha1.RedisBackup) bool { return b.Spec.Cluster != cluster.Name || !b.Active() })
	if len(active) == 0 {
		return snapshot.Backup{}, nil
	}
	next := slices.MinFunc(active, func(a, b v1alpha1.RedisBackup) int {
		if a.UID == cluster.Status.HeldForBackup {
			return -1
		}
		if b.UID == cluster.Status.HeldForBackup {
			return 1
		}
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return snapshot.Backup{Name: next.Name, UID: string(next.UID)}, nil
}
