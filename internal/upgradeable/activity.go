// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeable

import (
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// Work is what a RedisCluster does that a new version of the operator had better not come into the middle of.
type Work string

// The kinds of work, most delicate first. Everything else leaves the operator free to be replaced: forming a cluster puts no data at
// risk, a paused cluster is not touched, and of a failed one or one that waits for somebody an upgrade may be the cure.
const (
	// NoWork is that of a cluster which may be taken over at any time.
	NoWork Work = ""
	// MovingSlots is keys on their way from one shard to another.
	MovingSlots Work = "MovingSlots"
	// Scaling is instances joining or leaving, before slots move and after they have.
	Scaling Work = "Scaling"
	// RollingOut is instances of which some run an older template than the others.
	RollingOut Work = "RollingOut"
)

// Activity is what one RedisCluster is at. It is comparable: two activities that are equal differ in nothing that a user would call
// progress.
type Activity struct {
	Cluster types.NamespacedName
	UID     types.UID
	Work    Work
	// FromShards and ToShards are the shards that own slots before and after, when slots move.
	FromShards, ToShards int32

	progress progress
}

// progress is what changes while work goes on, and does not change to and fro while it is stuck: an instance that keeps crashing is
// ready now and then, and is none the nearer to its end.
type progress struct {
	slotsLeft int32
	keysMoved int64
	instances int32
	// stale says which instances run an older template.
	stale string
}

// ActivityOf reads a cluster's status.
func ActivityOf(cluster *v1alpha1.RedisCluster) Activity {
	status := &cluster.Status
	activity := Activity{Cluster: types.NamespacedName{Namespace: cluster.Namespace, Name: cluster.Name}, UID: cluster.UID}
	if cluster.DeletionTimestamp != nil || cluster.Spec.Pause {
		return activity
	}
	switch status.Phase {
	case v1alpha1.PhaseScaling:
		activity.Work = Scaling
		activity.progress.instances = status.Replicas
		if m := status.Migration; m != nil {
			activity.Work, activity.FromShards, activity.ToShards = MovingSlots, m.FromShards, m.ToShards
			activity.progress.slotsLeft, activity.progress.keysMoved = m.SlotsLeft, m.KeysMoved
		}
	case v1alpha1.PhaseUpgrading:
		activity.Work = RollingOut
		if status.Plan != nil {
			activity.progress.stale = status.Plan.Reason
		}
	case v1alpha1.PhaseNone, v1alpha1.PhaseCreating, v1alpha1.PhaseRunning, v1alpha1.PhaseFailed, v1alpha1.PhasePaused, v1alpha1.PhaseDeleting,
		v1alpha1.PhaseHibernating, v1alpha1.PhaseHibernated, v1alpha1.PhaseWaking:
	}
	return activity
}

// String says what the cluster does, without anything that changes while it does it.
func (a Activity) String() string {
	switch a.Work {
	case MovingSlots:
		return fmt.Sprintf("%s moves slots (from %d to %d shards)", a.Cluster, a.FromShards, a.ToShards)
	case Scaling:
		return fmt.Sprintf("%s adds or removes instances", a.Cluster)
	case RollingOut:
		return fmt.Sprintf("%s replaces instances by ones of a new template", a.Cluster)
	case NoWork:
	}
	return a.Cluster.String() + " is at rest"
}
