// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// A replica that an instance remembers as a master of a higher epoch is not heard by it before the replica's master has one that is
// higher still. Nobody gets a higher epoch while that could take something from somebody else.
func TestEpochIsOutbid(t *testing.T) {
	edit := func(s *snapshot.Snapshot, shard, ordinal, of int, change func(*snapshot.Peer)) {
		peers := s.Find(shard, ordinal).Redis.Peers
		peer := peers[nodeID(0, of)]
		change(&peer)
		peers[nodeID(0, of)] = peer
	}
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		want   bool
	}{
		"a higher epoch is remembered": {func(*snapshot.Snapshot) {}, true},
		"the epoch is the master's": {func(s *snapshot.Snapshot) {
			edit(s, 1, 0, 1, func(p *snapshot.Peer) { p.Epoch = 2 })
		}, false},
		"it is known that it is a replica": {func(s *snapshot.Snapshot) {
			edit(s, 1, 0, 1, func(p *snapshot.Peer) { p.Master, p.MasterID = false, nodeID(0, 0) })
		}, false},
		"Redis hears it all the same": {func(s *snapshot.Snapshot) { s.Find(0, 1).Redis.Engine = "redis" }, false},
		"the replica is not in sync":  {func(s *snapshot.Snapshot) { s.Find(0, 1).Redis.MasterLinkUp = false }, false},
		"an instance does not answer": {func(s *snapshot.Snapshot) { lose(s, 2, 1) }, false},
		"a slot is moving": {func(s *snapshot.Snapshot) { s.Find(2, 0).Redis.Importing = map[uint16]string{0: nodeID(0, 0)} },
			false},
		"slots are moved by an engine":    {func(s *snapshot.Snapshot) { s.Find(2, 0).Redis.Jobs = []snapshot.Job{{}} }, false},
		"a replica was told to take over": {func(s *snapshot.Snapshot) { s.Find(0, 1).Redis.SwitchoverAt = now }, false},
		"the master is suspected": {func(s *snapshot.Snapshot) {
			edit(s, 2, 0, 0, func(p *snapshot.Peer) { p.Suspected = true })
		}, false},
		"somebody names another owner": {func(s *snapshot.Snapshot) {
			edit(s, 2, 1, 0, func(p *snapshot.Peer) { p.Slots = p.Slots.Subtract(slots.Of(0)) })
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := formed()
			for _, in := range s.Reachable() {
				in.Redis.Engine = "valkey"
			}
			s.Find(0, 0).Redis.Epoch = 2
			edit(s, 1, 0, 1, func(p *snapshot.Peer) { p.Master, p.MasterID, p.Epoch = true, "", 5 })
			tt.change(s)
			got := decide(desired(), s, now).Step
			bump, bumps := got.(BumpEpoch)
			if bumps != tt.want {
				t.Fatalf("%s: %s", got.Name(), got.Why())
			}
			const why = "c-1-0 takes c-0-1, which follows c-0-0, for a master of epoch 5, and c-0-0 has epoch 2"
			if bumps && (bump.On.Pod != "c-0-0" || !strings.Contains(bump.Why(), why)) {
				t.Errorf("on %s: %s", bump.On.Pod, bump.Why())
			}
		})
	}
}
