// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"maps"
	"slices"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// Spread says what the loss of one node or one zone would leave of the masters.
type Spread struct {
	// Known reports whether every slot is owned by a master that answers, and where each of them is.
	Known bool
	// Wanted reports whether masters are to be spread.
	Wanted bool
	// Few reports whether there are so few masters that they elect nobody, wherever they are.
	Few bool
	// Majority is where so many masters are that the others could not elect; nil when nowhere.
	Majority *Majority
}

// Majority is a node or a zone without which the masters elsewhere could not elect.
type Majority struct {
	// Zone reports whether Place is a zone, not a node.
	Zone  bool
	Place string
	// Masters of All are there.
	Masters, All int
	// Places is on how many nodes, or in how many zones, instances answer; Needed is how many
	// it takes.
	Places, Needed int
	// Replicas reports whether replicas elsewhere could take over.
	Replicas bool
}

// spread is how the masters of a cluster are spread.
func (in input) spread() Spread {
	masters := in.snap.Masters()
	s := Spread{Known: slotsCovered(in.snap), Wanted: in.desired.SpreadMasters}
	for _, master := range masters {
		s.Known = s.Known && master.NodeName != ""
	}
	if !s.Known {
		return s
	}
	s.Few = !v1alpha1.Elects(len(masters))
	if s.Majority = in.majority(masters); s.Majority != nil {
		s.Majority.Replicas = relieve(masters, in.exchanges(masters), s.Majority.Zone) != nil
	}
	return s
}

// majority finds the node that has too many masters, or else the zone. All in the only zone
// that there is are no more concentrated than they must be.
func (in input) majority(masters map[int]*snapshot.Instance) *Majority {
	nodes, zones := map[string]int{}, map[string]int{}
	for _, pod := range in.snap.Reachable() {
		nodes[pod.NodeName]++
		zones[pod.Zone]++
	}
	delete(nodes, "")
	delete(zones, "")
	t := tallied(masters)
	if m := worst(t.onNode, len(masters), len(nodes)); m != nil {
		return m
	}
	m := worst(t.inZone, len(masters), len(zones))
	if m == nil || len(zones) < 2 {
		return nil
	}
	m.Zone = true
	return m
}

// worst is the place that has most of the masters, the first by name of several, if it has too many.
func worst(at map[string]int, masters, places int) *Majority {
	names := slices.Sorted(maps.Keys(at))
	if len(names) == 0 {
		return nil
	}
	name := slices.MaxFunc(names, func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	most := spare(masters)
	if at[name] <= most {
		return nil
	}
	return &Majority{Place: name, Masters: at[name], All: masters, Places: places, Needed: (masters + most - 1) / max(most, 1)}
}
