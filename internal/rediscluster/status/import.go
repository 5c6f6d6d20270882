// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// importing is how far an import or a clone has come. What was written down of the cut-over stays, but for what the server got since, which
// is counted as long as it is asked.
func importing(cluster *v1alpha1.RedisCluster, p Reconciliation, now time.Time) *v1alpha1.ImportStatus {
	before := cluster.Status.Import
	switch {
	case before != nil && before.CutOverAt != nil:
		missed := plan.Missed(p.Snapshot)
		if missed == nil || cluster.CloneOf() != "" || before.MissedBytes != nil && *before.MissedBytes >= *missed {
			return before
		}
		after := before.DeepCopy()
		after.MissedBytes = missed
		return after
	case !cluster.Follows() || p.Snapshot.Formed: // it was formed before there was anything to import
		return before
	case p.Snapshot.Import != nil && p.Snapshot.Import.Other != "": // what it began with is known by it
		return before
	}
	is := &v1alpha1.ImportStatus{Phase: v1alpha1.ImportPreparing, Address: cluster.SourceAddress()}
	keep, keeps := p.Decision.Step.(plan.KeepFollower)
	if before != nil && before.Phase == v1alpha1.ImportFollowing || keeps && p.Err == nil || len(p.Snapshot.Shards) > 0 {
		is.Phase = v1alpha1.ImportFollowing
	}
	if before != nil {
		is.Version, is.Slots = before.Version, before.Slots
	}
	if keeps && p.Err == nil {
		is.Slots = nil
		for _, set := range keep.Slots {
			is.Slots = append(is.Slots, set.String())
		}
	}
	if i := p.Snapshot.Import; i != nil && len(i.Shards) > 0 && i.Shards[0].Source != nil {
		is.Version = i.Shards[0].Source.Engine + " " + i.Shards[0].Source.Version
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
