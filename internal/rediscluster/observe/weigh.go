// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

const (
	// weighEvery is how often slots are looked at.
	weighEvery = 50 * time.Second
	// slotsALook is in how many slots of a master keys are looked at each time at most, keysASlot how many of each, and keysALook how many
	// in all once all slots have been looked at: these are commands that the master counts, too. slotsAtOnce is in how many slots by one
	// round trip. An engine names the same keys of a slot each time: a large one is found if few others are with it.
	slotsALook, keysASlot, keysALook, slotsAtOnce = 512, 16, 2048, 32
	// ahead is by how many looks a slot is due sooner whose number of keys has changed.
	ahead = 64
	// enough is the part of all keys that must be in slots that were looked at.
	enough = 0.9
	// slotStats is the setting with which engines count the processor time of slots.
	slotStats = "cluster-slot-stats-enabled"
	// longestCount is how far counters of slots may be apart that are compared.
	longestCount = 5 * time.Minute
)

// weighing is what is remembered of what slots bear. The zero value remembers nothing.
type weighing struct {
	at   time.Time
	turn uint32
	// slots are by number; nil before the first look.
	slots []weighed
	// counted is the processor time of each slot as it was told last, by the node that did; rates are processors by slot, nil until known.
	counted map[string]map[uint16]int64
	rates   []float64
	last    *snapshot.SlotWeights
}

// weighed is a slot: how many keys it has, what one of them takes (0: not known), when some were last looked at (0: never), and how many it
// had then.
type weighed struct {
	keys int64
	each float64
	turn uint32
	then int64
}

// look is what one master said of its slots.
type look struct {
	node   string
	slots  slots.Set
	counts map[uint16]int64
	each   map[uint16]float64
	whole  map[uint16]bool // all keys were looked at
	tried  []uint16
	stats  map[uint16]redis.SlotStat
}

// weigh reads what each slot of a cluster bears whose slots follow the load: keys are counted, and a few of them looked at, in turn.
// Nothing is known while slots move, or when a master does not answer.
func (o *Observer) weigh(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory, s *snapshot.Snapshot, timeout time.Duration) {
	w := &m.weighing
	if cluster.Spec.Balance == nil {
		*w = weighing{}
		return
	}
	masters := s.Masters()
	total := 0
	for _, in := range s.Reachable() {
		total += in.Redis.Slots.Len()
	}
	if !s.Formed || s.Goal != nil || total != slots.Count || s.Owned().Len() != slots.Count || len(masters) < 2 {
		return
	}
	now := o.now()
	if between := now.Sub(w.at); between >= 0 && between < weighEvery {
		s.Weights = w.last
		return
	}
	if w.slots == nil {
		w.slots = make([]weighed, slots.Count)
	}
	credentials := m.Credentials(cluster)
	var mu sync.Mutex
	var looks []look
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for _, in := range masters {
		group.Go(func() error {
			return contain.Call(ctx, "weigh the slots of "+in.Name, func() error {
				ctx, cancel := context.WithTimeout(ctx, timeout)
				defer cancel()
				l, err := lookAt(ctx, o.node(in, credentials), in.Redis, w.slots)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					looks = append(looks, l)
				}
				return err
			})
		})
	}
	_ = group.Wait() // who does not answer is not among the looks
	w.turn++
	between := now.Sub(w.at)
	w.at, w.last = now, nil
	if len(looks) == len(masters) {
		w.last = w.note(looks, between)
	} else {
		w.counted = nil // what is counted next is not compared with what was counted before this look
	}
	s.Weights = w.last
}

// lookAt counts the keys of a master's slots, and looks at some of them: in the slots first that it has not looked at for longest.
func lookAt(ctx context.Context, node *redis.Node, r *snapshot.Redis, before []weighed) (look, error) {
	l := look{node: r.NodeID, slots: r.Slots, each: map[uint16]float64{}, whole: map[uint16]bool{}}
	var err error
	if r.Settings[slotStats] == "yes" {
		if l.stats, err = node.SlotStats(ctx); err != nil {
			return l, err
		}
	}
	if l.counts, err = node.CountKeysInSlots(ctx, r.Slots); err != nil {
		return l, err
	}
	for some := range slices.Chunk(l.due(before), slotsAtOnce) {
		l.tried = append(l.tried, some...)
		if err := l.sample(ctx, node, some); err != nil {
			break // what is known of the others counts
		}
	}
	return l, nil
}

// due are the slots in which keys are looked at: those that never were, then those that were not for longest, and sooner those whose number
// of keys has changed since.
func (l *look) due(before []weighed) []uint16 {
	due, most := make([]uint16, 0, len(l.counts)), int64(keysALook)
	since := map[uint16]int64{}
	for slot, count := range l.counts {
		if l.stats[slot].Bytes > 0 {
			continue // the engine has counted them
		}
		was := &before[slot]
		due, since[slot] = append(due, slot), int64(was.turn)
		switch {
		case was.turn == 0:
			since[slot], most = math.MinInt64, slotsALook*keysASlot
		case was.then != count:
			since[slot] -= ahead
		}
	}
	slices.SortFunc(due, func(a, b uint16) int { return cmp.Or(cmp.Compare(since[a], since[b]), cmp.Compare(a, b)) })
	due = due[:min(len(due), slotsALook)]
	for i, slot := range due {
		if most -= min(l.counts[slot], keysASlot); most < 0 {
			return due[:i]
		}
	}
	return due
}

// sample finds what a key of each slot takes.
func (l *look) sample(ctx context.Context, node *redis.Node, some []uint16) error {
	found, err := node.KeysInSlots(ctx, slots.Of(some...), keysASlot)
	if err != nil {
		return err
	}
	var keys []string
	var of []uint16
	for _, slot := range some {
		for _, key := range found[slot] {
			keys, of = append(keys, key), append(of, slot)
		}
	}
	sizes, err := node.MemoryUsage(ctx, keys, false)
	if err != nil {
		return err
	}
	sum, n := map[uint16]float64{}, map[uint16]float64{}
	for i, size := range sizes {
		if size > 0 {
			sum[of[i]], n[of[i]] = sum[of[i]]+float64(size), n[of[i]]+1
		}
	}
	for slot := range sum {
		l.each[slot], l.whole[slot] = sum[slot]/n[slot], int64(n[slot]) >= l.counts[slot]
	}
	return nil
}

// note remembers what masters said, and returns what slots bear; nil: too little is known of that.
func (w *weighing) note(looks []look, between time.Duration) *snapshot.SlotWeights {
	bytes := make([]float64, slots.Count)
	var keys, looked int64
	var sum float64
	for _, l := range looks {
		for _, slot := range l.tried {
			w.slots[slot].turn, w.slots[slot].then = w.turn, l.counts[slot]
		}
		for slot := range l.slots.Slots() {
			is := &w.slots[slot]
			is.keys = l.counts[slot]
			if each, seen := l.each[slot]; seen && is.each > 0 && !l.whole[slot] {
				is.each = (is.each + each) / 2 // the same keys are looked at again, and others that came
			} else if seen {
				is.each = each
			}
			if stat := l.stats[slot]; stat.Bytes > 0 && is.keys > 0 {
				is.each = float64(stat.Bytes) / float64(is.keys)
			}
			keys += is.keys
			if is.each > 0 {
				looked, sum = looked+is.keys, sum+float64(is.keys)*is.each
			}
		}
	}
	rates := w.processor(looks, between)
	if float64(looked) < enough*float64(keys) {
		return nil
	}
	for slot := range w.slots {
		if is := w.slots[slot]; is.each > 0 {
			bytes[slot] = float64(is.keys) * is.each
		} else if looked > 0 {
			bytes[slot] = float64(is.keys) * sum / float64(looked)
		}
	}
	return &snapshot.SlotWeights{Bytes: bytes, Processor: rates}
}

// processor is how many processors each slot keeps busy, as it was on average lately; nil until all masters have told that twice.
func (w *weighing) processor(looks []look, between time.Duration) []float64 {
	const recent = 0.25 // the part that the last time has in the average
	before := w.counted
	w.counted = map[string]map[uint16]int64{}
	rates := make([]float64, slots.Count)
	known := between > 0 && between <= longestCount
	for _, l := range looks {
		counted := make(map[uint16]int64, len(l.stats))
		for slot, stat := range l.stats {
			if stat.Processor >= 0 {
				counted[slot] = stat.Processor
			}
		}
		if len(counted) == 0 {
			w.counted, w.rates = nil, nil
			return nil
		}
		w.counted[l.node] = counted
		for slot := range l.slots.Slots() {
			was, told := before[l.node][slot]
			if now, tells := counted[slot]; tells && told && now >= was {
				rates[slot] = float64(now-was) / float64(max(between, time.Microsecond).Microseconds())
			} else if w.rates != nil {
				rates[slot] = w.rates[slot] // it has just been received, or the process is another one
			}
		}
		known = known && len(before[l.node]) > 0
	}
	if !known {
		return w.rates
	}
	for slot := range w.rates {
		rates[slot] = recent*rates[slot] + (1-recent)*w.rates[slot]
	}
	w.rates = rates
	return rates
}
