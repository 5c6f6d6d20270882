// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// given are the slots that c-1-0 takes c-3-0, which owns nothing, for the owner of.
var given = slots.Range(10915, 10922)

// givenAway is a cluster all of whose other instances take c-1-0 for the owner of these slots, which has lasted for long enough.
func givenAway() (Desired, *snapshot.Snapshot) {
	s := joined(4)
	owner := s.Find(1, 0).Redis
	owner.Slots = owner.Slots.Subtract(given)
	peer(s, "c-1-0", "c-3-0", func(p *snapshot.Peer) { p.Slots = given })
	for _, in := range s.Reachable() {
		in.Redis.OpenKeys, in.Redis.NodeTimeout = map[uint16]int64{}, 5*time.Second
	}
	s.Disowned, s.DisownedSince = given, now.Add(-20*time.Second)
	return with(topologyOf(4)), s
}

func reclaims(in input, want slots.Set) bool {
	step, _ := planReclaim(in).(ReclaimSlots)
	return len(step.Claims) == 1 && step.Claims[0].On.Pod == "c-1-0" && step.Claims[0].Slots.Equal(want)
}

// A master is told that slots are its own only if nobody has claimed them for long, nobody names another one, and nobody else has data of
// them; of all that could be, everybody was asked.
func TestReclaimSlots(t *testing.T) {
	names := func(on string, change func(*snapshot.Peer)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) { peer(s, on, "c-1-0", change) }
	}
	of := func(shard, ordinal int, change func(*snapshot.Redis)) func(*Desired, *snapshot.Snapshot) {
		return func(_ *Desired, s *snapshot.Snapshot) { change(s.Find(shard, ordinal).Redis) }
	}
	proven(t, givenAway, func(in input) bool { return reclaims(in, given) }, changes{
		"a new cluster":               func(_ *Desired, s *snapshot.Snapshot) { s.Formed = false },
		"not for long enough":         func(_ *Desired, s *snapshot.Snapshot) { s.DisownedSince = now.Add(-19 * time.Second) },
		"others were":                 func(_ *Desired, s *snapshot.Snapshot) { s.Disowned = slots.Of(7) },
		"a longer node timeout":       of(2, 1, func(r *snapshot.Redis) { r.NodeTimeout = 6 * time.Second }),
		"an instance does not answer": func(_ *Desired, s *snapshot.Snapshot) { lose(s, 2, 1) },
		"one that nobody knows does not answer": func(_ *Desired, s *snapshot.Snapshot) {
			lose(s, 2, 1)
			for _, in := range s.Reachable() {
				delete(in.Redis.Peers, nodeID(2, 1))
			}
		},
		"a pod is missing":               func(_ *Desired, s *snapshot.Snapshot) { s.Instances = s.Instances[:7] },
		"it is claimed by whom it names": of(3, 0, func(r *snapshot.Redis) { r.Slots = given }),
		"it is claimed by somebody else": of(2, 0, func(r *snapshot.Redis) { r.Slots = r.Slots.Union(given) }),
		"it is a replica":                of(1, 0, func(r *snapshot.Redis) { r.Master, r.MasterID = false, nodeID(1, 1) }),
		"it stops":                       func(_ *Desired, s *snapshot.Snapshot) { s.Find(1, 0).Terminating = true },
		"its replica takes over":         of(1, 1, func(r *snapshot.Redis) { r.SwitchoverAt = now }),
		"slots are moved by an engine":   of(2, 0, func(r *snapshot.Redis) { r.Jobs = make([]snapshot.Job, 1) }),
		"it receives them":               of(1, 0, func(r *snapshot.Redis) { r.Importing = imports(given) }),
		"the keys of one were not asked": of(3, 0, func(r *snapshot.Redis) { r.OpenKeys = nil }),
		"whom it names has keys":         of(3, 0, func(r *snapshot.Redis) { r.OpenKeys[10915] = 1 }),
		"another one has keys":           of(2, 0, func(r *snapshot.Redis) { r.OpenKeys[10922] = 1 }),
		"nobody names it": func(_ *Desired, s *snapshot.Snapshot) {
			for _, in := range s.Reachable() {
				if in.Name != "c-1-0" {
					peer(s, in.Name, "c-1-0", func(p *snapshot.Peer) { p.Slots = p.Slots.Subtract(given) })
				}
			}
		},
		"a master names whom it names": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-0-0", "c-3-0", func(p *snapshot.Peer) { p.Slots = given })
			peer(s, "c-0-0", "c-1-0", func(p *snapshot.Peer) { p.Slots = p.Slots.Subtract(given) })
		},
		"somebody takes it for a replica": names("c-2-0", func(p *snapshot.Peer) { p.Master = false }),
		"somebody suspects it":            names("c-2-0", func(p *snapshot.Peer) { p.Suspected = true }),
		"somebody takes it for failed":    names("c-2-0", func(p *snapshot.Peer) { p.Failed = true }),
		"somebody has no link to it":      names("c-2-0", func(p *snapshot.Peer) { p.Connected = false }),
		"somebody is meeting it":          names("c-2-0", func(p *snapshot.Peer) { p.Handshake = true }),
		"somebody does not know it":       of(2, 1, func(r *snapshot.Redis) { delete(r.Peers, nodeID(1, 0)) }),
		"it does not know somebody":       of(1, 0, func(r *snapshot.Redis) { delete(r.Peers, nodeID(2, 1)) }),
		"a node is known that does not answer": of(2, 0, func(r *snapshot.Redis) {
			r.Peers["gone"] = snapshot.Peer{ID: "gone", Slots: slots.Of(7)}
		}),
		"another instance of its shard has taken over": func(_ *Desired, s *snapshot.Snapshot) {
			owner, replica := s.Find(1, 0).Redis, s.Find(1, 1).Redis
			owner.Slots, replica.Slots, replica.Master, replica.MasterID = slots.Set{}, owner.Slots, true, ""
		},
	}, changes{
		"it names nobody": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-0", "c-3-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} })
		},
		"its replica says the same as it": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-1-1", "c-3-0", func(p *snapshot.Peer) { p.Slots = given })
			peer(s, "c-1-1", "c-1-0", func(p *snapshot.Peer) { p.Slots = p.Slots.Subtract(given) })
		},
		"a replica knows what was": func(_ *Desired, s *snapshot.Snapshot) {
			peer(s, "c-0-1", "c-3-0", func(p *snapshot.Peer) { p.Slots = given })
			peer(s, "c-0-1", "c-1-0", func(p *snapshot.Peer) { p.Slots = p.Slots.Subtract(given) })
		},
		"who has joined has heard of no owner": names("c-2-1", func(p *snapshot.Peer) { p.Slots = p.Slots.Subtract(given) }),
		"whom it names has heard of no owner":  names("c-3-0", func(p *snapshot.Peer) { p.Slots = slots.Set{} }),
		"it has keys itself":                   of(1, 0, func(r *snapshot.Redis) { r.OpenKeys[10915] = 1 }),
		"a replica has its master's keys":      of(1, 1, func(r *snapshot.Redis) { r.OpenKeys[10915] = 1 }),
		"a replica was not asked":              of(1, 1, func(r *snapshot.Redis) { r.OpenKeys = nil }),
		"a stranger is being met":              of(2, 0, func(r *snapshot.Redis) { r.Peers["x"] = snapshot.Peer{ID: "x", Handshake: true} }),
		"whom it names is to go, and all are done with it": func(d *Desired, s *snapshot.Snapshot) {
			d.Topology = topologyOf(3)
			peer(s, "c-3-0", "c-1-0", func(p *snapshot.Peer) { *p = snapshot.Peer{} })
		},
		"it owns nothing else": func(_ *Desired, s *snapshot.Snapshot) {
			rest := s.Find(1, 0).Redis.Slots
			s.Find(1, 0).Redis.Slots = slots.Set{}
			s.Find(2, 0).Redis.Slots = s.Find(2, 0).Redis.Slots.Union(rest)
			for _, in := range s.Reachable() {
				if in.Name != "c-1-0" {
					peer(s, in.Name, "c-1-0", func(p *snapshot.Peer) { p.Slots = given })
				}
			}
		},
	})
}

// imports marks slots as coming from c-3-0.
func imports(set slots.Set) map[uint16]string {
	marks := map[uint16]string{}
	for slot := range set.Slots() {
		marks[slot] = nodeID(3, 0)
	}
	return marks
}

// What becomes of slots that are disowned is told: what is waited for, and what a person has to say because keys are elsewhere. Of the
// slots without such keys it is said first.
func TestDisownedSlotsAreTold(t *testing.T) {
	for name, tt := range map[string]struct {
		change     func(*snapshot.Snapshot)
		step, why  string
		blockedBy  Predicate
		isToldOnly slots.Set
	}{
		"not for long": {func(s *snapshot.Snapshot) { s.DisownedSince = now.Add(-8 * time.Second) }, "Wait",
			"nobody claims slots 10915-10922, and all masters that know of an owner name c-1-0, which is told so if that lasts for 12s", OwnerNamed, slots.Set{}},
		"whom one names all name": {func(s *snapshot.Snapshot) { // who starts knows what was
			s.DisownedSince = now.Add(-8 * time.Second)
			peer(s, "c-0-1", "c-0-0", func(p *snapshot.Peer) { p.Slots = p.Slots.Union(given) })
		}, "Wait", "nobody claims slots 10915-10922, and all masters that know of an owner name c-1-0, which is told so if that lasts for 12s",
			OwnerNamed, slots.Set{}},
		"not everybody says so": {func(s *snapshot.Snapshot) {
			peer(s, "c-2-0", "c-3-0", func(p *snapshot.Peer) { p.Slots = given })
		}, "Wait", "nobody claims slots 10915-10922, and others name c-1-0 for their owner, and somebody else", OwnerNamed, slots.Set{}},
		"it receives them": {func(s *snapshot.Snapshot) { s.Find(1, 0).Redis.Importing = imports(given) }, "Wait",
			"nobody claims slots 10915-10922, which c-1-0 marks as those that it receives", OwnerNamed, slots.Set{}},
		"some have keys elsewhere": {func(s *snapshot.Snapshot) { s.Find(3, 0).Redis.OpenKeys[10915] = 1 }, "ReclaimSlots",
			"nobody claims slots 10916-10922, and all masters that know of an owner name c-1-0", "", slots.Range(10916, 10922)},
		"all have": {func(s *snapshot.Snapshot) {
			for slot := range given.Slots() {
				s.Find(2, 0).Redis.OpenKeys[slot] = 1
			}
		}, "Stall", "nobody claims slots 10915-10922, others name c-1-0 for their owner, and c-2-0 holds keys of them; " +
			"say CLUSTER SETSLOT SLOT NODE ID of each at the one whose keys are to stay, with its own ID", OwnerNamed, slots.Set{}},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := givenAway()
			tt.change(s)
			got := decide(d, s, now)
			var by Predicate
			switch step := got.Step.(type) {
			case Wait:
				by = step.BlockedBy
			case Stall:
				by = step.BlockedBy
			}
			if got.Step.Name() != tt.step || got.Step.Why() != tt.why || by != tt.blockedBy {
				t.Errorf("%s: %s (%s)", got.Step.Name(), got.Step.Why(), by)
			}
			if in := ShapeOf(d, s, now).in; !tt.isToldOnly.IsEmpty() && !reclaims(in, tt.isToldOnly) {
				t.Errorf("told %+v, want %s", got.Step, tt.isToldOnly)
			}
		})
	}
}

// When it is time to tell a master, nothing is waited for.
func TestReclaimIsDue(t *testing.T) {
	d, s := givenAway()
	if step := planAwaitReclaim(ShapeOf(d, s, now).in); step != nil {
		t.Errorf("%s: %s", step.Name(), step.Why())
	}
}
