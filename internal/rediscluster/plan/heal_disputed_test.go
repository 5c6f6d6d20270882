// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// forgetful is a cluster with instances that came up under new node IDs, with the keys that they had. Others still know who
// they were. Each pair is a shard and an ordinal.
func forgetful(pairs ...[2]int) *snapshot.Snapshot {
	s := formed()
	for _, in := range s.Reachable() {
		in.Redis.Epoch = uint64(in.Shard + 1)
		for id, peer := range in.Redis.Peers {
			peer.Epoch = uint64(id[0]-'0') + 1
			in.Redis.Peers[id] = peer
		}
	}
	for _, p := range pairs {
		in := s.Find(p[0], p[1])
		fail(s, in.Redis.NodeID)
		in.UID = "uid"
		in.Redis = &snapshot.Redis{NodeID: strings.Repeat(fmt.Sprintf("a%d", 2*p[0]+p[1]), 20), Master: true, Keys: 190,
			Peers: map[string]snapshot.Peer{},
			Slots: slots.All().Split(3)[p[0]].Take(190)}
	}
	return s
}

// alone takes the replicas away.
func alone(s *snapshot.Snapshot) *snapshot.Snapshot {
	for shard := range s.Shards {
		s.Shards[shard].Replicas = 1
		id := nodeID(shard, 1)
		kill(s, shard, 1)
		forgetAll(s, id)
	}
	return s
}

func single(d *Desired) { d.Topology = []int32{1, 1, 1} }

// follows says what a replica of a lost master knows of it.
func follows(s *snapshot.Snapshot, shard, ordinal int, lost bool) *snapshot.Snapshot {
	r := s.Find(shard, ordinal).Redis
	r.MasterLinkUp, r.MasterLinkLost, r.MasterLinkDownFor, r.NodeTimeout = false, lost, 10*time.Second, 5*time.Second
	for _, in := range s.Reachable() {
		if peer, ok := in.Redis.Peers[r.MasterID]; ok {
			peer.LastPong = now.Add(-11 * time.Second)
			in.Redis.Peers[r.MasterID] = peer
		}
	}
	return s
}

// What an instance that lost its nodes.conf holds is kept: it is introduced to nobody who may know another owner.
func TestDisputedClaims(t *testing.T) {
	for name, tt := range map[string]struct {
		desired       func(*Desired)
		snapshot      *snapshot.Snapshot
		step, why, by string
	}{
		"who it was is forgotten before it is introduced": {desired: single, snapshot: alone(forgetful([2]int{0, 0})), step: "Forget",
			why: "00000000"},
		"two at once": {desired: single, snapshot: alone(forgetful([2]int{0, 0}, [2]int{1, 0})), step: "Forget", why: "00000000, 10101010"},
		"then the slots without keys are assigned, when nobody knows of it any more": {desired: single,
			snapshot: func() *snapshot.Snapshot {
				s := alone(forgetful([2]int{0, 0}))
				forgetAll(s, nodeID(0, 0))
				return s
			}(), step: "AssignSlots"},
		"and then it is introduced": {desired: single,
			snapshot: func() *snapshot.Snapshot {
				s := alone(forgetful([2]int{0, 0}))
				forgetAll(s, nodeID(0, 0))
				s.Find(0, 0).Redis.Slots = slots.All().Split(3)[0]
				return s
			}(), step: "Meet", why: "2 pairs"},
		"not while somebody was not asked, who may know another owner": {desired: single,
			snapshot: func() *snapshot.Snapshot {
				s := alone(forgetful([2]int{0, 0}))
				forgetAll(s, nodeID(0, 0))
				s.Find(2, 0).Redis, s.Find(2, 0).Error = nil, "i/o timeout"
				return s
			}(), step: "Wait", why: "c-2-0 does not answer"},
		"others are introduced meanwhile": {desired: single,
			snapshot: func() *snapshot.Snapshot {
				s := alone(forgetful([2]int{0, 0}))
				s.Find(1, 0).IP, s.Find(2, 0).IP = "10.8.0.1", "10.8.0.2"
				return s
			}(), step: "Meet", why: "1 pairs"},
		"a replica that had all succeeds it at once": {snapshot: follows(forgetful([2]int{0, 0}), 0, 1, true), step: "Promote",
			why: "c-0-1 has its data"},
		"not while somebody was not asked, who may be it": {snapshot: lose(follows(forgetful([2]int{0, 0}), 0, 1, true), 2, 1), step: "Wait",
			why: "c-2-1 does not answer"},
		"so does one that follows it by its address, where nobody counts the former ID as failed": {
			snapshot: func() *snapshot.Snapshot {
				s := forgetful([2]int{0, 0})
				for _, in := range s.Reachable() {
					if peer, ok := in.Redis.Peers[nodeID(0, 0)]; ok {
						peer.Failed, peer.NoAddress, peer.IP = false, true, ""
						in.Redis.Peers[nodeID(0, 0)] = peer
					}
				}
				s.Find(0, 1).Redis.MasterLinkUp = true
				return s
			}(), step: "Promote", why: "c-0-1 has its data"},
		"a replica that may lack the last writes does not": {snapshot: follows(forgetful([2]int{0, 0}), 0, 1, false),
			step: "Stall",
			why:  "c-0-0 has lost its nodes.conf and holds 190 keys of slots 0-189, of which c-0-1 may hold another copy; keep one: delete the claim and the pod of the other", by: "claims_undisputed"},
		"nor is one of two without nodes.conf chosen": {
			snapshot: func() *snapshot.Snapshot {
				s := forgetful([2]int{0, 0}, [2]int{0, 1})
				forgetAll(s, nodeID(0, 0))
				forgetAll(s, nodeID(0, 1))
				return s
			}(), step: "Stall", why: "c-0-0 has lost its nodes.conf", by: "claims_undisputed"},
		"a former master is not introduced before its lost successor is forgotten": {desired: single,
			snapshot: func() *snapshot.Snapshot {
				s := alone(forgetful())
				in := s.Find(0, 0)
				in.IP, in.Redis.Keys = "10.8.0.1", 190
				for _, other := range s.Reachable() {
					if other != in {
						other.Redis.Peers["f"] = snapshot.Peer{ID: "f", Master: true, Failed: true, Slots: in.Redis.Slots, Epoch: 9}
					}
				}
				return s
			}(), step: "Forget", why: ": f"},
	} {
		t.Run(name, func(t *testing.T) {
			d := desired()
			if tt.desired != nil {
				tt.desired(&d)
			}
			got := decide(d, tt.snapshot, now)
			if got.Step.Name() != tt.step || !strings.Contains(got.Step.Why(), tt.why) {
				t.Errorf("got %s: %s\nwant %s: %s", got.Step.Name(), got.Step.Why(), tt.step, tt.why)
			}
			if by := string(blockedBy(got.Step)); tt.by != "" && by != tt.by {
				t.Errorf("blocked by %q, want %q", by, tt.by)
			}
			if meet, ok := got.Step.(Meet); ok && strings.HasPrefix(name, "others") &&
				(meet.Meetings[0].From.Pod != "c-1-0" || meet.Meetings[0].To.Pod != "c-2-0") {
				t.Errorf("introduces %+v", meet.Meetings)
			}
		})
	}
}
