// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func healthy() (Desired, *snapshot.Snapshot) { return desired(), formed() }

func TestConverged(t *testing.T) {
	proven(t, healthy, func(in input) bool { return planConverge(in) == nil }, changes{
		"an instance does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"one has an open slot":        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Importing = map[uint16]string{7: "x"} },
		"one gives a slot":            func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Migrating = map[uint16]string{7: "x"} },
		"one does not serve":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.ClusterOK = false },
		"a replica is not in sync":    func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 1, 1) },
		"one slot is owned by nobody": func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Slots = slots.Range(1, 5460); introduce(s) },
		"a pod is not ready":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Ready = false },
		"one does not know another":   func(_ *Desired, s *snapshot.Snapshot) { delete(s.Find(1, 0).Redis.Peers, nodeID(0, 0)) },
		"one has no link to another": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Connected = false })
		},
		"one takes another for failed": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Failed = true })
		},
		"one suspects another": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Suspected = true })
		},
		"one takes a master for a replica": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Master = false })
		},
		"one takes a replica for another master's": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-1", func(p *snapshot.Peer) { p.MasterID = nodeID(1, 0) })
		},
		"a second master of a shard owns nothing": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Master, s.Find(1, 1).Redis.MasterID = true, ""
			introduce(s)
		},
		"a sidecar fails with the template asked for": func(_ *Desired, s *snapshot.Snapshot) { exporterless(s, 1, 1) },
	}, changes{
		"a replica has the marks of its master": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Importing = map[uint16]string{7: "x"}
		},
		"a sidecar fails with an older template": func(_ *Desired, s *snapshot.Snapshot) {
			exporterless(s, 1, 1).Shards[1].UpdateRevision = "new"
			s.Find(1, 1).Revision = "old"
		},
	})
	// An old template excuses no pod whose sidecar runs.
	proven(t, func() (Desired, *snapshot.Snapshot) { return desired(), outmoded() }, func(in input) bool { return planConverge(in) == nil },
		changes{"a pod of an older template is not ready": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Ready = false }}, nil)
}

func TestNodeGone(t *testing.T) {
	proven(t, healthy, func(in input) bool { return nodeGone(in, "gone").Holds }, changes{
		"a pod was not asked":    func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"a pod answers under it": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.NodeID = "gone" },
	}, nil)
}

// The masters of two shards do not run.
func stayAway() (Desired, *snapshot.Snapshot) {
	return desired(), away(electionTimeout+time.Second, 0, 2)
}

func TestNodeStopped(t *testing.T) {
	proven(t, stayAway, func(in input) bool { return nodeStopped(in, nodeID(0, 0)).Holds }, changes{
		"a pod answers under it": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.NodeID = nodeID(0, 0) },
		"another pod may run":    func(_ *Desired, s *snapshot.Snapshot) { s.Find(2, 0).Stopped = false },
		"another pod is missing": func(_ *Desired, s *snapshot.Snapshot) { kill(s, 1, 1) },
	}, nil)
}

func TestLastInSync(t *testing.T) {
	rule := func(in input) bool { return lastInSync(in, nodeID(0, 0), in.snap.Find(0, 1)).Holds }
	seenUnwell := func(change func(p *snapshot.Peer)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			p := s.Find(1, 0).Redis.Peers[nodeID(0, 0)]
			p.Suspected = false
			change(&p)
			s.Find(1, 0).Redis.Peers[nodeID(0, 0)] = p
		}
	}
	proven(t, stayAway, rule, changes{
		"it is linked to its master":          func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.MasterLinkUp = true },
		"it was not in sync since it started": func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Redis.MasterLinkLost = false },
		"somebody sees the master alive":      seenUnwell(func(*snapshot.Peer) {}),
		"the operator had an answer long after it": func(_ *Desired, s *snapshot.Snapshot) {
			s.Answered = map[string]snapshot.Answered{nodeID(0, 0): {At: now}}
		},
		"nobody had an answer of the master": func(_ *Desired, s *snapshot.Snapshot) {
			for _, in := range s.Reachable() {
				p := in.Redis.Peers[nodeID(0, 0)]
				p.LastPong = time.Time{}
				in.Redis.Peers[nodeID(0, 0)] = p
			}
		},
		"one of the others had an answer long after it": seenUnwell(func(p *snapshot.Peer) { p.Suspected, p.LastPong = true, now }),
	}, changes{
		"another one takes it for failed":      seenUnwell(func(p *snapshot.Peer) { p.Failed = true }),
		"another one has no address of it":     seenUnwell(func(p *snapshot.Peer) { p.NoAddress = true }),
		"another one does not know the master": func(_ *Desired, s *snapshot.Snapshot) { delete(s.Find(1, 0).Redis.Peers, nodeID(0, 0)) },
		"others had an earlier answer":         seenUnwell(func(p *snapshot.Peer) { p.Suspected, p.LastPong = true, now.Add(-time.Hour) }),
	})
}

func TestFollowedToItsEnd(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := away(time.Second, 1)
		pod := s.Find(1, 0)
		pod.IP, pod.StoppedAt = podIP(1, 0), now.Add(-1500*time.Millisecond)
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return crashed(in, nodeID(1, 0), in.snap.Find(1, 1)).Holds }, changes{
		"the pod answers again":        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis = s.Find(0, 1).Redis },
		"the pod may run":              func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Stopped = false },
		"when it stopped is not known": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).StoppedAt = time.Time{} },
		"the pod has another address":  func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).IP = "10.9.9.9" },
		"neither has an address": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 0).IP = ""
			p := s.Find(1, 1).Redis.Peers[nodeID(1, 0)]
			p.IP = ""
			s.Find(1, 1).Redis.Peers[nodeID(1, 0)] = p
		},
		"the pod is of another shard":       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Shard = 0 },
		"the replica is linked to a master": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkUp = true },
		"the replica never lost a master":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkLost = false },
		"the replica lost it well before":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkDownFor = 4 * time.Second },
	}, nil)
}

func TestMajorityLost(t *testing.T) {
	proven(t, stayAway, func(in input) bool { return majorityLost(in).Holds }, changes{
		"two of three masters answer": func(_ *Desired, s *snapshot.Snapshot) { *s = *away(time.Minute, 0) },
		"a replica of one took over": func(_ *Desired, s *snapshot.Snapshot) {
			r := s.Find(0, 1).Redis
			r.Master, r.MasterID, r.Slots = true, "", slots.All().Split(3)[0]
			peer(s, "c-1-0", "c-0-1", func(p *snapshot.Peer) { p.Slots = r.Slots })
			for _, in := range s.Reachable() {
				p := in.Redis.Peers[nodeID(0, 0)]
				p.Slots = slots.Set{}
				in.Redis.Peers[nodeID(0, 0)] = p
			}
		},
	}, changes{
		"replicas say that they own slots": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 1).Redis.Slots, s.Find(2, 1).Redis.Slots = slots.Of(1), slots.Of(16000)
		},
		"those that are gone owned one slot each": func(_ *Desired, s *snapshot.Snapshot) {
			for _, in := range s.Reachable() {
				for slot, id := range []string{nodeID(0, 0), nodeID(2, 0)} {
					p := in.Redis.Peers[id]
					p.Slots = slots.Of(uint16(slot))
					in.Redis.Peers[id] = p
				}
			}
		},
	})
	half := func() (Desired, *snapshot.Snapshot) {
		s := scaled(4)
		fail(s, nodeID(0, 0))
		fail(s, nodeID(1, 0))
		lose(s, 0, 0)
		lose(s, 1, 0)
		return with(topologyOf(4)), s
	}
	proven(t, half, func(in input) bool { return majorityLost(in).Holds }, nil, nil) // two of four cannot elect
	strangers := func() (Desired, *snapshot.Snapshot) {
		s := fresh()
		for shard := range 3 {
			s.Find(shard, 0).Redis.Slots = slots.Of(uint16(shard))
		}
		return desired(), s
	}
	proven(t, strangers, func(in input) bool { return !majorityLost(in).Holds }, nil, nil) // whether they know each other or not
}

// Who may be the owner of slots that an instance has keys of.
func TestClaimsUndisputed(t *testing.T) {
	const gone = "gone"
	claim := func(change func(*snapshot.Peer)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			p := snapshot.Peer{ID: gone, Epoch: 6, Slots: slots.Of(7), Failed: true, Master: true}
			change(&p)
			s.Find(1, 0).Redis.Peers[gone] = p
		}
	}
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		s.Find(0, 0).Redis.Keys, s.Find(0, 0).Redis.Epoch = 5, 5
		return desired(), s
	}
	proven(t, situation, func(in input) bool { return claimsUndisputed(in, in.snap.Find(0, 0)).Holds }, changes{
		"another takes a node that is gone for the owner": claim(func(*snapshot.Peer) {}),
	}, changes{
		"of an earlier epoch": claim(func(p *snapshot.Peer) { p.Epoch = 4 }),
		"of the same epoch":   claim(func(p *snapshot.Peer) { p.Epoch = 5 }),
		"of other slots":      claim(func(p *snapshot.Peer) { p.Slots = slots.Of(16000) }),
		"which a replica follows": func(d *Desired, s *snapshot.Snapshot) {
			claim(func(*snapshot.Peer) {})(d, s)
			s.Find(2, 1).Redis.MasterID = gone
		},
		"which answers": func(d *Desired, s *snapshot.Snapshot) {
			claim(func(*snapshot.Peer) {})(d, s)
			s.Find(2, 1).Redis.NodeID = gone
		},
		"which it is itself": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-0-0", func(p *snapshot.Peer) { p.Epoch = 9 })
		},
		"and it has no keys": func(d *Desired, s *snapshot.Snapshot) {
			claim(func(*snapshot.Peer) {})(d, s)
			s.Find(0, 0).Redis.Keys = 0
		},
		"and it owns nothing": func(d *Desired, s *snapshot.Snapshot) {
			claim(func(p *snapshot.Peer) { p.Slots = slots.All() })(d, s)
			s.Find(0, 0).Redis.Slots = slots.Set{}
		},
	})
	isolated := func() (Desired, *snapshot.Snapshot) {
		s := fresh()
		s.Find(0, 0).Redis.Keys, s.Find(0, 0).Redis.Slots = 1, slots.Of(7)
		return desired(), s
	}
	proven(t, isolated, func(in input) bool { return claimsUndisputed(in, in.snap.Find(0, 0)).Holds }, changes{
		"it knows nobody, and somebody was not asked": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
	}, changes{
		"but it owns nothing": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1).Find(0, 0).Redis.Slots = slots.Set{} },
		"but it has no keys":  func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1).Find(0, 0).Redis.Keys = 0 },
	})
}

// Whom the replicas of a lost master follow, and who of them succeeds.
func TestLostMasters(t *testing.T) {
	s := away(time.Minute, 0, 2)
	second := *s.Find(0, 1)
	redis := *second.Redis
	second.Name, second.Ordinal, second.IP, second.Redis = "c-0-2", 2, podIP(0, 2), &redis
	redis.NodeID, redis.Offset = nodeID(0, 2), 5
	s.Instances = append(s.Instances, second)
	s.Find(1, 1).Redis.MasterID = ""
	in := ShapeOf(desired(), s, now).in
	if diff := cmp.Diff([]string{nodeID(0, 0), nodeID(2, 0)}, lostMasters(in.snap)); diff != "" {
		t.Error(diff)
	}
	best := func() string {
		if pod := bestReplica(ShapeOf(desired(), s, now).in, nodeID(0, 0)); pod != nil {
			return pod.Name
		}
		return ""
	}
	if got := best(); got != "c-0-2" {
		t.Errorf("got %s, want the one with more data", got)
	}
	s.Find(0, 1).Redis.Offset = 5
	if got := best(); got != "c-0-1" {
		t.Errorf("got %s, want the first of two that have the same", got)
	}
	s.Find(0, 1).Terminating = true
	if got := best(); got != "c-0-2" {
		t.Errorf("got %s, want the one that does not stop", got)
	}
	s.Find(0, 2).Redis.Master = true
	if got := best(); got != "" {
		t.Errorf("got %s, want nobody: the other one is a master", got)
	}
	// A master that says whom it followed before is nobody's replica.
	if diff := cmp.Diff([]string{nodeID(0, 0), nodeID(2, 0)}, lostMasters(s.Indexed())); diff != "" {
		t.Error(diff)
	}
	s.Find(0, 1).Redis.Master = true
	if diff := cmp.Diff([]string{nodeID(2, 0)}, lostMasters(s.Indexed())); diff != "" {
		t.Error(diff)
	}
	s.Find(0, 1).Redis.Master, s.Find(0, 1).Redis.MasterID, s.Find(1, 1).Redis.MasterID = false, "zz", nodeID(1, 0)
	if diff := cmp.Diff([]string{nodeID(2, 0), "zz"}, lostMasters(s.Indexed())); diff != "" {
		t.Error(diff)
	}
}
