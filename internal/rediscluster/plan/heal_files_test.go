// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// stuck is the formed cluster with an instance on a lost node: its pod was to stop and is still there, its Redis does not answer,
// and the others have noticed.
func stuck(shard, ordinal int, since time.Duration) *snapshot.Snapshot {
	s := formed()
	in := s.Find(shard, ordinal)
	fail(s, in.Redis.NodeID)
	in.Redis, in.Error, in.UID, in.Terminating, in.StopBy = nil, "i/o timeout", "uid", true, now.Add(-since)
	return s
}

// failedOver makes the second instance of a shard own its slots.
func failedOver(s *snapshot.Snapshot, shard int) *snapshot.Snapshot {
	r := s.Find(shard, 1).Redis
	r.Master, r.MasterID, r.Slots = true, "", r.Peers[nodeID(shard, 0)].Slots
	return s
}

// damaged is the formed cluster with an instance that cannot start.
func damaged(shard, ordinal int, words string, claims ...snapshot.Claim) *snapshot.Snapshot {
	s := broken(formed(), shard, ordinal, "")
	s.Find(shard, ordinal).TerminationMessage, s.Find(shard, ordinal).UID = words, "uid"
	s.Claims = claims
	return s
}

// amnesiac is the formed cluster with an instance that came up under a new node ID, with the keys of a shard.
func amnesiac(shard, ordinal, claims int, claim snapshot.Claim) *snapshot.Snapshot {
	s := formed()
	in := s.Find(shard, ordinal)
	fail(s, in.Redis.NodeID)
	in.UID = "uid"
	forgetAll(s, in.Redis.NodeID)
	s.Find(1, 0).Redis.Keys = 3
	in.Redis = &snapshot.Redis{NodeID: strings.Repeat("ab", 20), Master: true, Keys: 3, Peers: map[string]snapshot.Peer{},
		Slots: slots.All().Split(3)[claims].Intersect(slots.Range(100, 11200))}
	s.Claims = []snapshot.Claim{claim}
	return s
}

func TestLostInstances(t *testing.T) {
	const corrupted = `1:M 21 Nov 2026 12:00:00.000 # Unrecoverable error: corrupted cluster config file "nodes.conf".`
	claim := snapshot.Claim{Name: "data-c-1-1", UID: "claim", Requested: 1 << 30}
	for name, tt := range map[string]struct {
		desired   func(*Desired)
		snapshot  *snapshot.Snapshot
		step, why string
	}{
		"a replica on a lost node is let go": {snapshot: stuck(1, 1, time.Minute), step: "ForceDelete", why: "c-1-1 was to stop 1m0s ago"},
		"not before a kubelet had its time":  {snapshot: stuck(1, 1, 10*time.Second), step: "Wait", why: "c-1-1 does not answer"},
		"not while somebody sees it alive": {
			snapshot: changed(func() *snapshot.Snapshot { return stuck(1, 1, time.Minute) }, func(s *snapshot.Snapshot) {
				s.Find(0, 0).Redis.Peers[nodeID(1, 1)] = snapshot.Peer{ID: nodeID(1, 1), IP: podIP(1, 1), Connected: true}
			})(), step: "Wait", why: "c-1-1 does not answer"},
		"a master on a lost node is not let go before its successor has its slots": {snapshot: stuck(1, 0, time.Minute), step: "Wait"},
		"a master on a lost node is let go when it has": {snapshot: failedOver(stuck(1, 0, time.Minute), 1),
			step: "ForceDelete", why: "c-1-0"},
		"an instance that cannot read its nodes.conf is renewed": {snapshot: damaged(1, 1, corrupted, claim), step: "Recreate",
			why: "c-1-1 cannot read its own files (corrupted cluster config file); c-1-0 has its data"},
		"with its pod, if that holds the data": {desired: func(d *Desired) { d.Ephemeral = true },
			snapshot: damaged(1, 1, corrupted), step: "Recreate"},
		"an instance that lost its nodes.conf and claims what its shard's master owns is renewed": {
			snapshot: amnesiac(1, 1, 1, claim), step: "Recreate",
			why: "c-1-1 has lost its nodes.conf: it knows nobody, and the slots that it claims are those of c-1-0"},
		"not if it claims slots of another shard": {
			snapshot: amnesiac(1, 1, 2, claim), step: "Stall", why: "c-2-0 may hold another copy; keep one"},
		"not if what the master has was lost": {
			snapshot: changed(func() *snapshot.Snapshot { return amnesiac(1, 1, 1, claim) },
				func(s *snapshot.Snapshot) { s.Find(1, 0).Redis.Keys = 0 })(),
			step: "Stall", why: "c-1-0 may hold another copy; keep one"},
		"not if somebody disagrees": {
			snapshot: changed(func() *snapshot.Snapshot { return amnesiac(1, 1, 1, claim) }, func(s *snapshot.Snapshot) {
				peers := s.Find(0, 0).Redis.Peers
				peer := peers[nodeID(1, 0)]
				peer.Slots = slots.Set{}
				peers[nodeID(1, 0)] = peer
			})(), step: "Stall", why: "c-1-0 may hold another copy"},
		"in a volume that is not ours to delete a person helps": {snapshot: damaged(1, 1, corrupted), step: "Stall",
			why: "remove its directory"},
		"a damaged master is not renewed before its successor has its slots": {snapshot: damaged(1, 0, corrupted, claim), step: "Wait"},
		"an instance that ends for another reason is not renewed": {
			snapshot: damaged(1, 1, "Can't open the append-only file: No space left on device", claim), step: "Wait"},
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
			if renew, ok := got.Step.(Recreate); ok && len(tt.snapshot.Claims) > 0 && renew.Claim != claim {
				t.Errorf("claim %+v is to be deleted, want %+v", renew.Claim, claim)
			}
		})
	}
}
