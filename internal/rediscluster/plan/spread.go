// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// planSpread makes masters run on different nodes and in different zones again, after
// failovers have gathered them: as few of them as possible go with a node. It is reached only
// by a cluster that is as it should be. Each hand-over takes the most crowded place's load
// down, so that it comes to an end.
func planSpread(in input) Step {
	if !in.desired.SpreadMasters {
		return nil
	}
	before := gathered(in.snap.Masters())
	for _, shard := range in.snap.Shards {
		master := in.snap.Masters()[shard.Index]
		if master == nil {
			continue
		}
		for _, pod := range in.snap.Reachable() {
			if pod.Shard != shard.Index || !succeeds(pod, master) || in.leaving(pod.Shard, pod.Ordinal) {
				continue
			}
			after := in.snap.Masters()
			after[shard.Index] = pod
			if gathered(after).less(before) {
				return Handover{base: base{fmt.Sprintf("too many masters are where %s is (%s): %s takes over", master.Name, place(master), pod.Name)}, Master: target(master), Replica: target(pod)}
			}
		}
	}
	return nil
}

// crowding says how gathered masters are: sums of squares of how many share a node and a
// zone. A node counts first, because it is lost more often than a zone.
type crowding struct{ nodes, zones int }

func (c crowding) less(other crowding) bool {
	return c.nodes < other.nodes || c.nodes == other.nodes && c.zones < other.zones
}

func gathered(masters map[int]*snapshot.Instance) crowding {
	nodes, zones := map[string]int{}, map[string]int{}
	for _, master := range masters {
		nodes[master.NodeName]++
		zones[master.Zone]++
	}
	return crowding{squares(nodes), squares(zones)}
}

func squares(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n * n
	}
	return sum
}

func place(in *snapshot.Instance) string {
	if in.Zone == "" {
		return in.NodeName
	}
	return in.NodeName + " in " + in.Zone
}
