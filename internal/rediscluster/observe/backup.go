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

// backup is the one that slots stay for: the one that they stayed for so far, or else one that runs, or else the oldest. That the former
// one is gone is asked of the API server: a cache may be of before.
func (o *Observer) backup(ctx context.Context, cluster *v1alpha1.RedisCluster) (snapshot.Backup, error) {
	if o.Backups == nil {
		return snapshot.Backup{}, nil
	}
	held := cluster.Status.HeldForBackup
	active, err := activeBackups(ctx, o.Backups, cluster)
	if err == nil && held != "" && !slices.ContainsFunc(active, func(b v1alpha1.RedisBackup) bool { return b.UID == held }) {
		active, err = activeBackups(ctx, o.Secrets, cluster)
	}
	if err != nil || len(active) == 0 {
		return snapshot.Backup{}, err
	}
	first := func(is, other bool) int {
		switch {
		case is == other:
			return 0
		case is:
			return -1
		}
		return 1
	}
	next := slices.MinFunc(active, func(a, b v1alpha1.RedisBackup) int {
		return cmp.Or(first(a.UID == held, b.UID == held),
			first(a.Status.Phase == v1alpha1.BackupRunning, b.Status.Phase == v1alpha1.BackupRunning),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.UID, b.UID))
	})
	return snapshot.Backup{Name: next.Name, UID: string(next.UID)}, nil
}

func activeBackups(ctx context.Context, from client.Reader, cluster *v1alpha1.RedisCluster) ([]v1alpha1.RedisBackup, error) {
	var list v1alpha1.RedisBackupList
	if err := from.List(ctx, &list, client.InNamespace(cluster.Namespace)); err != nil {
		return nil, fmt.Errorf("list the RedisBackups: %w", err)
	}
	return slices.DeleteFunc(list.Items, func(b v1alpha1.RedisBackup) bool { return b.Spec.Cluster != cluster.Name || !b.Active() }), nil
}
