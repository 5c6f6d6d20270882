// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// Names of the instances; snapshots are made by the thousand.
var nodeIDs, podNames, addresses = func() (ids, names, ips [instances]string) {
	for _, i := range all() {
		ids[i] = strings.Repeat(fmt.Sprint(i), 40)
		names[i] = fmt.Sprintf("c-%d-%d", shardOf(i), i%replicas)
		ips[i] = fmt.Sprintf("10.0.0.%d", i)
	}
	return ids, names, ips
}()

// number is the node of an ID.
func number(id string) int8 { return int8(id[0] - '0') }

// operator is the real planner, asked about worlds.
type operator struct {
	// blocks are the real slots of each block.
	blocks      [blocks]slots.Set
	sets        map[uint8]slots.Set // by mask of blocks
	assignments []plan.SlotAssignment
	goals       []*snapshot.Goal
	// decisions remembers what was decided: most worlds look like another one to the operator.
	decisions map[world]decided
	mutation  mutation
	// valkey is what the instances say that they run.
	valkey bool
}

// mutation is a mistake in what is sent, made to see that it is found.
type mutation int

const (
	// closeInstead takes the marks off open slots instead of finishing them.
	closeInstead mutation = iota + 1
	// reopenByStable takes the destination's mark off after a failover, and relies on gossip for the rest.
	reopenByStable
	// leaveFollowing does nothing for a shard whose instances follow the master of another one.
	leaveFollowing
	// leaveDisowned does nothing about slots that nobody claims.
	leaveDisowned
)

// decided is a reconciliation: what it will do, in any of several orders, and how it is called.
type decided struct {
	name     string
	steady   bool
	programs [][]command
	goal     int8
}

// decide is what the operator does in this world when some nodes (a bit each) do not answer it.
func (o *operator) decide(w *world, unknown uint8) decided {
	seen := w.seen(unknown)
	if d, known := o.decisions[seen]; known {
		return d
	}
	desired := plan.Desired{Topology: topology(int(w.wanted)), Policy: v1alpha1.DeletionForeground, HasFinalizer: true, AssignReceive: true,
		Ephemeral: true}
	if w.wanted == shards {
		desired.SlotAssignments = o.assignments
	}
	s := o.snapshot(w, unknown)
	decision, fault := decidedSafely(desired, s, func(topology v1alpha1.Topology) (pending plan.Pending) {
		if len(topology) < existing(w) && w.set == present {
			panic("the topology shrinks under a StatefulSet that is not being deleted")
		}
		if len(topology) > existing(w) {
			pending.Children = []string{"StatefulSet c-3"}
		}
		return pending
	})
	if fault != "" {
		d := decided{name: fault, goal: w.goal}
		o.decisions[seen] = d
		return d
	}
	d := decided{name: decision.Step.Name() + ": " + decision.Step.Why(), goal: o.intern(decision.Goal),
		steady: decision.Situation == plan.Steady && decision.Goal == nil}
	for _, program := range o.programs(w, decision.Step) {
		if d.goal != w.goal {
			program = append(program, command{kind: report})
		}
		d.programs = append(d.programs, program)
	}
	o.decisions[seen] = d
	return d
}

// decidedSafely asks the planner; fault says that it panicked.
func decidedSafely(desired plan.Desired, s *snapshot.Snapshot, compare func(v1alpha1.Topology) plan.Pending) (decision plan.Decision,
	fault string) {
	defer func() {
		if r := recover(); r != nil {
			fault = fmt.Sprintf("the planner panics: %v", r)
		}
	}()
	shape := plan.ShapeOf(desired, s, now)
	return shape.Next(compare(shape.Topology)), ""
}

func topology(n int) v1alpha1.Topology { return slices.Repeat(v1alpha1.Topology{replicas}, n) }

// existing is how many StatefulSets there are.
func existing(w *world) int {
	if w.set == absent {
		return shards - 1
	}
	return shards
}

// seen is the world as the operator can see it.
func (w *world) seen(unknown uint8) world {
	seen := world{nodes: w.nodes, wanted: w.wanted, set: w.set, goal: w.goal}
	seen.next = int8(unknown) // any value will do as long as it is another one
	for i := range seen.nodes {
		for slot := range moving {
			for key, value := range seen.nodes[i].data[slot] {
				if value != missing {
					seen.nodes[i].data[slot][key] = fresh
				}
			}
		}
	}
	return seen
}

// intern is the number of a goal.
func (o *operator) intern(goal *snapshot.Goal) int8 {
	if goal == nil {
		return none
	}
	for i, other := range o.goals {
		if goal.For == other.For && goal.From == other.From && slices.EqualFunc(goal.Shards, other.Shards, slots.Set.Equal) {
			return int8(i)
		}
	}
	o.goals = append(o.goals, goal)
	return int8(len(o.goals) - 1)
}

// snapshot is what package observe reads of the world.
func (o *operator) snapshot(w *world, unknown uint8) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Auth: snapshot.Auth{Known: true}, Formed: true, Seen: map[string]bool{}}
	if w.goal != none {
		s.Goal = o.goals[w.goal]
	}
	for shard := range existing(w) {
		s.Shards = append(s.Shards,
			snapshot.Shard{Index: shard, Name: fmt.Sprintf("c-%d", shard), Replicas: replicas, Terminating: shard == joining &&
				w.set == terminating})
	}
	var open uint8
	for _, i := range all() {
		s.Seen[nodeIDs[i]] = true
		n := &w.nodes[i]
		if !n.pod {
			continue
		}
		in := snapshot.Instance{Name: podNames[i], Shard: int(shardOf(i)), Ordinal: int(i % replicas), IP: addresses[i], NodeName: "node",
			Terminating: shardOf(i) == joining && w.set == terminating}
		switch {
		case has(unknown, i):
			in.Ready, in.Error = true, "i/o timeout"
		case !n.up:
			in.Waiting, in.Error = "starting", "starting"
		default:
			in.Ready, in.Redis = true, o.view(w, i)
			if n.master() {
				open |= n.open()
			}
		}
		s.Instances = append(s.Instances, in)
	}
	if s.Disowned = s.FindDisowned(); !s.Disowned.IsEmpty() { // for as long as it takes
		open |= o.mask(s.Disowned)
	}
	for _, in := range s.Reachable() { // countOpenKeys
		if i := number(in.Redis.NodeID); open != 0 && in.Redis.Master {
			in.Redis.OpenKeys = map[uint16]int64{}
			for slot := range int8(moving) {
				if has(open&w.holds(i), slot) {
					in.Redis.OpenKeys[o.slot(slot)] = keysInSlot
				}
			}
		}
	}
	return s
}

// open are the slots that a node marks, a bit each.
func (n *node) open() uint8 {
	var mask uint8
	for slot := range int8(moving) {
		if n.migrating[slot] != none || n.importing[slot] != none {
			mask |= bit(slot)
		}
	}
	return mask
}

// slot is the number of a moving slot.
func (o *operator) slot(slot int8) uint16 { return o.blocks[slot].Ranges()[0].First }

// view is how an instance describes itself and its peers.
func (o *operator) view(w *world, i int8) *snapshot.Redis {
	n := &w.nodes[i]
	r := &snapshot.Redis{NodeID: nodeIDs[i], Master: n.master(), ClusterOK: w.serves(i), Epoch: uint64(n.epoch),
		Migrating: map[uint16]string{}, Importing: map[uint16]string{}, Peers: map[string]snapshot.Peer{}}
	if o.valkey {
		r.Engine = "valkey"
	}
	if !n.master() {
		m := &w.nodes[n.follows]
		r.MasterID, r.MasterLinkUp = nodeIDs[n.follows], m.up && m.master()
	}
	for slot := range int8(moving) {
		for _, value := range n.data[slot] {
			if value != missing {
				r.Keys++
			}
		}
		if n.migrating[slot] != none {
			r.Migrating[o.slot(slot)] = nodeIDs[n.migrating[slot]]
		}
		if n.importing[slot] != none {
			r.Importing[o.slot(slot)] = nodeIDs[n.importing[slot]]
		}
	}
	if data := n.follows; data != none && w.owned(data) >= bit(moving) || w.owned(i) >= bit(moving) {
		r.Keys += 1000 // those of the other slots
	}
	r.Slots = o.real(w.owned(i))
	for _, other := range all() {
		if !has(n.knows, other) {
			continue
		}
		peer := snapshot.Peer{ID: nodeIDs[other], IP: addresses[other], Master: n.roles[other] == none, Epoch: uint64(n.heard[other]),
			Connected: w.nodes[other].up, Failed: !w.nodes[other].up}
		if !peer.Master {
			peer.MasterID = nodeIDs[n.roles[other]]
		}
		var owned uint8
		for block, owner := range n.owner {
			if owner == other {
				owned |= bit(int8(block))
			}
		}
		peer.Slots = o.real(owned)
		r.Peers[peer.ID] = peer
	}
	return r
}

// real are the slots of blocks.
func (o *operator) real(mask uint8) slots.Set {
	if set, known := o.sets[mask]; known {
		return set
	}
	var set slots.Set
	for block := range int8(blocks) {
		if has(mask, block) {
			set = set.Union(o.blocks[block])
		}
	}
	o.sets[mask] = set
	return set
}

// mask are the blocks that slots belong to.
func (o *operator) mask(set slots.Set) uint8 {
	var mask uint8
	for block := range int8(blocks) {
		if !o.blocks[block].Intersect(set).IsEmpty() {
			mask |= bit(block)
		}
	}
	return mask
}
