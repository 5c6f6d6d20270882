// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"maps"
	"slices"

	"middleware.hc.cn/operator/internal/redis/slots"
)

// index is what follows from a snapshot and is asked for again and again.
type index struct {
	of        []Instance // those that it is about
	reachable []*Instance
	byNodeID  map[string]*Instance
	byPlace   map[place]*Instance
	owned     slots.Set
	masters   map[int]*Instance
}

type place struct{ shard, ordinal int }

// Indexed is the snapshot for those who only read it: what follows from it is computed once. A
// change of its instances would go unnoticed.
func (s *Snapshot) Indexed() *Snapshot {
	indexed := *s
	indexed.index = indexOf(s)
	return &indexed
}

func (s *Snapshot) facts() *index {
	x, n := s.index, len(s.Instances)
	if x != nil && len(x.of) == n && (n == 0 || &x.of[0] == &s.Instances[0]) {
		return x
	}
	return indexOf(s) // none was made, or of other instances
}

func indexOf(s *Snapshot) *index {
	n := len(s.Instances)
	x := &index{of: s.Instances, reachable: make([]*Instance, 0, n), byNodeID: make(map[string]*Instance, n),
		byPlace: make(map[place]*Instance, n),
		masters: map[int]*Instance{}}
	owned := make([]slots.Set, 0, n)
	for i := range s.Instances {
		in := &s.Instances[i]
		if at := (place{in.Shard, in.Ordinal}); x.byPlace[at] == nil {
			x.byPlace[at] = in
		}
		if in.Redis == nil {
			continue
		}
		x.reachable = append(x.reachable, in)
		if x.byNodeID[in.Redis.NodeID] == nil {
			x.byNodeID[in.Redis.NodeID] = in
		}
		owns := in.Redis.Slots.Len()
		if best := x.masters[in.Shard]; owns > 0 && (best == nil || owns > best.Redis.Slots.Len()) {
			x.masters[in.Shard] = in
		}
		owned = append(owned, in.Redis.Slots)
	}
	x.owned = slots.Set{}.Union(owned...)
	return x
}

// Reachable are the instances whose Redis answered; the list is shared, and not to be changed.
func (s *Snapshot) Reachable() []*Instance { return slices.Clip(s.facts().reachable) }

// ByNodeID finds the instance that answers to a node ID; nil when none does.
func (s *Snapshot) ByNodeID(id string) *Instance { return s.facts().byNodeID[id] }

// Find finds the instance of a shard by its ordinal; nil when its pod does not exist.
func (s *Snapshot) Find(shard, ordinal int) *Instance {
	return s.facts().byPlace[place{shard, ordinal}]
}

// Started reports whether a shard has a StatefulSet.
func (s *Snapshot) Started(shard int) bool {
	return slices.ContainsFunc(s.Shards, func(is Shard) bool { return is.Index == shard })
}

// Owned is the union of what reachable masters say they own.
func (s *Snapshot) Owned() slots.Set { return s.facts().owned }

// Masters are, by shard number, the reachable instances that own slots; of several in
// one shard the one that owns most.
func (s *Snapshot) Masters() map[int]*Instance { return maps.Clone(s.facts().masters) }

// FindDisowned are the slots that nobody who answers claims, while somebody takes an instance that answers for their owner.
func (s *Snapshot) FindDisowned() slots.Set {
	owned := s.Owned()
	if owned.Len() == slots.Count {
		return slots.Set{}
	}
	var named []slots.Set
	for _, in := range s.Reachable() {
		for id, peer := range in.Redis.Peers {
			if !peer.Slots.IsEmpty() && s.ByNodeID(id) != nil {
				named = append(named, peer.Slots)
			}
		}
	}
	return slots.Set{}.Union(named...).Subtract(owned)
}
