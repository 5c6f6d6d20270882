// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// importing is how far an import has come. What was written down of the cut-over stays.
func importing(cluster *v1alpha1.RedisCluster, p Reconciliation, now time.Time) *v1alpha1.ImportStatus {
	asked, before := cluster.Import(), cluster.Status.Import
	if before != nil && before.CutOverAt != nil || asked == nil {
		return before
	}
	if p.Snapshot.Formed { // it was formed before there was anything to import
		return before
	}
	is := &v1alpha1.ImportStatus{Phase: v1alpha1.ImportPreparing, Address: asked.Address}
	_, keeps := p.Decision.Step.(plan.KeepFollower)
	if before != nil && before.Phase == v1alpha1.ImportFollowing || keeps && p.Err == nil || len(p.Snapshot.Shards) > 0 {
		is.Phase = v1alpha1.ImportFollowing
	}
	if before != nil {
		is.Version = before.Version
	}
	if i := p.Snapshot.Import; i != nil && i.Source != nil {
		is.Version = i.Source.Engine + " " + i.Source.Version
	}
	if lag, known := plan.Lag(p.Snapshot); known {
		is.LagBytes = &lag
	}
	if step, over := p.Decision.Step.(plan.RecordCutOver); over {
		is.Phase, is.LagBytes, is.MissedBytes = v1alpha1.ImportCutOver, nil, step.Missed
		is.CutOverAt = &metav1.Time{Time: now.Truncate(timeUnit)}
	}
	return is
}
