// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// No number that somebody else wrote decides how much memory a topology takes, or what is rendered.
func TestTopologyIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		shards []snapshot.Shard
		want   v1alpha1.Topology
	}{
		"none":  {nil, nil},
		"a gap": {[]snapshot.Shard{{Index: 0, Replicas: 2}, {Index: 2, Replicas: 1}}, v1alpha1.Topology{2, 0, 1}},
		"beyond the API": {[]snapshot.Shard{{Index: 0, Replicas: 2}, {Index: 500, Replicas: 1}, {Index: 2_000_000_000, Replicas: 1}},
			v1alpha1.Topology{2}},
		"below zero":              {[]snapshot.Shard{{Index: -1, Replicas: 2}, {Index: 0, Replicas: -3}}, v1alpha1.Topology{0}},
		"more instances than any": {[]snapshot.Shard{{Index: 0, Replicas: 2_000_000_000}}, v1alpha1.Topology{1000}},
	} {
		if diff := cmp.Diff(tt.want, existingTopology(&snapshot.Snapshot{Shards: tt.shards})); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// A server's table may name any number of owners of slots that nobody else has.
func TestTableDoesNotDecideHowManyShards(t *testing.T) {
	s := formed()
	table := s.Find(0, 0).Redis
	table.Slots = slots.Set{}
	for i := range 20_000 {
		id := fmt.Sprintf("%040d", i)
		table.Peers[id] = snapshot.Peer{ID: id, Master: true, Slots: slots.Of(1)}
	}
	if n := len(ShapeOf(desired(), s, now).Topology); n > int(v1alpha1.MaxShards) {
		t.Errorf("%d shards would be rendered", n)
	}
}
