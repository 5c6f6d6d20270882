// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

func outsideOf(t v1alpha1.Topology, leaving ...snapshot.Leaving) snapshot.Outside {
	return snapshot.Outside{Instances: t, Leaving: leaving}
}

// Gateways are told of all instances that there are or are to be, and of those that are gone for as long as clients may not know.
func TestWhomGatewaysAreToldOf(t *testing.T) {
	gone := func(shard, ordinal int, left time.Duration) snapshot.Leaving {
		return snapshot.Leaving{Shard: shard, Ordinal: ordinal, Until: now.Add(left)}
	}
	three := func(leaving ...snapshot.Leaving) snapshot.Outside { return outsideOf(topologyOf(3), leaving...) }
	for name, tt := range map[string]struct {
		desired, existing v1alpha1.Topology
		before, want      snapshot.Outside
	}{
		"none before":                    {topologyOf(3), topologyOf(3), snapshot.Outside{}, three()},
		"a shard is asked for":           {topologyOf(4), topologyOf(3), three(), outsideOf(topologyOf(4))},
		"a shard is to go, and is there": {topologyOf(3), topologyOf(4), outsideOf(topologyOf(4)), outsideOf(topologyOf(4))},
		"a shard is gone": {topologyOf(3), topologyOf(3), outsideOf(topologyOf(4)),
			three(gone(3, 0, LeavesAfter), gone(3, 1, LeavesAfter))},
		"and was a while ago": {topologyOf(3), topologyOf(3), three(gone(3, 0, time.Second)), three(gone(3, 0, time.Second))},
		"and was long ago":    {topologyOf(3), topologyOf(3), three(gone(3, 0, 0)), three()},
		"and is back":         {topologyOf(4), topologyOf(3), three(gone(3, 0, time.Second)), outsideOf(topologyOf(4))},
		"a replica is gone":   {topologyOf(3), topologyOf(3), outsideOf(v1alpha1.Topology{2, 3, 2}), three(gone(1, 2, LeavesAfter))},
		"instances of two shards are gone": {topologyOf(3), topologyOf(3), three(gone(3, 0, time.Second), gone(4, 0, time.Second)),
			three(gone(3, 0, time.Second), gone(4, 0, time.Second))},
		"who writes the status says both": {topologyOf(3), topologyOf(3), outsideOf(topologyOf(4), gone(3, 0, time.Second)),
			three(gone(3, 0, time.Second), gone(3, 1, LeavesAfter))},
		"more shards than there are ports for": {topologyOf(int(v1alpha1.MaxExternalInstances) + 1), topologyOf(3), snapshot.Outside{},
			outsideOf(topologyOf(int(v1alpha1.MaxExternalInstances)))},
		"who writes the status cannot keep it": {topologyOf(3), topologyOf(3), three(gone(4, 0, time.Hour)),
			three(gone(4, 0, LeavesAfter))},
	} {
		s := formed()
		for shard := len(s.Shards); shard < len(tt.existing); shard++ {
			s.Shards = append(s.Shards, snapshot.Shard{Index: shard, Replicas: tt.existing[shard]})
		}
		s.External = &snapshot.External{Outside: tt.before}
		d := with(tt.desired)
		d.External = true
		if got := ShapeOf(d, s, now).Outside; got == nil || !cmp.Equal(*got, tt.want) {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		d.External = false
		if got := ShapeOf(d, s, now).Outside; got != nil {
			t.Errorf("%s: nobody outside is let in, and gateways are told of %+v", name, got)
		}
	}
	d := with(topologyOf(3))
	d.External = true
	if got := ShapeOf(d, formed(), now).Outside; got == nil || !cmp.Equal(*got, three()) {
		t.Errorf("nothing was written down: %+v", got)
	}
}

// Slots move to a shard, and a replica follows a master, when clients outside reach them through every gateway that leads some.
func TestSlotsMoveToWhoIsServedOutside(t *testing.T) {
	gateway := func(change func(*snapshot.Gateway)) []snapshot.Gateway {
		g := snapshot.Gateway{Pod: "g-1", Ready: true, Map: "new"}
		change(&g)
		return []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "new"}, g}
	}
	for name, tt := range map[string]struct {
		gateways []snapshot.Gateway
		served   v1alpha1.Topology
		unknown  bool
		why      string // empty: slots move
	}{
		"all lead there": {gateway(func(*snapshot.Gateway) {}), topologyOf(3), false, ""},
		"one has the map of before": {gateway(func(g *snapshot.Gateway) { g.Map = "old" }), topologyOf(3), false,
			"clients outside do not reach instance 0 of shard 3 through gateway g-1: its map, which takes up to two minutes"},
		"one has, and is not ready": {gateway(func(g *snapshot.Gateway) { g.Map, g.Ready = "old", false }), topologyOf(3), false,
			"gateway g-1: its map"},
		"one does not know the address": {gateway(func(g *snapshot.Gateway) { g.Unknown = []snapshot.Numbered{{Shard: 3, Ordinal: 1}} }),
			topologyOf(3), false, "instance 1 of shard 3 through gateway g-1: it does not know its address yet"},
		"one does not know others": {gateway(func(g *snapshot.Gateway) { g.Unknown = []snapshot.Numbered{{Shard: 0, Ordinal: 1}, {Shard: 7}} }),
			topologyOf(3), false, ""},
		"one does not know whom there is not": {gateway(func(g *snapshot.Gateway) { g.Unknown = []snapshot.Numbered{{Shard: 3, Ordinal: 2}} }),
			topologyOf(3), false, ""},
		"one has not said anything": {gateway(func(g *snapshot.Gateway) { g.Map = "" }), topologyOf(3), false, "it has not said yet"},
		"one does not run": {gateway(func(g *snapshot.Gateway) { g.Map, g.Ready, g.Waiting = "", false, "CrashLoopBackOff" }), topologyOf(3),
			false, ""},
		"one starts": {gateway(func(g *snapshot.Gateway) { g.Map, g.Ready, g.Starting = "", false, true }), topologyOf(3), false,
			"it has not said yet"},
		"one ends": {gateway(func(g *snapshot.Gateway) { g.Map, g.Ready, g.EndsBy = "", false, now.Add(time.Minute) }), topologyOf(3), false,
			"it ends, until 2026-11-21T12:01:00Z"},
		"one was to have ended":    {gateway(func(g *snapshot.Gateway) { g.Map, g.Ready, g.EndsBy = "", false, now }), topologyOf(3), false, ""},
		"the address is not known": {gateway(func(*snapshot.Gateway) {}), topologyOf(3), true, "their Service has no address yet"},
		"there are no gateways":    {nil, topologyOf(3), false, ""},
		"none ever led clients":    {gateway(func(g *snapshot.Gateway) { g.Map = "old" }), nil, false, ""},
		"all led there once":       {gateway(func(g *snapshot.Gateway) { g.Map = "old" }), topologyOf(4), false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			d := with(topologyOf(4))
			s := recorded(d, joined(4))
			d.External, s.External = true, &snapshot.External{Served: tt.served, Gateways: tt.gateways}
			pending := Pending{Map: "new"}
			if tt.unknown {
				pending.Map = ""
			}
			step := ShapeOf(d, s, now).Next(pending).Step
			if tt.why == "" && !Is[MoveSlots](step) || tt.why != "" && (blockedBy(step) != ServedOutside || !strings.Contains(step.Why(), tt.why)) {
				t.Errorf("%s: %s", step.Name(), step.Why())
			}
		})
	}
}

// Slots move without a look at gateways when nobody outside is let in, nothing is known of that, or all have led to the shard before.
func TestGatewaysThatDoNotMatterHoldUpNothing(t *testing.T) {
	behind := []snapshot.Gateway{{Pod: "g", Ready: true, Map: "old"}}
	for name, tt := range map[string]struct {
		letIn bool
		is    *snapshot.External
	}{
		"nobody is let in":   {false, &snapshot.External{Served: topologyOf(3), Gateways: behind}},
		"nothing is known":   {true, nil},
		"all led there once": {true, &snapshot.External{Served: topologyOf(4), TooMany: true}},
	} {
		d := with(topologyOf(4))
		s := recorded(d, joined(4))
		d.External, s.External = tt.letIn, tt.is
		if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; !Is[MoveSlots](step) {
			t.Errorf("%s: %s: %s", name, step.Name(), step.Why())
		}
	}
}

// Gateways that stay behind are waited for, and not for ever; nor is it taken for well that there are more than can be asked.
func TestGatewaysAreWaitedForForAWhile(t *testing.T) {
	d := with(topologyOf(4))
	s := recorded(d, joined(4))
	d.External = true
	for waits, e := range map[bool]snapshot.External{
		true:  {Since: now.Add(-ServedWithin + 1), Gateways: []snapshot.Gateway{{Pod: "g", Ready: true, Map: "old"}}},
		false: {Since: now.Add(-ServedWithin), Gateways: []snapshot.Gateway{{Pod: "g", Ready: true, Map: "old"}}},
	} {
		e.Served, s.External = topologyOf(3), &e
		if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; waits != (blockedBy(step) == ServedOutside) {
			t.Errorf("since %s: %s: %s", e.Since, step.Name(), step.Why())
		}
	}
	s.External = &snapshot.External{Served: topologyOf(3), TooMany: true, Gateways: []snapshot.Gateway{{Pod: "g", Ready: true, Map: "new"}}}
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; blockedBy(step) != ServedOutside {
		t.Errorf("too many: %s: %s", step.Name(), step.Why())
	}
	four := outsideOf(topologyOf(4))
	if got := ServedAfter(s.External, &four, "new", now); !cmp.Equal(got, topologyOf(3)) {
		t.Errorf("too many, and written down as served: %v", got)
	}
}

// grown is a cluster with clients outside whose first shard has an instance more, that its gateway has not heard of.
func grown() (Desired, *snapshot.Snapshot) {
	d, s := with(v1alpha1.Topology{3, 2, 2}), formed()
	s.Shards[0].Replicas = 3
	s.Instances = append(s.Instances, snapshot.Instance{Name: "c-0-2", Ordinal: 2, IP: podIP(0, 2), NodeName: "node0", Ready: true,
		Redis: &snapshot.Redis{NodeID: nodeID(0, 2), Master: true, ClusterOK: true, Peers: map[string]snapshot.Peer{}}})
	introduce(s)
	d.External = true
	s.External = &snapshot.External{Served: topologyOf(3), Gateways: []snapshot.Gateway{{Pod: "g-0", Ready: true, Map: "old"}}}
	return d, s
}

// A replica that clients outside do not reach yet is not told to them; what heals a cluster goes on, and an old one follows at once.
func TestReplicasAreServedOutsideFirst(t *testing.T) {
	d, s := grown()
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; blockedBy(step) != ServedOutside {
		t.Errorf("before: %s: %s", step.Name(), step.Why())
	}
	s.External.Gateways[0].Map = "new"
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; !Is[Replicate](step) {
		t.Errorf("served: %s: %s", step.Name(), step.Why())
	}
	d, s = grown()
	d.Problems = []string{"spec.version: is none"}
	if step := ShapeOf(d, s, now).Next(Pending{}).Step; !Is[Replicate](step) {
		t.Errorf("with a spec that is not valid: %s: %s", step.Name(), step.Why())
	}
	d, s = grown()
	s.External.Served = v1alpha1.Topology{3, 2, 2}
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; !Is[Replicate](step) {
		t.Errorf("one that has lost its data: %s: %s", step.Name(), step.Why())
	}
	d, s = grown()
	last := s.Find(0, 2)
	last.Name, last.Ordinal = "c-0-10", int(v1alpha1.MaxExternalPerShard)
	d.Topology[0], s.Shards[0].Replicas = v1alpha1.MaxExternalPerShard+1, v1alpha1.MaxExternalPerShard+1
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; !Is[Replicate](step) {
		t.Errorf("one that gateways are never told of: %s: %s", step.Name(), step.Why())
	}
}

// Only who is about to follow its shard's master waits for gateways: who follows it already, or will not, holds up nothing.
func TestWhoDoesNotFollowIsNotServedFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*Desired, *snapshot.Snapshot)
		waits  bool
	}{
		"it is about to follow": {func(*Desired, *snapshot.Snapshot) {}, true},
		"it follows": {func(_ *Desired, s *snapshot.Snapshot) {
			s.Find(0, 2).Redis.Master, s.Find(0, 2).Redis.MasterID = false, nodeID(0, 0)
		}, false},
		"the master does not answer": {func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 0).Redis = nil }, false},
		"the master owns nothing yet": {func(_ *Desired, s *snapshot.Snapshot) {
			first, second := s.Find(0, 0).Redis, s.Find(1, 0).Redis
			first.Slots, second.Slots = slots.Set{}, second.Slots.Union(first.Slots)
		}, false},
		"it stops":    {func(_ *Desired, s *snapshot.Snapshot) { s.Find(0, 2).Terminating = true }, false},
		"it is to go": {func(d *Desired, _ *snapshot.Snapshot) { d.Topology[0] = 2 }, false},
		"it owns a slot": {func(_ *Desired, s *snapshot.Snapshot) {
			first := s.Find(0, 0).Redis
			first.Slots, s.Find(0, 2).Redis.Slots = first.Slots.Subtract(slots.Of(0)), slots.Of(0)
		}, false},
	} {
		d, s := grown()
		tt.change(&d, s)
		introduce(s)
		if step := planServed(ShapeOf(d, s, now).in); (step != nil) != tt.waits || tt.waits && blockedBy(step) != ServedOutside {
			t.Errorf("%s: %+v", name, step)
		}
	}
}

// What every gateway leads to by the map of now is written down; who left, and comes back, is to be seen again.
func TestWhatIsWrittenDownAsServed(t *testing.T) {
	g := func(is string, ready bool) snapshot.Gateway { return snapshot.Gateway{Pod: "g", Map: is, Ready: ready} }
	but := func(unknown ...snapshot.Numbered) []snapshot.Gateway {
		return []snapshot.Gateway{g("m", true), {Pod: "g", Map: "m", Ready: true, Unknown: unknown}}
	}
	four := outsideOf(topologyOf(4))
	for name, tt := range map[string]struct {
		served   v1alpha1.Topology
		gateways []snapshot.Gateway
		is       string
		want     v1alpha1.Topology
	}{
		"all of it":                      {topologyOf(3), []snapshot.Gateway{g("m", true), g("m", true)}, "m", topologyOf(4)},
		"not yet":                        {topologyOf(3), []snapshot.Gateway{g("m", true), g("l", true)}, "m", topologyOf(3)},
		"all but one":                    {topologyOf(3), but(snapshot.Numbered{Shard: 3, Ordinal: 1}), "m", v1alpha1.Topology{2, 2, 2, 1}},
		"one that was":                   {topologyOf(3), but(snapshot.Numbered{Shard: 1}), "m", topologyOf(4)},
		"none was, and one is not known": {nil, but(snapshot.Numbered{Shard: 1}), "m", v1alpha1.Topology{2, 0, 2, 2}},
		"not asked":                      {topologyOf(3), []snapshot.Gateway{g("", true)}, "m", topologyOf(3)},
		"not known":                      {topologyOf(3), []snapshot.Gateway{g("m", true)}, "", topologyOf(3)},
		"one does not run":               {topologyOf(3), []snapshot.Gateway{g("m", true), g("", false)}, "m", topologyOf(4)},
		"not asked, and not known":       {topologyOf(3), []snapshot.Gateway{g("", true)}, "", topologyOf(3)},
		"nobody leads":                   {nil, []snapshot.Gateway{g("", false)}, "m", nil},
		"nobody is":                      {nil, nil, "m", nil},
		"more than there were":           {topologyOf(5), nil, "m", topologyOf(4)},
	} {
		if got := ServedAfter(&snapshot.External{Served: tt.served, Gateways: tt.gateways}, &four, tt.is, now); !cmp.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	for name, got := range map[string]v1alpha1.Topology{
		"nothing is known":             ServedAfter(nil, &four, "m", now),
		"nobody outside is let in now": ServedAfter(&snapshot.External{Served: topologyOf(3)}, nil, "m", now),
	} {
		if got != nil {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What is refused for clients outside is told, and nothing inside waits for it.
func TestWhatIsRefusedOutsideHoldsUpNothing(t *testing.T) {
	d := with(topologyOf(3))
	d.External = true
	s := recorded(d, joined(3))
	told := ShapeOf(d, s, now).Next(Pending{Outside: "no"})
	if told.Stalled == nil || told.Stalled.Cause != "ExternalRefused" || told.Stalled.Why() != "no" {
		t.Errorf("%+v", told.Stalled)
	}
	s.Shards[0].Replicas = 1
	if step := ShapeOf(d, s, now).Next(Pending{Outside: "no", Children: []string{"StatefulSet c-0"}}).Step; !Is[ApplyChildren](step) {
		t.Errorf("%s: %s", step.Name(), step.Why())
	}
}

// Whoever is to take over from a master, or to receive slots, is known to all gateways at its address of now; for a while.
func TestWhoTakesOverIsKnownOutside(t *testing.T) {
	knows := func(at func(shard, ordinal int) string) snapshot.Gateway {
		all := map[snapshot.Numbered][]string{}
		for shard := range 4 {
			for ordinal := range 2 {
				all[snapshot.Numbered{Shard: shard, Ordinal: ordinal}] = []string{"2001:db8::1", at(shard, ordinal)}
			}
		}
		return snapshot.Gateway{Pod: "g-1", Ready: true, Addresses: all}
	}
	knowing, behind := knows(podIP), knows(func(int, int) string { return "10.9.9.9" })
	but := func(change func(*snapshot.Gateway)) snapshot.Gateway {
		g := behind
		change(&g)
		return g
	}
	waits := map[string]struct {
		second snapshot.Gateway
		change func(*Desired, *snapshot.Snapshot)
		why    string // empty: nobody waits
	}{
		"all know it": {second: knowing},
		"one knows the address of before": {second: behind,
			why: "at its address of now through gateway g-1: it does not know that address yet, which it looks up by DNS"},
		"one says nothing": {second: but(func(g *snapshot.Gateway) { g.Addresses = nil }), why: "it has not said yet at which addresses"},
		"one starts": {second: but(func(g *snapshot.Gateway) { g.Ready, g.Starting, g.Addresses = false, true, nil }),
			why: "it has not said yet"},
		"one does not run": {second: but(func(g *snapshot.Gateway) { g.Ready, g.Waiting, g.Addresses = false, "CrashLoopBackOff", nil })},
		"one ends": {second: but(func(g *snapshot.Gateway) { g.Ready, g.EndsBy, g.Addresses = false, now.Add(time.Minute), nil }),
			why: "it ends, until 2026-11-21T12:01:00Z"},
		"one was to have ended": {second: but(func(g *snapshot.Gateway) { g.Ready, g.EndsBy, g.Addresses = false, now, nil })},
		"for long": {second: behind, change: func(_ *Desired, s *snapshot.Snapshot) {
			for i := range s.Instances {
				s.Instances[i].IPSince = now.Add(-snapshot.KnownWithin)
			}
		}},
		"none ever led clients": {second: behind, change: func(_ *Desired, s *snapshot.Snapshot) { s.External.Served = nil }},
		"nobody is let in":      {second: behind, change: func(d *Desired, _ *snapshot.Snapshot) { d.External = false }},
		"there are too many": {second: knowing, change: func(_ *Desired, s *snapshot.Snapshot) { s.External.TooMany = true },
			why: "more gateways than can be asked"},
	}
	for situation, of := range map[string]struct {
		make func() (Desired, *snapshot.Snapshot)
		step string
	}{
		"a rollout": {func() (Desired, *snapshot.Snapshot) { return with(topologyOf(3)), outmoded(replicas...) }, "RemoveFromEndpoints"},
		"a request": {func() (Desired, *snapshot.Snapshot) {
			d := with(topologyOf(3))
			d.Switchover = "c-1-1"
			return d, placed("a", "b", "c", "b", "c", "a")
		}, "Switchover"},
		"fewer replicas": {func() (Desired, *snapshot.Snapshot) {
			return with(v1alpha1.Topology{1, 2, 2}), swapped(changed(formed, func(s *snapshot.Snapshot) { s.Shards[0].Replicas = 2 })(), 0)
		}, "Switchover"},
		"masters on one node": {func() (Desired, *snapshot.Snapshot) {
			d := with(topologyOf(3))
			d.SpreadMasters = true
			return d, placed("a", "a", "a", "b", "c", "d")
		}, "Switchover"},
		"slots that move": {func() (Desired, *snapshot.Snapshot) {
			d := with(topologyOf(4))
			return d, recorded(d, joined(4))
		}, "MoveSlots"},
	} {
		for name, tt := range waits {
			d, s := of.make()
			d.External = true
			s.External = &snapshot.External{Served: topologyOf(4), Gateways: []snapshot.Gateway{knowing, tt.second}}
			for i := range s.Instances {
				s.Instances[i].IPSince = now.Add(1 - snapshot.KnownWithin)
			}
			if tt.change != nil {
				tt.change(&d, s)
			}
			step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step
			switch told := situation != "masters on one node"; {
			case tt.why == "" && step.Name() != of.step, tt.why != "" && step.Name() == of.step,
				tt.why != "" && told && (blockedBy(step) != ServedOutside || !strings.Contains(step.Why(), tt.why)):
				t.Errorf("%s, %s: %s: %s", situation, name, step.Name(), step.Why())
			}
		}
	}
}

// What heals a cluster does not wait until clients outside reach who takes over.
func TestHealingWaitsForNobodyOutside(t *testing.T) {
	d, s := with(topologyOf(3)), formed()
	d.External = true
	s.External = &snapshot.External{Served: topologyOf(3), Gateways: []snapshot.Gateway{{Pod: "g", Ready: true}}}
	for i := range s.Instances {
		s.Instances[i].IPSince, s.Instances[i].Ready = now, true
	}
	s.Find(1, 0).Redis.PersistenceError = "aof_last_write_status:err"
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; !Is[Switchover](step) {
		t.Errorf("a disk is full: %s: %s", step.Name(), step.Why())
	}

	s.Find(1, 0).Redis.PersistenceError, d.Fenced = "", []string{"c-1-0"}
	if is := ShapeOf(d, unwilling(s), now).Next(Pending{Map: "new"}); !Is[None](is.Step) || len(is.Fences) != 1 ||
		!strings.Contains(is.Fences[0].Waits, "clients outside do not reach c-1-1 at its address of now") {
		t.Errorf("a master is to be fenced: %s: %s; %+v", is.Step.Name(), is.Step.Why(), is.Fences)
	}
	d.Problems = []string{"spec.version: is none"}
	if step := ShapeOf(d, s, now).Next(Pending{Map: "new"}).Step; !Is[Switchover](step) {
		t.Errorf("a master is to be fenced while the spec is not valid: %s: %s", step.Name(), step.Why())
	}
}

// Of replicas that may take over as well as each other in a planned switchover, one goes first whose address gateways know: no one waits.
func TestWhoIsKnownOutsideTakesOver(t *testing.T) {
	known := snapshot.Gateway{Pod: "g-0", Ready: true, Addresses: map[snapshot.Numbered][]string{}}
	for _, n := range []snapshot.Numbered{{Ordinal: 0}, {Ordinal: 2}} {
		known.Addresses[n] = []string{podIP(n.Shard, n.Ordinal)}
	}
	three := func() *snapshot.Snapshot {
		s := outmoded(replicas...)
		for shard := range 3 {
			s.Find(shard, 0).Revision = "new"
			s.Shards[shard].Replicas = 2
		}
		s.Shards[0].Replicas = 3
		third, redis := *s.Find(0, 1), *s.Find(0, 1).Redis
		third.Name, third.UID, third.Ordinal, third.IP, third.Redis = "c-0-2", "uid-c-0-2", 2, podIP(0, 2), &redis
		redis.NodeID = nodeID(0, 2)
		s.Instances = append(s.Instances, third)
		introduce(s)
		s.Find(0, 1).Redis.Offset, s.Find(0, 2).Redis.Offset = 10<<20, 9<<20
		s.Find(0, 1).IPSince = now
		s.External = &snapshot.External{Served: v1alpha1.Topology{3, 2, 2}, Gateways: []snapshot.Gateway{known}}
		return s
	}
	rollout := func(s *snapshot.Snapshot) Desired {
		s.Find(0, 0).Revision, s.Find(0, 0).InEndpoints = "old", false
		return with(v1alpha1.Topology{3, 2, 2})
	}
	for name, tt := range map[string]struct {
		change func(*snapshot.Snapshot, *Desired)
		want   string // who takes over; empty: it is waited for c-0-1
	}{
		"the other is known": {func(*snapshot.Snapshot, *Desired) {}, "c-0-2"},
		"both are": {func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).IPSince = now.Add(-snapshot.KnownWithin)
		}, "c-0-1"},
		"nobody is let in": {func(_ *snapshot.Snapshot, d *Desired) { d.External = false }, "c-0-1"},
		"none is": {func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 2).IP, s.Find(0, 2).IPSince = "10.9.9.9", now
		}, ""},
		"the other has less":       {func(s *snapshot.Snapshot, _ *Desired) { s.Find(0, 2).Redis.Offset = 9<<20 - 1 }, ""},
		"the other is not in sync": {func(s *snapshot.Snapshot, _ *Desired) { s.Find(0, 2).Redis.MasterLinkUp = false }, ""},
		"the other is not ready":   {func(s *snapshot.Snapshot, _ *Desired) { s.Find(0, 2).Ready = false }, ""},
		"the other is about to be restarted": {func(s *snapshot.Snapshot, _ *Desired) {
			s.Find(0, 1).Revision, s.Find(0, 2).Revision = "old", "old"
			s.Find(0, 2).InEndpoints, s.Find(0, 2).RemovedFromEndpointsAt = false, now
		}, ""},
		"the other stops":                     {func(s *snapshot.Snapshot, _ *Desired) { s.Find(0, 2).Terminating = true }, ""},
		"the other is restarted itself later": {func(s *snapshot.Snapshot, _ *Desired) { s.Find(0, 2).Revision = "old" }, ""},
	} {
		s := three()
		d := rollout(s)
		d.External = true
		tt.change(s, &d)
		in := ShapeOf(d, s, now).in
		step := switchOver(in, s.Find(0, 0))
		if got, is := step.(Switchover); is != (tt.want != "") || is && got.Replica.Pod != tt.want ||
			!is && blockedBy(step) != ServedOutside {
			t.Errorf("a rollout, %s: %s: %s", name, step.Name(), step.Why())
		}
	}
	s := three()
	d := with(v1alpha1.Topology{3, 2, 2})
	d.External = true
	if got, is := switchover(ShapeOf(d, s, now).in, s.Find(0, 0)).(Switchover); !is || got.Replica.Pod != "c-0-2" {
		t.Errorf("fewer replicas: %+v", got)
	}
	s = three()
	d = rollout(s)
	d.External = true
	s.Find(0, 1).Redis.MasterLinkUp, s.Find(0, 2).Redis.MasterLinkUp = false, false
	if step := switchOver(ShapeOf(d, s, now).in, s.Find(0, 0)); blockedBy(step) != ReplicaInSync {
		t.Errorf("none is in sync: %s: %s", step.Name(), step.Why())
	}
}

// What heals goes by the data alone, whoever is known outside: an instance that stops appoints its successor by the same order, and two
// that choose must not choose two.
func TestWhoSucceedsIsNotChosenByGateways(t *testing.T) {
	s := away(time.Minute, 0, 2)
	third, redis := *s.Find(0, 1), *s.Find(0, 1).Redis
	third.Name, third.Ordinal, third.IP, third.Redis = "c-0-2", 2, podIP(0, 2), &redis
	redis.NodeID = nodeID(0, 2)
	s.Instances = append(s.Instances, third)
	s.Find(0, 1).IPSince = now
	s.External = &snapshot.External{Served: topologyOf(3), Gateways: []snapshot.Gateway{{Pod: "g", Ready: true,
		Addresses: map[snapshot.Numbered][]string{{Ordinal: 2}: {podIP(0, 2)}}}}}
	d := desired()
	d.External = true
	in := ShapeOf(d, s, now).in
	if in.knownOutside(s.Find(0, 1)).Holds || !in.knownOutside(s.Find(0, 2)).Holds {
		t.Fatal("the first is known, or the second is not")
	}
	if best := bestReplica(in, nodeID(0, 0)); best == nil || best.Name != "c-0-1" {
		t.Errorf("chosen is %+v", best)
	}
}
