// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Data that does not fit is not moved: nothing is begun, and the numbers are told.
func TestCapacity(t *testing.T) {
	for name, tt := range map[string]struct {
		change  func(*Desired, *snapshot.Snapshot)
		refused string
	}{
		"no limit":                   {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 0, 0) }, ""},
		"maxmemory is just enough":   {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 100<<20+100<<20*1366/4096, 0) }, ""},
		"maxmemory lacks one byte":   {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 100<<20+100<<20*1366/4096-1, 0) }, "of maxmemory"},
		"maxmemory is a single byte": {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 1, 0) }, "of maxmemory"},
		"maxmemory is too little": {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 133<<20, 0) },
			"shard 0 would hold 133.3 MiB, more than the 133.0 MiB of maxmemory: give its instances more memory, move less to it, or set the annotation redis.middleware.hc.cn/allow-scale-in-over-capacity to true"},
		"the limit leaves room for a fork": {func(_ *Desired, s *snapshot.Snapshot) { limit(s, 0, 150<<20) },
			"more than the 112.5 MiB of 75 % of its memory limit"},
		"a shard that receives nothing is not asked": {func(d *Desired, s *snapshot.Snapshot) {
			to := 1
			*d, *s = with(topologyOf(4)), *scaled(4)
			d.AssignReceive, d.SlotAssignments = true, []SlotAssignment{{Slots: 4100, From: []string{nodeID(0, 0)}, To: &to}}
			limit(s, 134<<20, 0)
			s.Find(2, 0).Redis.UsedMemory = 200 << 20
		}, ""},
		"a shard that an entry names receives too much": {func(d *Desired, s *snapshot.Snapshot) {
			to := 1
			*d, *s = with(topologyOf(4)), *scaled(4)
			d.AssignReceive, d.SlotAssignments = true, []SlotAssignment{{Slots: 6144, From: []string{nodeID(0, 0)}, To: &to}}
			limit(s, 120<<20, 0)
		}, "shard 1 would hold 150.0 MiB, more than the 120.0 MiB of maxmemory"},
		"a shard that joins receives too much by an entry": {func(d *Desired, s *snapshot.Snapshot) {
			*d, *s = with(topologyOf(4)), *joined(4)
			d.AssignReceive, d.SlotAssignments = true, []SlotAssignment{{Slots: 5000, From: []string{nodeID(0, 0)}}}
			limit(s, 120<<20, 0)
		}, "shard 3 would hold"},
		"shards that join for an equal share relieve the others": {func(d *Desired, s *snapshot.Snapshot) {
			*d, *s = with(topologyOf(4)), *joined(4)
			limit(s, 100<<20, 0)
		}, ""},
		"slots that are evened out have no room": {func(d *Desired, s *snapshot.Snapshot) {
			*d, *s = desired(), *formed()
			for shard, part := range uneven() {
				s.Find(shard, 0).Redis.Slots = part
			}
			introduce(s)
			s.SlotsAssigned = true
			limit(s, 100<<20, 0)
		}, "shard 0 would hold"},
		"what a master gives makes room for what it receives": {func(d *Desired, s *snapshot.Snapshot) {
			*d, *s = with(topologyOf(4)), *joined(4)
			divide(s)
			d.AssignReceive, d.SlotAssignments = true, []SlotAssignment{{Slots: 3000, From: []string{nodeID(1, 0)}}}
			limit(s, 160<<20, 0)
		}, ""},
		"allowed all the same": {func(d *Desired, s *snapshot.Snapshot) { limit(s, 133<<20, 0); d.OverCapacity = true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := with(topologyOf(3)), scaled(4)
			tt.change(&d, s)
			got := decide(d, s, now)
			stall, refused := got.Step.(Stall)
			if refused != (tt.refused != "") || !strings.Contains(stall.Reason, tt.refused) {
				t.Errorf("got %s: %s, want %q", got.Step.Name(), got.Step.Why(), tt.refused)
			}
			if refused && (got.Goal != nil || !got.Healthy) {
				t.Errorf("something was begun: goal %v, healthy %v", got.Goal, got.Healthy)
			}
		})
	}
}

func limit(s *snapshot.Snapshot, maxMemory, memoryLimit int64) {
	for i := range s.Instances {
		s.Instances[i].Redis.UsedMemory, s.Instances[i].Redis.MaxMemory, s.Instances[i].MemoryLimit = 100<<20, maxMemory, memoryLimit
	}
}

// Slots move from a master that serves to a shard whose instances all do, as all masters see it.
func TestMovable(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d := with(topologyOf(4))
		return d, recorded(d, joined(4))
	}
	rule := func(in input) bool {
		_, v := movable(in, Move{From: target(in.snap.Find(0, 0)), To: target(in.snap.Find(3, 0)), Slots: slots.Range(4096, 5460)})
		return v.Holds
	}
	seen := func(on, of string, change func(*snapshot.Peer)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) { peer(s, on, of, change) }
	}
	outside := func(d *Desired, s *snapshot.Snapshot, shards int) {
		d.External = true
		s.External = &snapshot.External{Served: topologyOf(shards), Gateways: []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "old"}}}
	}
	fewer := func(d *Desired) { d.Topology = []int32{2, 2, 2, 1} }
	proven(t, situation, rule, changes{
		"the source stops":                          func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Terminating = true },
		"the source does not serve":                 func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.ClusterOK = false },
		"a master has no link to the source":        seen("c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Connected = false }),
		"a master suspects the source":              seen("c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Suspected = true }),
		"a master takes the source for failed":      seen("c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Failed = true }),
		"a master has just met the source":          seen("c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Handshake = true }),
		"a master takes the source for a replica":   seen("c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Master = false }),
		"a master does not know the source":         func(_ *Desired, s *snapshot.Snapshot) { delete(s.Find(1, 0).Redis.Peers, nodeID(0, 0)) },
		"a master suspects the destination":         seen("c-1-0", "c-3-0", func(p *snapshot.Peer) { p.Suspected = true }),
		"the destination stops":                     func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Terminating = true },
		"the destination does not serve":            func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.ClusterOK = false },
		"its replica stops":                         func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 1).Terminating = true },
		"its replica is not in sync":                func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 3, 1) },
		"its replica does not know the whole map":   seen("c-3-1", "c-1-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} }),
		"its replica does not answer":               func(_ *Desired, s *snapshot.Snapshot) { lose(s, 3, 1) },
		"its replica has no pod":                    func(_ *Desired, s *snapshot.Snapshot) { kill(s, 3, 1) },
		"clients outside do not reach its replica":  func(d *Desired, s *snapshot.Snapshot) { outside(d, s, 3) },
		"gateways do not know the destination's IP": func(d *Desired, s *snapshot.Snapshot) { outside(d, s, 4); s.Find(3, 0).IPSince = now },
		"the destination takes another for the owner": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-3-0", "c-0-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
			peer(s, "c-3-0", "c-1-0", func(p *snapshot.Peer) { p.Slots = slots.All() })
		},
	}, changes{
		"a replica suspects the source":             seen("c-1-1", "c-0-0", func(p *snapshot.Peer) { p.Suspected = true }),
		"a replica of another shard is not in sync": func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 0, 1) },
		"its replica is to go, and is not in sync":  func(d *Desired, s *snapshot.Snapshot) { fewer(d); unsynced(s, 3, 1) },
		"its replica is to go, and does not run": func(d *Desired, s *snapshot.Snapshot) {
			fewer(d)
			lose(s, 3, 1).Find(3, 1).Waiting = "not scheduled"
		},
		"clients outside reach all of it as they are": func(d *Desired, s *snapshot.Snapshot) { outside(d, s, 4) },
	})
}

// Who is the master of a shard that owns nothing, to which slots are to move.
func TestMasterOfAShardWithoutSlots(t *testing.T) {
	empty := func(s *snapshot.Snapshot, ordinal int) {
		r := s.Find(3, ordinal).Redis
		r.Master, r.MasterID, r.MasterLinkUp = true, "", false
	}
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot)
		want   string
	}{
		"the one that another follows":       {func(*snapshot.Snapshot) {}, "c-3-0"},
		"though it holds a key":              {func(s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 1 }, "c-3-0"},
		"an empty one, if nobody follows":    {func(s *snapshot.Snapshot) { empty(s, 1) }, "c-3-0"},
		"not one that holds a key then":      {func(s *snapshot.Snapshot) { empty(s, 1); s.Find(3, 0).Redis.Keys = 1 }, "c-3-1"},
		"nor one that is left alone":         {func(s *snapshot.Snapshot) { s.Find(3, 0).Fenced = true }, ""},
		"nor a replica":                      {func(s *snapshot.Snapshot) { s.Find(3, 0).Redis.Master = false }, ""},
		"nobody before the cluster is there": {func(s *snapshot.Snapshot) { s.Formed = false }, ""},
		"nobody while a slot has no owner":   {func(s *snapshot.Snapshot) { s.Find(0, 0).Redis.Slots = slots.Range(1, 5460) }, ""},
	} {
		s := joined(4)
		tt.change(s)
		got := ""
		if pod := ShapeOf(with(topologyOf(4)), s, now).in.masters()[3]; pod != nil {
			got = pod.Name
		}
		if got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
