// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package balance

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

var began = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

const mebi = 1 << 20

// world is a cluster of which it is known what each slot bears, and an operator that looks at it every minute.
type world struct {
	t      *testing.T
	now    time.Time
	budget float64
	shards []Shard
	w      snapshot.SlotWeights
	track  Track
	past   []Moved
	every  time.Duration
	last   Outcome
	goals  int
	moves  map[uint16]int
}

func newWorld(t *testing.T, shards int) *world {
	w := &world{t: t, now: began, every: time.Minute, budget: 1e15, moves: map[uint16]int{},
		w: snapshot.SlotWeights{Bytes: make([]float64, slots.Count)}}
	for _, part := range slots.All().Split(shards) {
		w.shards = append(w.shards, Shard{Slots: part})
	}
	for i := range w.w.Bytes {
		w.w.Bytes[i] = mebi
	}
	return w
}

func (w *world) bears(weights []float64, shard int) (sum float64) {
	for slot := range w.shards[shard].Slots.Slots() {
		sum += weights[slot]
	}
	return sum
}

func (w *world) most(weights []float64) (most float64) {
	for shard := range w.shards {
		most = max(most, w.bears(weights, shard))
	}
	return most
}

// look lets the operator look once, and moves what it says.
func (w *world) look() {
	w.t.Helper()
	w.track, w.last = w.track.Decide(w.now, w.budget, w.shards, &w.w, w.past)
	w.now = w.now.Add(w.every)
	if w.last.Goal == nil {
		return
	}
	memory, processor := w.most(w.w.Bytes), 0.0
	if w.w.Processor != nil {
		processor = w.most(w.w.Processor)
	}
	w.goals++
	w.past = append(w.past, Moved{At: w.now, Bytes: w.last.Bytes})
	w.track = Track{} // what slots bear is not known while they move
	changed, all := 0, slots.Set{}
	for i, goal := range w.last.Goal {
		for slot := range goal.Subtract(w.shards[i].Slots).Slots() {
			w.moves[slot]++
			changed++
		}
		if goal.IsEmpty() || !all.Intersect(goal).IsEmpty() {
			w.t.Fatalf("shard %d is to own %s", i, goal)
		}
		all = all.Union(goal)
		w.shards[i].Slots = goal
	}
	if changed != w.last.Count || changed == 0 || all.Len() != slots.Count {
		w.t.Fatalf("%d slots of %d move, %d told", changed, all.Len(), w.last.Count)
	}
	switch w.last.Measure {
	case Memory:
		if now := w.most(w.w.Bytes); now > memory*1.000001 {
			w.t.Fatalf("the busiest shard bears %f, it was %f: %s", now, memory, w.last.Reason)
		}
	case Processor:
		if now := w.most(w.w.Processor); now > processor*1.000001 {
			w.t.Fatalf("the busiest shard bears %f processors, it was %f: %s", now, processor, w.last.Reason)
		}
	}
}

func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.look()
	}
}

// heavy gives the slots of a shard so many times the weight.
func (w *world) heavy(shard int, times float64) {
	for slot := range w.shards[shard].Slots.Slots() {
		w.w.Bytes[slot] *= times
	}
}

// A shard with more data than the others gives some of it away when that has lasted, and not before.
func TestRelieves(t *testing.T) {
	w := newWorld(t, 3)
	w.heavy(1, 2)
	w.run(10 * time.Minute)
	if o := w.last; w.goals > 0 || o.Measure != Memory || o.Shard != 1 || o.Percent != 150 || !o.Since.Equal(began) ||
		!o.NotBefore.Equal(began.Add(10*time.Minute)) {
		t.Fatalf("it did not hold: %+v", o)
	}
	w.look()
	if w.goals != 1 || w.last.Count < 1600 || w.last.Count > 1700 {
		t.Fatalf("%d goals, %d slots", w.goals, w.last.Count)
	}
	w.run(5 * time.Hour)
	for shard := range w.shards {
		if part := w.bears(w.w.Bytes, shard) / (4.0 / 3 * slots.Count * mebi / 3); part < 0.94 || part > 1.06 {
			t.Errorf("shard %d bears %.2f means", shard, part)
		}
	}
	if w.goals != 1 || w.last.Measure != "" {
		t.Errorf("%d goals: %+v", w.goals, w.last)
	}
}

func TestHolds(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a moment without it":   func(w *world) { w.heavy(1, 0.5); w.look(); w.heavy(1, 2) },
		"nothing is known":      func(w *world) { w.track, w.last = w.track.Decide(w.now, w.budget, w.shards, nil, nil) },
		"a gap":                 func(w *world) { w.now = w.now.Add(6 * time.Minute) },
		"a clock set back":      func(w *world) { w.now = w.now.Add(-time.Hour) },
		"the operator restarts": func(w *world) { w.track = Track{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			w.heavy(1, 2)
			w.run(9 * time.Minute)
			change(w)
			w.run(10 * time.Minute)
			if w.goals > 0 {
				t.Fatal("it did not hold without a break")
			}
			w.run(2 * time.Minute)
			if w.goals != 1 {
				t.Fatalf("it holds for ever: %+v", w.last)
			}
		})
	}
}

// What is left at that.
func TestStays(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(w *world)
		why    string
	}{
		"even":               {func(*world) {}, "no shard bears much more"},
		"a little more":      {func(w *world) { w.heavy(1, 1.2) }, "no shard bears much more"},
		"little data":        {func(w *world) { w.heavy(0, 1e-3); w.heavy(1, 2e-3); w.heavy(2, 1e-3) }, "no shard bears much more"},
		"nothing":            {func(w *world) { w.heavy(0, 0); w.heavy(1, 0); w.heavy(2, 0) }, "no shard bears much more"},
		"one shard":          {func(w *world) { w.shards = []Shard{{Slots: slots.All()}} }, "one shard"},
		"nobody has room":    {func(w *world) { w.heavy(1, 2); w.shards[0].Room, w.shards[2].Room = 1, 1 }, "none of its slots would be better"},
		"a slot is too much": {func(w *world) { clear(w.w.Bytes); w.w.Bytes[6000] = 1 << 30 }, "slot 6000 alone bears 300 %"},
		"no budget is left": {func(w *world) {
			w.heavy(1, 2)
			w.budget, w.past = 5, []Moved{{At: began.Add(5 * time.Minute), Bytes: 5}}
		},
			"as much as may move in an hour has moved"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 3)
			tt.change(w)
			w.run(time.Hour)
			if w.goals > 0 || !strings.Contains(w.last.Reason, tt.why) {
				t.Errorf("%d goals: %+v", w.goals, w.last)
			}
		})
	}
}

// Two slots that are hot part, and one that is hotter than all else is left alone by the others.
func TestHotSlotsPart(t *testing.T) {
	w := newWorld(t, 3)
	w.w.Bytes[6000], w.w.Bytes[6001] = 6000*mebi, 6000*mebi
	w.run(3 * time.Hour)
	if a, b := w.owner(6000), w.owner(6001); a == b {
		t.Errorf("both are at shard %d: %+v", a, w.last)
	}
	if got := w.last.Slots; len(got) != 2 || got[0].Slot != 6000 || got[0].Measure != Memory || got[0].Bytes != 6000*mebi {
		t.Errorf("%+v", got)
	}
	w = newWorld(t, 3)
	w.w.Bytes[6000] = 40000 * mebi
	w.run(24 * time.Hour)
	if w.moves[6000] > 1 {
		t.Errorf("it moved %d times", w.moves[6000])
	}
	if is := w.owner(6000); w.bears(w.w.Bytes, is) > 40100*mebi {
		t.Errorf("others stay with it: %f", w.bears(w.w.Bytes, is)/mebi)
	}
}

func (w *world) owner(slot uint16) int {
	return slices.IndexFunc(w.shards, func(s Shard) bool { return s.Slots.Contains(slot) })
}

// In no hour more moves than the budget and a slot.
func TestBudget(t *testing.T) {
	w := newWorld(t, 3)
	w.heavy(1, 2)
	w.budget = 100*mebi + 1
	w.run(3 * time.Hour)
	if w.goals != 3 || !w.last.NotBefore.After(w.now) {
		t.Errorf("%d goals in three hours: %+v", w.goals, w.last)
	}
	for _, m := range w.past {
		within := 0.0
		for _, other := range w.past {
			if after := other.At.Sub(m.At); after >= 0 && after < time.Hour {
				within += other.Bytes
			}
		}
		if within > w.budget+2*mebi {
			t.Errorf("%.0f MiB in an hour", within/mebi)
		}
	}
	w.budget, w.past = 1, nil
	w.w.Bytes[w.shards[1].Slots.Ranges()[0].First] = 500 * mebi // one that is larger than the budget moves alone
	w.run(20 * time.Minute)
	if w.last = (Outcome{}); len(w.past) != 1 || w.past[0].Bytes != 500*mebi {
		t.Errorf("%+v", w.past)
	}
	if got := Within([]Moved{{At: began}, {At: began.Add(-time.Hour)}, {At: began.Add(time.Hour)}, {At: began.Add(59 * time.Minute)}},
		began); len(got) != 2 {
		t.Errorf("within the hour: %+v", got)
	}
}

// A shard that is busy gives slots away although it has no more data than the others, and data does not gather elsewhere.
func TestProcessor(t *testing.T) {
	w := newWorld(t, 3)
	w.w.Processor = make([]float64, slots.Count)
	for i := range w.w.Processor {
		w.w.Processor[i] = 0.3 / slots.Count
	}
	for slot := range w.shards[2].Slots.Slots() {
		w.w.Processor[slot] *= 2
	}
	w.run(5 * time.Hour)
	if w.goals == 0 || w.last.Measure != "" {
		t.Errorf("%d goals: %+v", w.goals, w.last)
	}
	if most := w.most(w.w.Bytes); most > 1.2*slots.Count*mebi/3 {
		t.Errorf("%.0f MiB at one shard", most/mebi)
	}
}

// Room is what a shard has beside what it uses.
func TestRoom(t *testing.T) {
	w := newWorld(t, 3)
	w.heavy(1, 2)
	w.shards[0].Used, w.shards[0].Room = 5000*mebi, 6000*mebi
	w.run(11 * time.Minute)
	if got := w.last.Goal[0].Len() - slots.All().Split(3)[0].Len(); got < 40 || got > 50 { // 85 % of 6000 less 5000, 2 MiB a slot
		t.Errorf("it receives %d slots", got)
	}
}

// Whatever slots bear: as long as that does not change, a cluster comes to rest, after few moves, and no move makes the busiest shard
// busier (look tries it).
func TestConstantLoadComesToRest(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 77))
		w := newWorld(t, 2+r.IntN(9))
		w.every, w.budget = 4*time.Minute, mebi*float64(uint(1)<<(8+r.IntN(12)))
		if seed%2 == 1 {
			w.w.Processor = make([]float64, slots.Count)
		}
		for i := range w.w.Bytes {
			w.w.Bytes[i] = mebi * r.ExpFloat64()
			if w.w.Processor != nil {
				w.w.Processor[i] = r.ExpFloat64() / slots.Count
			}
		}
		for range r.IntN(30) {
			at := r.IntN(slots.Count)
			w.w.Bytes[at] *= r.ExpFloat64() * 3000
			if w.w.Processor != nil {
				w.w.Processor[r.IntN(slots.Count)] *= r.ExpFloat64() * 3000
			}
		}
		for range r.IntN(3) {
			w.heavy(r.IntN(len(w.shards)), 1+3*r.Float64())
		}
		for i := range w.shards {
			w.shards[i].Used, w.shards[i].Room = w.bears(w.w.Bytes, i), float64(r.IntN(3))*20000*mebi
		}
		hours := 0
		for goals := -1; goals != w.goals; hours++ {
			goals = w.goals
			w.run(2 * time.Hour)
			if hours > 1000 {
				t.Fatalf("seed %d: no rest: %+v", seed, w.last)
			}
		}
		for slot, n := range w.moves {
			if n > 3 {
				t.Errorf("seed %d: slot %d moved %d times", seed, slot, n)
			}
		}
		if again := w.last; again.Goal != nil {
			t.Errorf("seed %d: %+v", seed, again)
		}
	}
}

// The same load is decided the same way.
func TestDeterministic(t *testing.T) {
	outcome := func() Outcome {
		w := newWorld(t, 5)
		r := rand.New(rand.NewPCG(1, 1))
		for i := range w.w.Bytes {
			w.w.Bytes[i] = float64(r.IntN(4)) * mebi
		}
		w.heavy(3, 2)
		w.run(11 * time.Minute)
		return w.last
	}
	a, b := outcome(), outcome()
	for i := range a.Goal {
		if !a.Goal[i].Equal(b.Goal[i]) || a.Count == 0 {
			t.Errorf("shard %d: %s and %s", i, a.Goal[i], b.Goal[i])
		}
	}
}

// A look at the largest cluster, half of whose shards are hot, and none of which has room.
func BenchmarkFull(b *testing.B) {
	const n = 500
	shards, weights := make([]Shard, n), &snapshot.SlotWeights{Bytes: make([]float64, slots.Count)}
	for i, part := range slots.All().Split(n) {
		shards[i] = Shard{Slots: part, Used: 90, Room: 100}
		for slot := range part.Slots() {
			weights.Bytes[slot] = float64(16<<20) * float64(1+i%2*9)
		}
	}
	for b.Loop() {
		l := loadsOf(shards, weights)
		if hot := l.hot(); len(hot) != n/2 || len(l.relieve(hot, 1e12)) > 0 {
			b.Fatal(len(hot))
		}
	}
}
