// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// wandered is a cluster whose last shard owns nothing, and whose instances follow others.
func wandered() (Desired, *snapshot.Snapshot) {
	s := joined(4)
	for ordinal := range 2 {
		r := s.Find(3, ordinal).Redis
		r.Master, r.MasterID, r.MasterLinkUp = false, nodeID(0, 0), true
	}
	introduce(s)
	for i := range s.Instances {
		s.Claims = append(s.Claims, snapshot.Claim{Name: "data-" + s.Instances[i].Name})
	}
	return with(topologyOf(4)), s
}

func renews(step Step, pod string) bool {
	recreate, ok := step.(Recreate)
	return ok && recreate.Pod == pod
}

// A shard that has no master renews an instance of its own only if others have what it holds.
func TestRegain(t *testing.T) {
	rule := func(in input) bool { return renews(planReturn(in), "c-3-0") }
	proven(t, wandered, rule, changes{
		"nothing has formed":                  func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"the spec does not ask for the shard": func(d *Desired, _ *snapshot.Snapshot) { d.Topology = topologyOf(3) },
		"somebody was not asked":              func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 1) },
		"a slot is owned by nobody":           func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Slots = slots.Range(1, 5460) },
		"a slot is owned twice":               func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Slots = slots.Of(0) },
		"another one of it is its master": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 1).Redis.Master, s.Find(3, 1).Redis.MasterID = true, ""
		},
		"it stops":                        func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Terminating = true },
		"it follows one of its own shard": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.MasterID = nodeID(3, 1) },
		"it follows nobody yet":           func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.MasterID = "" },
		"it is left alone":                func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Fenced = true },
		"it follows a replica of another shard": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.MasterID, s.Find(3, 0).Redis.MasterLinkUp = nodeID(0, 1), false
		},
	}, changes{
		"it follows a node that is gone": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.MasterID = "gone" },
	})
}

// A replica that follows a master of another shard takes over when that is not its shard's own master.
func TestReturnBySwitchover(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d, s := wandered()
		promoted := s.Find(0, 1).Redis // a second master beside the one of shard 0, which the last shard's instance follows
		promoted.Master, promoted.MasterID = true, ""
		s.Find(3, 0).Redis.MasterID = nodeID(0, 1)
		introduce(s)
		return d, s
	}
	rule := func(in input) bool {
		step, ok := planReturn(in).(Switchover)
		return ok && step.Master.Pod == "c-0-1" && step.Replica.Pod == "c-3-0"
	}
	proven(t, situation, rule, changes{
		"it is not linked": func(_ *Desired, s *snapshot.Snapshot) { unsynced(s, 3, 0) },
		"it stops":         func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Terminating = true },
		"it is left alone": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Fenced = true },
		"it thinks of other slots": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-3-0", "c-0-1", func(p *snapshot.Peer) { p.Slots = slots.Of(7) })
		},
		"it is a master itself, though it says whom it followed": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Master, s.Find(3, 0).Redis.Keys = true, 1
		},
		"it is of another shard, which has a master": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.MasterID = nodeID(0, 0)
			s.Find(2, 1).Redis.MasterID = nodeID(0, 1)
		},
		"the other one is of its own shard": func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 1).Shard = 3 },
	}, nil)
	proven(t, situation, func(in input) bool { return Is[Switchover](planReturn(in)) }, changes{
		"an instance of a shard that has a master follows it": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.MasterID, s.Find(2, 1).Redis.MasterID = nodeID(0, 0), nodeID(0, 1)
		},
	}, nil)
}

// A master without slots is only said to hold keys if they are nobody's.
func TestMasterlessShardWithKeys(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		d, s := wandered()
		s.Find(3, 0).Redis.Master, s.Find(3, 0).Redis.MasterID, s.Find(3, 0).Redis.Keys = true, "", 1
		return d, s
	}
	rule := func(in input) bool {
		stall, ok := in.regain(3, in.snap.Masters()).(Stall)
		return ok && stall.BlockedBy == NoUnownedKeys && containsWhy(stall, "c-3-0 owns no slot and holds 1 keys")
	}
	proven(t, situation, rule, changes{
		"it has none": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 0 },
		"it is receiving a slot": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Importing = map[uint16]string{7: nodeID(0, 0)}
		},
		"it is giving a slot": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Migrating = map[uint16]string{7: nodeID(0, 0)}
		},
		"it is a replica": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Master = false },
	}, nil)
	proven(t, situation, func(in input) bool { _, stalls := in.regain(3, in.snap.Masters()).(Stall); return stalls }, changes{
		"it is to go":     func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 2, 2, 0} },
		"it holds no key": func(_ *Desired, s *snapshot.Snapshot) { s.Find(3, 0).Redis.Keys = 0 },
	}, nil)
	// Nor are they thrown away.
	proven(t, situation, func(in input) bool { return !renews(in.regain(3, in.snap.Masters()), "c-3-0") }, nil, changes{
		"they are of a slot that it receives, and it says whom it followed": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(3, 0).Redis.Importing, s.Find(3, 0).Redis.MasterID = map[uint16]string{7: nodeID(0, 0)}, nodeID(0, 0)
		},
	})
}

// Who is made to follow the master of the shard.
func TestReplicates(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		s := formed()
		s.Find(1, 1).Redis.Master, s.Find(1, 1).Redis.MasterID = true, ""
		s.Claims = []snapshot.Claim{{Name: "data-c-1-1"}}
		introduce(s)
		return desired(), s
	}
	rule := func(in input) bool {
		step, ok := planReplicate(in).(Replicate)
		return ok && len(step.Replications) == 1 && step.Replications[0].Replica.Pod == "c-1-1" && step.Replications[0].MasterID == nodeID(1, 0)
	}
	marks := map[uint16]string{7: nodeID(0, 0)}
	proven(t, situation, rule, changes{
		"it owns a slot":                          func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Slots = slots.Of(16000) },
		"it stops":                                func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"it is left alone":                        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Fenced = true },
		"it does not know an owner":               func(_ *Desired, s *snapshot.Snapshot) { delete(s.Find(1, 1).Redis.Peers, nodeID(2, 0)) },
		"it is to go, and holds nothing":          func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 1, 2} },
		"it has keys, which may be nobody else's": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Keys = 1 },
		"it does not know the master's address": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-1-0", func(p *snapshot.Peer) { p.IP = "10.9.9.9" })
		},
		"the shard has no master": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 1, 0) },
		"it has not heard who owns some slots": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-2-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
		},
		"somebody gives it a slot, which its marks are of": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Importing, s.Find(0, 0).Redis.Migrating = marks, map[uint16]string{7: nodeID(1, 1)}
		},
		"it has marks, and a slot has two owners": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Importing, s.Find(2, 0).Redis.Slots = marks, slots.Range(10000, 16383)
		},
	}, changes{
		"it has not heard who owns some slots, and does not reach the owner": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-2-0", func(p *snapshot.Peer) { p.Slots, p.Suspected = slots.Set{}, true })
		},
		"nor the owner's link is up": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-2-0", func(p *snapshot.Peer) { p.Slots, p.Connected = slots.Set{}, false })
		},
		"the owner has failed": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-2-0", func(p *snapshot.Peer) { p.Slots, p.Failed = slots.Set{}, true })
		},
		"it has heard of another owner": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-2-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
			peer(s, "c-1-1", "c-0-0", func(p *snapshot.Peer) { p.Slots = slots.All() })
		},
		"it is a replica, and has not heard who owns some slots": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Master, s.Find(1, 1).Redis.MasterID = false, nodeID(0, 0)
			peer(s, "c-1-1", "c-2-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
		},
		"it has the marks of an old copy without keys": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Importing = marks },
		"it follows another's master": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Master, s.Find(1, 1).Redis.MasterID, s.Find(1, 1).Redis.Keys = false, nodeID(0, 0), 7
			s.Find(1, 1).Redis.Importing = marks
		},
	})
	proven(t, situation, func(in input) bool { return !renews(planReplicate(in), "c-1-1") }, changes{
		"an old copy with a key is renewed": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).Redis.Importing, s.Find(1, 1).Redis.Keys = marks, 1
		},
	}, changes{
		"a key without marks may be nobody else's": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Keys = 1 },
	})
}

// Pods of lost nodes are let go only when nobody sees their instance alive.
func TestForceDelete(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		return desired(), stuck(1, 1, terminationTimeout)
	}
	proven(t, situation, func(in input) bool { return planForceDelete(in) != nil }, changes{
		"nothing has formed":      func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"slots are not covered":   func(_ *Desired, s *snapshot.Snapshot) { lose(s, 0, 0) },
		"it answers":              func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis = fresh().Find(1, 1).Redis },
		"it is not to stop":       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = false },
		"it is left alone":        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Fenced = true },
		"until when is not known": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).StopBy = time.Time{} },
		"it has a second more": func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(1, 1).StopBy = now.Add(time.Second - terminationTimeout)
		},
		"somebody sees it alive": func(_ *Desired, s *snapshot.Snapshot) {
			p := s.Find(2, 0).Redis.Peers[nodeID(1, 1)]
			p.Failed = false
			s.Find(2, 0).Redis.Peers[nodeID(1, 1)] = p
		},
	}, nil)
}

// Damaged files are thrown away only while a master of the shard has their data.
func TestRecreateDamaged(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		return desired(), damaged(1, 1, corruptions[0], snapshot.Claim{Name: "data-c-1-1"})
	}
	proven(t, situation, func(in input) bool { return renews(planRecreate(in), "c-1-1") }, changes{
		"nothing has formed":      func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"slots are not covered":   func(_ *Desired, s *snapshot.Snapshot) { lose(s, 0, 0) },
		"its shard has no master": func(_ *Desired, s *snapshot.Snapshot) { giveShard(s, 1, 0) },
		"it answers":              func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis = fresh().Find(1, 1).Redis },
		"it may run":              func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Failing = false },
		"it is left alone":        func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Fenced = true },
		"it stops":                func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Terminating = true },
		"it is to go":             func(d *Desired, _ *snapshot.Snapshot) { d.Topology = []int32{2, 1, 2} },
		"it ended otherwise":      func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).TerminationMessage = "out of memory" },
		"its claim is not known":  func(_ *Desired, s *snapshot.Snapshot) { s.Claims = nil },
	}, nil)
	// One that cannot be renewed does not hold back another one that can.
	proven(t, situation, func(in input) bool { return renews(planRecreate(in), "c-1-1") }, nil, changes{
		"an earlier one cannot be": func(_ *Desired, s *snapshot.Snapshot) {
			other := damaged(0, 1, corruptions[0]).Find(0, 1)
			*s.Find(0, 1) = *other
		},
		"a later one cannot be": func(_ *Desired, s *snapshot.Snapshot) { *s.Find(2, 1) = *damaged(2, 1, corruptions[0]).Find(2, 1) },
	})
}

// giveShard moves all slots of a shard's master to another's.
func giveShard(s *snapshot.Snapshot, from, to int) {
	source, target := s.Find(from, 0).Redis, s.Find(to, 0).Redis
	target.Slots, source.Slots = target.Slots.Union(source.Slots), slots.Set{}
}

// Two copies are a person's to choose from, once it is certain that there are two.
func TestAmbiguous(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) {
		return desired(), forgetful([2]int{1, 0})
	}
	names := func(in input) bool {
		stall, ok := planAmbiguous(in).(Stall)
		return ok && containsWhy(stall, "c-1-0 has lost its nodes.conf") && containsWhy(stall, "c-1-1 may hold another copy")
	}
	proven(t, situation, names, changes{
		"somebody was not asked":      func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
		"it stops":                    func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Terminating = true },
		"nobody has the other's data": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterID = nodeID(0, 0) },
		"it claims nothing":           func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Redis.Slots = slots.Set{} },
	}, nil)
}

// What is set aside is so for deciding: what was seen stays as it was seen.
func TestWhatWasSeenStays(t *testing.T) {
	s := forgetful([2]int{1, 0})
	before := s.Find(1, 0).Redis.Slots
	if in := ShapeOf(desired(), s, now).in; !in.snap.Find(1, 0).Redis.Slots.IsEmpty() || !s.Find(1, 0).Redis.Slots.Equal(before) {
		t.Errorf("seen %s, decided by %s", s.Find(1, 0).Redis.Slots, in.snap.Find(1, 0).Redis.Slots)
	}
}

// Slots without an owner stay so while volumes that had data are empty, until a person gives that up.
func TestEmptied(t *testing.T) {
	situation := func() (Desired, *snapshot.Snapshot) { d := desired(); d.ClaimBytes = 1 << 30; return d, shardLost() }
	rule := func(in input) bool { stall, ok := planAssign(in).(Stall); return ok && stall.Cause == "DataLost" }
	both := func(change func(string, *snapshot.Instance, *snapshot.Snapshot)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) {
			for ordinal := range 2 {
				change(s.Find(1, ordinal).Name, s.Find(1, ordinal), s)
			}
		}
	}
	proven(t, situation, rule, changes{
		"nothing has formed":             func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"data goes with the pods":        func(d *Desired, _ *snapshot.Snapshot) { d.Ephemeral = true },
		"all claims are other ones":      func(_ *Desired, s *snapshot.Snapshot) { renewClaim(s, "c-1-0", "c-1-1") },
		"none is known to have had data": both(func(name string, _ *snapshot.Instance, s *snapshot.Snapshot) { delete(s.DataVolumes, name) }),
		"the data was given up":          both(func(name string, _ *snapshot.Instance, s *snapshot.Snapshot) { s.DataVolumes[name] = "" }),
		"they hold keys":                 both(func(_ string, pod *snapshot.Instance, _ *snapshot.Snapshot) { pod.Redis.Keys = 1 }),
		"they are receiving slots": both(func(_ string, pod *snapshot.Instance, _ *snapshot.Snapshot) {
			pod.Redis.Importing = map[uint16]string{7: nodeID(0, 0)}
		}),
	}, changes{
		"of one of the two": func(_ *Desired, s *snapshot.Snapshot) { renewClaim(s, "c-1-0") },
	})
	all := func() (Desired, *snapshot.Snapshot) { d := desired(); d.ClaimBytes = 1 << 30; return d, wiped() }
	proven(t, all, func(in input) bool { return len(in.emptied()) == 6 }, changes{
		"one has a key": func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis.Keys = 1 },
	}, changes{
		"which were not known":    func(_ *Desired, s *snapshot.Snapshot) { s.DataVolumes = nil },
		"which are others by now": func(_ *Desired, s *snapshot.Snapshot) { renewClaim(s, "c-0-0", "c-1-0") },
	})
	all2 := func() (Desired, *snapshot.Snapshot) {
		d, s := all()
		s.DataVolumes = nil
		s.Find(0, 0).Redis.Keys = 1
		return d, s
	}
	proven(t, all2, func(in input) bool { return len(in.emptied()) == 0 }, nil, nil)
}

// An empty instance of a healthy cluster has lost nothing.
func TestNothingIsLostWhileAllSlotsAreOwned(t *testing.T) {
	s := stored(joined(4))
	if step := planAssign(ShapeOf(with(topologyOf(4)), s, now).in); step != nil {
		t.Errorf("all slots are owned, and got %+v", step)
	}
}

// A replica that stops succeeds nobody, and another shard's lost master is succeeded all the same.
func TestPromotesNobodyWhoStops(t *testing.T) {
	d, s := stayAway()
	s.Find(0, 1).Terminating = true
	if step, ok := planPromote(ShapeOf(d, s, now).in).(Promote); !ok || step.Replica.Pod != "c-2-1" {
		t.Errorf("got %+v, want a promotion of c-2-1", step)
	}
}

// A replica that looks for its master where that was is told of it again, or starts again where it does not listen.
func TestReplicaLooksElsewhere(t *testing.T) {
	for name, tt := range map[string]struct {
		engine, at string
		since      time.Duration
		want       string
	}{
		"redis":                    {"redis", "10.7.7.7", time.Second, "Replicate"},
		"valkey":                   {"valkey", "10.7.7.7", time.Minute, "Restart"},
		"valkey, for a while":      {"valkey", "10.7.7.7", electionTimeout, "Wait"},
		"at its present address":   {"redis", podIP(1, 0), time.Minute, "Wait"},
		"who knows where it looks": {"redis", "", time.Minute, "Wait"},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := healthy()
			r := s.Find(1, 1).Redis
			r.Engine, r.MasterLinkUp, r.MasterIP, r.MasterLinkDownFor = tt.engine, false, tt.at, tt.since
			if got := decide(d, s, now).Step; got.Name() != tt.want {
				t.Errorf("%s: %s", got.Name(), got.Why())
			}
		})
	}
	situation := func() (Desired, *snapshot.Snapshot) {
		d, s := healthy()
		s.Find(1, 1).Redis.MasterLinkUp, s.Find(1, 1).Redis.MasterIP = false, "10.7.7.7"
		return d, s
	}
	proven(t, situation, func(in input) bool { return looksElsewhere(in.snap.Find(1, 1), in.snap.Find(1, 0)) }, changes{
		"it is a master":       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.Master = true },
		"it is linked":         func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterLinkUp = true },
		"where is not known":   func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterIP = "" },
		"it looks where it is": func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 1).Redis.MasterIP = podIP(1, 0) },
		"it has not heard of the present address": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-1-0", func(p *snapshot.Peer) { p.IP = "10.7.7.7" })
		},
	}, nil)
}
