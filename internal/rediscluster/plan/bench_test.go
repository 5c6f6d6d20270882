// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// large is a healthy cluster of n shards of two instances.
func large(n int) (Desired, *snapshot.Snapshot) {
	s, topology := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Formed: true}, v1alpha1.Topology{}
	id := func(shard, ordinal int) string { return fmt.Sprintf("%039d%d", shard, ordinal) }
	parts := slots.All().Split(n)
	for shard := range n {
		topology = append(topology, 2)
		s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: 2})
		for ordinal := range 2 {
			r := &snapshot.Redis{NodeID: id(shard, ordinal), Master: ordinal == 0, ClusterOK: true, Peers: map[string]snapshot.Peer{}}
			if r.Master {
				r.Slots = parts[shard]
			} else {
				r.MasterID, r.MasterLinkUp = id(shard, 0), true
			}
			s.Instances = append(s.Instances, snapshot.Instance{Name: fmt.Sprintf("c-%d-%d", shard, ordinal), Shard: shard, Ordinal: ordinal,
				IP: fmt.Sprintf("10.%d.%d.%d", ordinal, shard/250, shard%250+1), NodeName: fmt.Sprintf("node%d", (shard+ordinal)%n), Ready: true,
				Redis: r})
		}
	}
	introduce(s)
	want := desired()
	want.Topology = topology
	return want, s
}

// BenchmarkNext measures deciding about a healthy cluster. A hundred shards take less than a hundred times as long as ten.
func BenchmarkNext(b *testing.B) {
	for _, shards := range []int{3, 10, 100, 500} {
		want, s := large(shards)
		b.Run(fmt.Sprintf("shards=%d", shards), func(b *testing.B) {
			for b.Loop() {
				if step := decide(want, s, now).Step; !Is[None](step) {
					b.Fatalf("%s: %s", step.Name(), step.Why())
				}
			}
		})
	}
}
