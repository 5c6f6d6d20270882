// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// goal reads which shard is to own which slots. One that does not give every slot away
// once was not written by this operator, and counts as none.
func goal(m *v1alpha1.MigrationStatus) *snapshot.Goal {
	if m == nil {
		return nil
	}
	g := &snapshot.Goal{For: m.For, From: int(m.FromShards)}
	var all slots.Set
	total := 0
	for _, text := range m.Goal {
		set, err := slots.Parse(text)
		if err != nil {
			return nil
		}
		g.Shards = append(g.Shards, set)
		all = all.Union(set)
		total += set.Len()
	}
	if total != slots.Count || all.Len() != slots.Count {
		return nil
	}
	return g
}

// countOpenKeys asks every master how many keys it holds in slots that are half migrated, or disowned.
// There are none but after a crash in the middle.
func (o *Observer) countOpenKeys(ctx context.Context, credentials redis.Credentials, s *snapshot.Snapshot, timeout time.Duration) {
	var open []uint16
	var masters []*snapshot.Instance
	for _, in := range s.Reachable() {
		if in.Redis.Master {
			masters = append(masters, in)
			open = slices.AppendSeq(open, maps.Keys(in.Redis.Migrating))
			open = slices.AppendSeq(open, maps.Keys(in.Redis.Importing))
		}
	}
	set := slots.Of(open...)
	if s.Formed {
		set = set.Union(s.FindDisowned())
	}
	if set.IsEmpty() {
		return
	}
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for _, in := range masters {
		group.Go(func() error {
			return contain.Call(ctx, "count the keys of "+in.Name, func() (err error) {
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				in.Redis.OpenKeys, err = o.node(in, credentials).CountKeysInSlots(ctx, set)
				return err
			})
		})
	}
	_ = group.Wait() // what one does not answer stays unknown
}

// readContainer reads of the Redis container what it may use, and its image.
func readContainer(in *snapshot.Instance, pod *corev1.Pod) {
	for i := range pod.Spec.Containers {
		if c := &pod.Spec.Containers[i]; c.Name == redisContainer {
			in.MemoryLimit, in.Image = c.Resources.Limits.Memory().Value(), c.Image
			in.TwoPorts = slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.ContainerPort == v1alpha1.PortRedisTLS })
		}
	}
}
