// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// scale asks for another topology.
func (s *simulation) scale(shards, perShard int32) {
	s.cluster.Spec.Shards, s.cluster.Spec.Replicas = &shards, ptr.To(shards*perShard)
	s.say("--- %d shards of %d", shards, perShard)
}

// give asks for one shard more, which receives that many slots of each other shard.
func (s *simulation) give(slots int32) {
	var ids []string
	for shard := range s.cluster.Spec.ShardCount() {
		ids = append(ids, s.named(s.cluster.ShardName(int(shard))+"-0").node.ID())
	}
	s.cluster.Spec.UpdateStrategy = v1alpha1.SlotStrategy{Type: v1alpha1.AssignReceive,
		AssignStrategies: []v1alpha1.AssignStrategy{{Slots: slots * int32(len(ids)), FromReplicas: strings.Join(ids, ",")}}}
	perShard := *s.cluster.Spec.Replicas / s.cluster.Spec.ShardCount()
	s.scale(s.cluster.Spec.ShardCount()+1, perShard)
}

// takeBack asks for one shard less, after give.
func (s *simulation) takeBack() {
	s.cluster.Spec.UpdateStrategy = v1alpha1.SlotStrategy{}
	shards := s.cluster.Spec.ShardCount()
	s.scale(shards-1, *s.cluster.Spec.Replicas/shards)
}

// moving reports whether a command belongs to moving slots.
func moving(args []string) bool {
	return strings.EqualFold(args[0], "MIGRATE") || len(args) > 1 && strings.EqualFold(args[0], "CLUSTER") &&
		strings.Contains(strings.ToUpper(args[1]), "SLOT")
}

// Whatever the order of topologies, and whatever fails, the cluster gets there; no write
// that was acknowledged is lost, and no command fails as long as none of the operator's is
// made to fail.
func TestScales(t *testing.T) {
	eachSeed(t, 6, func(t *testing.T, seed uint64) { scales(t, seed, nil) })
}

// scales changes the topology again and again. onStart is called before anything happens, if it is not nil.
func scales(t *testing.T, seed uint64, onStart func(*simulation)) *simulation {
	t.Helper()
	valkey := seed%2 == 1
	s := newSimulationOf(t, seed, 2, valkey)
	if onStart != nil {
		onStart(s)
	}
	app := s.formWithKeys()
	busy := false
	s.world.OnCommand(func(_ *redistest.Node, args []string) {
		if moving(args) && !busy {
			busy = true
			if key := fmt.Sprintf("key:%d", s.random.IntN(80)); s.random.IntN(20) == 0 && !app.write(key) {
				s.say("writing %s failed", key)
				t.Errorf("writing %s failed", key)
			}
			busy = false
		}
	})
	for range 3 {
		s.scale(3+s.random.Int32N(3), 1+s.random.Int32N(2))
		for range s.random.IntN(40) { // the next change of mind comes in the middle
			step := s.reconcile()
			s.world.Run(500 * time.Millisecond)
			if _, ok := step.(plan.Replicate); ok && valkey {
				s.world.SwapNewcomers()
			}
		}
	}
	s.converge()
	s.world.OnCommand(nil)
	s.wantHealthy()
	app.wantAll()
	return s
}

// formWithKeys forms a cluster, in which an application has written some keys that replicas have by now.
func (s *simulation) formWithKeys() *application {
	s.converge()
	app := newApplication(s)
	for key := range 60 {
		app.write(fmt.Sprintf("key:%d", key))
	}
	s.world.Run(2 * time.Second)
	return app
}

// Slots move between masters that exist when AssignReceive asks for it, and are balanced when it does not any more, whenever the mind
// changes; no write that was acknowledged is lost.
func TestAssigns(t *testing.T) {
	eachSeed(t, 6, func(t *testing.T, seed uint64) {
		s := newSimulationOf(t, seed, 2, seed%2 == 1)
		app := s.formWithKeys()
		strategy := &s.cluster.Spec.UpdateStrategy
		for range 3 {
			to := s.random.Int32N(3)
			*strategy = v1alpha1.SlotStrategy{
				Type: v1alpha1.AssignReceive, AssignStrategies: []v1alpha1.AssignStrategy{{Slots: 5500 + s.random.Int32N(1000), ToShard: &to,
					FromReplicas: s.named(s.cluster.ShardName(int(to+1)%3)+"-0").node.ID() + "," +
						s.named(s.cluster.ShardName(int(to+2)%3)+"-1").node.ID()}}}
			s.say("--- shard %d is to own %d slots", to, strategy.AssignStrategies[0].Slots)
			for range s.random.IntN(40) {
				s.reconcile()
				s.world.Run(500 * time.Millisecond)
			}
		}
		s.converge()
		s.wantHealthy()
		if entry := strategy.AssignStrategies[0]; s.slotsOf(int(*entry.ToShard)) < int(entry.Slots) {
			s.fail("shard %d owns %d slots", *entry.ToShard, s.slotsOf(int(*entry.ToShard)))
		}
		s.say("--- back to AutoReceive")
		*strategy = v1alpha1.SlotStrategy{Type: v1alpha1.AutoReceive}
		s.converge()
		s.wantHealthy()
		for shard := range 3 {
			if n := s.slotsOf(shard); n < 5461 || n > 5462 {
				s.fail("shard %d owns %d slots", shard, n)
			}
		}
		app.wantAll()
	})
}

// slotsOf is how many slots the instances of a shard own in their own tables.
func (s *simulation) slotsOf(shard int) int {
	n := 0
	for _, node := range s.cluster.Status.Nodes {
		if set, err := slots.Parse(node.Slots); err == nil && int(node.Shard) == shard {
			n += set.Len()
		}
	}
	return n
}

// Instances of a shard that owns nothing may have followed the master of another one: Redis 7 does that when a shard's last
// slots go to one that had none, and the news comes all at once. A scaling that needs the shard comes to its end.
func TestScalesWithInstancesOfAnotherShard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSimulation(t, 1, 2)
		s.converge()
		app := newApplication(s)
		for key := range 60 {
			app.write(fmt.Sprintf("key:%d", key))
		}
		s.scale(4, 2)
		for s.find("c-3-0") == nil ||
			!strings.Contains(s.send(s.named("c-3-0").node.Addr(), false, []string{"CLUSTER", "REPLICATE", s.named("c-0-0").node.ID()}), "OK") {
			s.reconcile()
			s.world.Run(500 * time.Millisecond)
		}
		s.send(s.named("c-3-1").node.Addr(), false, []string{"CLUSTER", "REPLICATE", s.named("c-0-0").node.ID()})
		s.scale(4, 1)
		s.converge()
		s.wantHealthy()
		app.wantAll()
	})
}

// disaster is what happens at a command.
type disaster struct {
	name string
	// strikes is called before the command is executed at the node.
	strikes func(s *simulation, n *redistest.Node, command string)
	// losesWrites reports whether a node is lost with what it had not replicated.
	losesWrites bool
}

var disasters = []disaster{
	{"the operator crashes", func(s *simulation, _ *redistest.Node, _ string) { s.crash() }, false},
	{"the command is lost", func(s *simulation, n *redistest.Node, command string) {
		s.world.FailNext(n, command, redistest.Failure{Kind: redistest.DropBefore})
	}, false},
	{"the answer is lost", func(s *simulation, n *redistest.Node, command string) {
		s.world.FailNext(n, command, redistest.Failure{Kind: redistest.DropAfter})
	}, false},
	{"the answer between the instances is lost", func(s *simulation, n *redistest.Node, command string) {
		if command == "MIGRATE" {
			s.world.FailNext(n, command, redistest.Failure{Kind: redistest.TargetReplyLost})
		}
	}, false},
	{"the instance restarts", func(s *simulation, n *redistest.Node, _ string) { s.restart(s.with(n), true) }, false},
	{"the instance is superseded and comes back with an old copy", func(s *simulation, n *redistest.Node, _ string) {
		if s.world.Supersede(n) {
			s.restart(s.with(n), true)
		}
	}, false},
	{"the instance is lost", func(s *simulation, n *redistest.Node, _ string) { s.restart(s.with(n), false) }, true},
}

func (s *simulation) with(n *redistest.Node) *instance {
	for _, in := range s.instances {
		if in.node == n {
			return in
		}
	}
	s.t.Fatal("no instance has this node")
	return nil
}

// nameOf is who has a node: an instance, or the relay that leads to it.
func (s *simulation) nameOf(n *redistest.Node) string {
	if s.outside != nil && slices.Contains(s.outside.masters, n) {
		return "the server outside"
	}
	return s.with(n).pod.Name
}

// Whatever happens at whichever command that moves slots, the next reconciliations finish it: no
// slot stays open, and every write that was acknowledged and replicated is there. Each
// disaster strikes at every fourth command, every command has some; SIMULATION=all makes
// each strike at all.
func TestDisasterAtEveryCommand(t *testing.T) {
	stride := 4
	if os.Getenv("SIMULATION") == "all" {
		stride = 1
	}
	for i, d := range disasters {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			for at := 1 + i%stride; ; at += stride {
				struck := false
				synctest.Test(t, func(t *testing.T) { struck = strikeAt(t, d, at) })
				if !struck {
					return
				}
			}
		})
	}
}

// strikeAt scales with a disaster at one command; false when there are fewer commands.
func strikeAt(t *testing.T, d disaster, at int) (struck bool) {
	t.Helper()
	s := newSimulation(t, uint64(at), 2)
	s.converge()
	app := newApplication(s)
	for key := range 60 {
		app.write(fmt.Sprintf("key:{%d}", key%6))
		app.write(fmt.Sprintf("key:%d", key))
	}
	s.world.Run(2 * time.Second)
	s.give(1)
	seen := 0
	busy := false
	s.world.OnCommand(func(n *redistest.Node, args []string) {
		if !moving(args) || busy {
			return
		}
		busy = true
		defer func() { busy = false }()
		if seen++; seen == at {
			struck = true
			command := strings.ToUpper(args[0])
			if command == "CLUSTER" {
				command += " " + strings.ToUpper(args[1])
			}
			s.say("%s at %s: %s", d.name, s.with(n).pod.Name, strings.Join(args[:min(len(args), 5)], " "))
			d.strikes(s, n, command)
		}
	})
	s.converge()
	s.world.OnCommand(nil)
	s.wantHealthy()
	if !d.losesWrites {
		app.wantAll()
	}
	return struck
}
