// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// planMajority parts masters of which one node or zone has so many that the others could not
// elect without it. It does so while instances are away, too, as long as those that answer agree
// about everything.
func planMajority(in input) Step {
	if !in.snap.Formed || in.snap.Goal != nil || in.rolling() || !slotsCovered(in.snap) || !in.agreed() {
		return nil
	}
	masters := in.snap.Masters()
	all := in.switchovers(masters)
	return in.spreadBy(cmp.Or(relieve(masters, all, false), relieve(masters, all, true)))
}

// planSpread makes as few masters as possible share a node, then a zone, after failovers have
// concentrated them. It is reached only by a cluster that is healthy. Each switchover takes
// the concentration down, so that they come to an end.
func planSpread(in input) Step {
	masters := in.snap.Masters()
	all := in.switchovers(masters)
	next := cmp.Or(relieve(masters, all, false), relieve(masters, all, true))
	if next != nil {
		return in.spreadBy(next)
	}
	t := tallied(masters)
	least := t.concentration
	for i := range all {
		t.shift(all[i], 1)
		if t.less(least) {
			next, least = &all[i], t.concentration
		}
		t.shift(all[i], -1)
	}
	return in.spreadBy(next)
}

func (in input) spreadBy(next *exchange) Step {
	if next == nil {
		return nil
	}
	return Switchover{
		base: base{
			fmt.Sprintf("too many masters are where %s is (%s): %s takes over", next.master.Name, place(next.master), next.replica.Name)},
		Master: target(next.master), Replica: target(next.replica)}
}

// agreed reports whether the instances that answer know each other as they are, that all others count
// as failed with all of them, and that no slot is on its way: a switchover now finds every voter,
// and does not cross with a failover.
func (in input) agreed() bool {
	members := in.looked()
	for _, pod := range members {
		r := pod.Redis
		if len(r.Migrating)+len(r.Importing)+len(r.Jobs) > 0 || !converged(in, members, pod).Holds {
			return false
		}
		for id, peer := range r.Peers {
			if in.snap.ByNodeID(id) == nil && !peer.Failed {
				return false
			}
		}
	}
	return true
}

// exchange is a switchover: the master of a shard and one of its replicas change their roles.
type exchange struct{ master, replica *snapshot.Instance }

// reluctance is how long a replica is left alone that was told to take over and did not.
const reluctance = 5 * time.Minute

// untimely reports whether a switchover may come to nothing, for which writes would stop for
// seconds. A replica that was told to take over and did not is left alone for a while. And voters
// vote about the same master once in two node timeouts (clusterSendFailoverAuthIfNeeded in
// cluster.c): the one that switches over, and the one that is to be it and may be lost again.
func (in input) untimely(e exchange) bool {
	const clocks = 2 * time.Second
	voted := 2*e.master.Redis.NodeTimeout + clocks
	return in.now.Sub(e.replica.Redis.SwitchoverAt) < reluctance ||
		in.now.Sub(e.master.Redis.DemotedAt) < voted || in.now.Sub(e.replica.Redis.DemotedAt) < voted
}

// switchovers are the switchovers that may take place now, if masters are to be spread. While an
// instance is about to stop there are none: it switches over itself.
func (in input) switchovers(masters map[int]*snapshot.Instance) []exchange {
	stopping := func(pod *snapshot.Instance) bool { return pod.Terminating }
	if !in.desired.SpreadMasters || slices.ContainsFunc(in.snap.Reachable(), stopping) {
		return nil
	}
	return slices.DeleteFunc(in.exchanges(masters), func(e exchange) bool {
		return in.untimely(e) || !e.replica.Ready || !canSucceed(e.replica, e.master) || in.stale(e.replica) != in.stale(e.master) ||
			!in.knownOutside(e.replica).Holds
	})
}

// exchanges are all masters with each of their replicas that stay, of each shard those replicas
// first that have received most.
func (in input) exchanges(masters map[int]*snapshot.Instance) []exchange {
	var all []exchange
	for _, pod := range in.snap.Reachable() {
		if master := masters[pod.Shard]; master != nil && master != pod && !in.leaving(pod.Shard, pod.Ordinal) {
			all = append(all, exchange{master, pod})
		}
	}
	slices.SortStableFunc(all, func(a, b exchange) int {
		return cmp.Or(cmp.Compare(a.master.Shard, b.master.Shard), cmp.Compare(b.replica.Redis.Offset, a.replica.Redis.Offset))
	})
	return all
}

// relieve is the switchover that begins to part a majority on one node, or in one zone; nil when
// there is none, or none helps. Where the replicas of a crowded place are on others that have
// no room, one of the masters there makes room first: the way to a place that has some is gone
// from its end, and so is one switchover shorter each time.
func relieve(masters map[int]*snapshot.Instance, all []exchange, zones bool) *exchange {
	t := tallied(masters)
	counts, at := t.onNode, func(pod *snapshot.Instance) string { return pod.NodeName }
	if zones {
		counts, at = t.inZone, func(pod *snapshot.Instance) string { return pod.Zone }
	}
	seen := map[string]bool{"": true}
	var crowded []string
	for _, e := range all {
		if from := at(e.master); counts[from] > t.spare && !seen[from] {
			seen[from], crowded = true, append(crowded, from)
		}
	}
	for ; len(crowded) > 0; crowded = crowded[1:] {
		for i, e := range all {
			to := at(e.replica)
			switch {
			case at(e.master) != crowded[0] || seen[to]:
			case counts[to] >= t.spare:
				seen[to], crowded = true, append(crowded, to)
			case !t.crowdsNode(e):
				return &all[i]
			}
		}
	}
	return nil
}

// crowdsNode reports whether a switchover takes to a node more masters than may be lost.
func (t *tally) crowdsNode(e exchange) bool {
	before := t.nodeExcess
	t.shift(e, 1)
	after := t.nodeExcess
	t.shift(e, -1)
	return after > before
}

// concentration says how concentrated masters are: how many more of them share a node or a zone than may
// be lost, and sums of squares of how many share one. A node counts before a zone, because it
// is lost more often.
type concentration struct{ nodeExcess, zoneExcess, nodes, zones int }

func (c concentration) less(other concentration) bool {
	return cmp.Or(cmp.Compare(c.nodeExcess, other.nodeExcess), cmp.Compare(c.zoneExcess, other.zoneExcess),
		cmp.Compare(c.nodes, other.nodes), cmp.Compare(c.zones, other.zones)) < 0
}

func concentrationOf(masters map[int]*snapshot.Instance) concentration {
	return tallied(masters).concentration
}

// tally counts masters by where they are. One whose zone is not known is in none.
type tally struct {
	concentration
	spare          int
	onNode, inZone map[string]int
}

func tallied(masters map[int]*snapshot.Instance) *tally {
	t := &tally{spare: spare(len(masters)), onNode: map[string]int{}, inZone: map[string]int{}}
	for _, master := range masters {
		t.add(master.NodeName, master.Zone, 1)
	}
	return t
}

// spare is how many of so many masters may be lost: more than half of them elect. Where they never can, no place has too many.
func spare(masters int) int {
	if !v1alpha1.Elects(masters) {
		return masters
	}
	return (masters - 1) / 2
}

// shift counts a switchover n times. A replica whose zone is not known may be in that of its master.
func (t *tally) shift(e exchange, n int) {
	from, to := e.master.Zone, e.replica.Zone
	if to == "" {
		from = ""
	}
	t.add(e.master.NodeName, from, -n)
	t.add(e.replica.NodeName, to, n)
}

func (t *tally) add(node, zone string, n int) {
	excess, squares := t.place(t.onNode, node, n)
	t.nodeExcess, t.nodes = t.nodeExcess+excess, t.nodes+squares
	excess, squares = t.place(t.inZone, zone, n)
	t.zoneExcess, t.zones = t.zoneExcess+excess, t.zones+squares
}

// place counts masters at one place, and returns by how much its excess and its square grow.
func (t *tally) place(at map[string]int, name string, n int) (excess, square int) {
	if name == "" {
		return 0, 0
	}
	was, is := at[name], at[name]+n
	at[name] = is
	return max(0, is-t.spare) - max(0, was-t.spare), is*is - was*was
}

func place(in *snapshot.Instance) string {
	if in.Zone == "" {
		return in.NodeName
	}
	return in.NodeName + " in " + in.Zone
}
