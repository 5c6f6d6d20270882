// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// loads are what shards bear, as it is and as it becomes while slots are moved in thought.
type loads struct {
	shards []Shard
	// weights are by measure and slot; nil for a measure that is not known.
	weights [len(measures)][]float64
	// of is by measure and shard, mean by measure. used is the memory of each shard.
	of   [len(measures)][]float64
	mean [len(measures)]float64
	used []float64
	// count is how many slots each shard has. Those that received some give none, and the other way round.
	count           []int
	gives, receives []bool
}

// move is a slot that is to change its owner.
type move struct {
	slot     uint16
	from, to int
}

func loadsOf(shards []Shard, weights *snapshot.SlotWeights) *loads {
	n := len(shards)
	l := &loads{shards: shards, weights: [...][]float64{weights.Bytes, weights.Processor}, used: make([]float64, n), count: make([]int, n),
		gives: make([]bool, n), receives: make([]bool, n)}
	for m, weight := range l.weights {
		if weight == nil {
			continue
		}
		l.of[m] = make([]float64, n)
		for i, shard := range shards {
			for slot := range shard.Slots.Slots() {
				l.of[m][i] += weight[slot]
			}
			l.mean[m] += l.of[m][i] / float64(n)
		}
	}
	for i, shard := range shards {
		l.used[i], l.count[i] = shard.Used, shard.Slots.Len()
	}
	return l
}

// ratio is what a shard bears, in means.
func (l *loads) ratio(p place) float64 {
	if l.of[p.measure] == nil || l.mean[p.measure] <= 0 {
		return 0
	}
	return l.of[p.measure][p.shard] / l.mean[p.measure]
}

func (l *loads) isHot(p place) bool {
	return l.ratio(p) > hot && l.of[p.measure][p.shard]-l.mean[p.measure] > least[p.measure]
}

// hot are the shards that are, the hottest first.
func (l *loads) hot() []place {
	var list []place
	for m := range measures {
		for shard := range l.shards {
			if p := (place{m, shard}); l.isHot(p) {
				list = append(list, p)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(l.ratio(b), l.ratio(a)) })
	return list
}

// A slot is told of that bears at least a tenth of what a shard does, and so many of them at most.
const worthTelling, mostTold = 0.1, 5

// hottest are the slots that bear most.
func (l *loads) hottest() []Slot {
	type found struct {
		Slot
		ratio float64
	}
	var list []found
	for i, shard := range l.shards {
		for slot := range shard.Slots.Slots() {
			best := found{Slot: Slot{Slot: slot, Shard: i, Bytes: l.weights[0][slot]}}
			for m, weight := range l.weights {
				if weight == nil || weight[slot] <= least[m] {
					continue
				}
				if ratio := weight[slot] / l.mean[m]; ratio > best.ratio {
					best.ratio, best.Measure, best.Percent = ratio, measures[m], percent(ratio)
				}
			}
			if best.ratio >= worthTelling {
				list = append(list, best)
			}
		}
	}
	slices.SortFunc(list, func(a, b found) int {
		return cmp.Or(cmp.Compare(b.ratio, a.ratio), cmp.Compare(a.Slot.Slot, b.Slot.Slot))
	})
	var told []Slot
	for _, f := range list[:min(len(list), mostTold)] {
		told = append(told, f.Slot)
	}
	return told
}

// alone says which slot makes a shard hot that nothing relieves; empty: no single one does.
func (l *loads) alone(p place) string {
	for slot := range l.shards[p.shard].Slots.Slots() {
		if weight := l.weights[p.measure][slot]; weight > l.of[p.measure][p.shard]/2 {
			return fmt.Sprintf(": slot %d alone bears %d %%, so its keys would have to be split, or the shard be given more",
				slot, percent(weight/l.mean[p.measure]))
		}
	}
	return ""
}

// relieve moves slots away from hot shards, the hottest first, until they are cool or so many bytes move. Each move makes the busier of its
// two shards less busy, and none makes a shard hot by another measure: a load that does not change comes to rest.
func (l *loads) relieve(hot []place, bytes float64) []move {
	var moves []move
	lightest := map[int]*slotsBy{}
	for left := slices.Clone(hot); len(left) > 0 && len(moves) < mostSlots && bytes > 0; {
		slices.SortStableFunc(left, func(a, b place) int { return cmp.Compare(l.ratio(b), l.ratio(a)) })
		p := left[0]
		if lightest[p.shard] == nil {
			lightest[p.shard] = l.sorted(p)
		}
		m, found := l.best(p, lightest[p.shard].sorted[p.measure])
		if !found || l.ratio(p) <= cool {
			left = left[1:]
			continue
		}
		l.shift(m)
		lightest[p.shard].remove(m.slot)
		bytes -= l.weights[0][m.slot]
		moves = append(moves, m)
	}
	return moves
}

// slotsBy are the slots of a shard that bear anything, by each measure the lightest first.
type slotsBy struct{ sorted [len(measures)][]uint16 }

func (l *loads) sorted(p place) *slotsBy {
	s := &slotsBy{}
	for m, weight := range l.weights {
		if weight == nil {
			continue
		}
		for slot := range l.shards[p.shard].Slots.Slots() {
			if weight[slot] > 0 {
				s.sorted[m] = append(s.sorted[m], slot)
			}
		}
		slices.SortStableFunc(s.sorted[m], func(a, b uint16) int { return cmp.Compare(weight[a], weight[b]) })
	}
	return s
}

func (s *slotsBy) remove(slot uint16) {
	for m := range s.sorted {
		if i := slices.Index(s.sorted[m], slot); i >= 0 {
			s.sorted[m] = slices.Delete(s.sorted[m], i, i+1)
		}
	}
}

// best is the slot of a shard, and who receives it, that relieves the shard most. The least busy that can receive one does.
func (l *loads) best(p place, light []uint16) (move, bool) {
	if l.count[p.shard] < 2 || l.receives[p.shard] {
		return move{}, false
	}
	smallest := math.Inf(1)
	for _, slot := range light {
		smallest = min(smallest, l.weights[0][slot])
	}
	order := make([]int, 0, len(l.shards))
	for shard := range l.shards {
		if shard != p.shard && !l.gives[shard] && l.hasRoom(shard, smallest) { // most have none where all are full
			order = append(order, shard)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(l.of[p.measure][a], l.of[p.measure][b]) })
	for _, to := range order {
		if slot, found := l.bestFor(p, to, light); found {
			return move{slot: slot, from: p.shard, to: to}, true
		}
	}
	return move{}, false
}

// bestFor is the slot that one shard had better have than another.
func (l *loads) bestFor(p place, to int, light []uint16) (uint16, bool) {
	of, weight := l.of[p.measure], l.weights[p.measure]
	gap, excess := of[p.shard]-of[to], of[p.shard]-l.mean[p.measure]
	want := min(gap/2, excess)
	if want <= 0 {
		return 0, false
	}
	i := sort.Search(len(light), func(i int) bool { return weight[light[i]] > want })
	lighter, heavier := i-1, i
	for ; lighter >= 0 && !l.allows(light[lighter], p, to); lighter-- {
	}
	for ; heavier < len(light) && weight[light[heavier]] < gap && !l.allows(light[heavier], p, to); heavier++ {
	}
	gain := 0.0
	if lighter >= 0 {
		gain = weight[light[lighter]]
	}
	// One that is too heavy for both to be even moves if it is worth its weight.
	if heavier < len(light) {
		if w := weight[light[heavier]]; min(excess, gap-w) > gain && gap-w > w/4 {
			return light[heavier], true
		}
	}
	if gain <= 0 {
		return 0, false
	}
	return light[lighter], true
}

// allows reports whether a shard may receive a slot: it has room, and does not become hot by another measure.
func (l *loads) allows(slot uint16, p place, to int) bool {
	if !l.hasRoom(to, l.weights[0][slot]) {
		return false
	}
	for m, weight := range l.weights {
		if m == p.measure || weight == nil || weight[slot] == 0 {
			continue
		}
		if after := l.of[m][to] + weight[slot]; after > hot*l.mean[m] && after-l.mean[m] > least[m] {
			return false
		}
	}
	return true
}

// hasRoom reports whether the memory of a shard takes so many bytes of keys more.
func (l *loads) hasRoom(shard int, bytes float64) bool {
	room := l.shards[shard].Room
	return room <= 0 || l.used[shard]+takes*bytes <= fits*room
}

func (l *loads) shift(m move) {
	for i, weight := range l.weights {
		if weight != nil {
			l.of[i][m.from] -= weight[m.slot]
			l.of[i][m.to] += weight[m.slot]
		}
	}
	l.used[m.to] += takes * l.weights[0][m.slot]
	l.count[m.from]--
	l.count[m.to]++
	l.gives[m.from], l.receives[m.to] = true, true
}
