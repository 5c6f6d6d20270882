// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/balance"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// balancing is what is remembered of how evenly the shards of a cluster bear the load.
type balancing struct {
	track balance.Track
	told  told[balance.Outcome]
}

// balance has the slots follow the load, if the spec asks for that; nil: it does not.
func (l *Loop) balance(cluster *v1alpha1.RedisCluster, s *snapshot.Snapshot, m *Memory, d *plan.Desired) *balance.Outcome {
	asked := cluster.Spec.Balance
	if asked == nil {
		m.balance = balancing{}
		return nil
	}
	now := l.Now()
	var outcome balance.Outcome
	m.balance.track, outcome = m.balance.track.Decide(now, asked.Budget(), shardsOf(s), s.Weights, movedBefore(cluster))
	outcome = tellBalance(&m.balance.told, now, outcome)
	if outcome.Goal != nil && d.FollowsLoad {
		d.ByLoad = &plan.ByLoad{Shards: outcome.Goal, Why: outcome.Reason}
	}
	return &outcome
}

// shardsOf are the masters by shard; nil when that is not certain, or one owns no slot.
func shardsOf(s *snapshot.Snapshot) []balance.Shard {
	masters := s.Masters()
	shards := make([]balance.Shard, len(masters))
	for i := range shards {
		in := masters[i]
		if in == nil {
			return nil
		}
		shards[i] = balance.Shard{Slots: in.Redis.Slots, Used: float64(in.Redis.UsedMemory), Room: float64(in.Room())}
	}
	return shards
}

// movedBefore is what the status says of slots that have moved because of the load.
func movedBefore(cluster *v1alpha1.RedisCluster) []balance.Moved {
	if cluster.Status.Balance == nil {
		return nil
	}
	var past []balance.Moved
	for _, m := range cluster.Status.Balance.Moved {
		past = append(past, balance.Moved{At: m.Time.UTC(), Bytes: float64(max(m.Megabytes, 0)) * (1 << 20)})
	}
	return past
}
