// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package autoscale

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/ptr"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/slots"
)

var began = time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)

// world is a cluster of which the load of each slot is known, and an operator that looks at it every minute.
type world struct {
	t       *testing.T
	c       Config
	now     time.Time
	shards  int
	owner   []int
	memory  []float64 // by slot
	rates   []float64
	room    float64
	track   Track
	past    Past
	busy    bool
	last    Outcome
	history []int
	// known are the loads as long as nothing changes them.
	known []Load
}

func newWorld(t *testing.T, shards int, c Config) *world {
	w := &world{t: t, c: c, now: began, shards: shards, owner: make([]int, slots.Count), memory: make([]float64, slots.Count),
		rates: make([]float64, slots.Count), room: slots.Count}
	for i := range w.owner {
		w.owner[i] = i * shards / slots.Count
	}
	return w
}

// even spreads a load: parts of the memory of one shard, and operations each second.
func (w *world) even(memory, rate float64) {
	for i := range w.memory {
		w.memory[i], w.rates[i] = memory*w.room/slots.Count, rate/slots.Count
	}
	w.known = nil
}

// move gives each shard as many slots, and moves as few as possible, as the plan does.
func (w *world) move(shards int) {
	have := make([]int, max(shards, w.shards))
	for _, owner := range w.owner {
		have[owner]++
	}
	to := 0
	for i, owner := range w.owner {
		if owner < shards && have[owner] <= (slots.Count+shards-1)/shards {
			continue
		}
		for have[to] >= (slots.Count+shards-1)/shards || to == owner {
			to = (to + 1) % shards
		}
		have[owner]--
		have[to]++
		w.owner[i] = to
	}
	w.shards, w.known = shards, nil
}

func (w *world) loads() []Load {
	if w.known != nil {
		return w.known
	}
	loads := make([]Load, w.shards)
	w.known = loads
	for i := range loads {
		loads[i] = Load{Shard: i, Room: w.room}
	}
	for slot, owner := range w.owner {
		loads[owner].Slots++
		loads[owner].Memory += w.memory[slot]
		loads[owner].Operations += w.rates[slot]
		loads[owner].Network += 100 * w.rates[slot]
	}
	return loads
}

// look is one look at the cluster, a minute after the last.
func (w *world) look() {
	w.t.Helper()
	w.now = w.now.Add(time.Minute)
	loads := w.loads()
	w.track, w.last = w.track.Decide(w.now, w.c, loads, w.shards, !w.busy, w.past)
	to := w.last.To
	if to == 0 {
		return
	}
	if to < w.c.Least || to > w.c.Most || to > 2*w.shards || 2*to < w.shards || to == w.shards {
		w.t.Fatalf("from %d to %d shards, between %d and %d", w.shards, to, w.c.Least, w.c.Most)
	}
	if to < w.shards {
		for _, load := range loads { // what each would hold, if all its keys were spread over its slots evenly
			if will := load.Memory / float64(load.Slots) * float64(slots.Count) / float64(to); will > 0.9*load.Room {
				w.t.Fatalf("in to %d shards: as dense as shard %d, one would hold %.0f of %.0f", to, load.Shard, will, load.Room)
			}
		}
	}
	w.past.ScaledAt = w.now
	if w.last.Outgrown != nil {
		w.past.Outgrown = w.last.Outgrown
	}
	w.move(to)
	w.history = append(w.history, to)
}

func (w *world) run(d time.Duration) {
	w.t.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.look()
	}
}

func config(targets map[Measure]float64) Config {
	return Config{Least: 3, Most: 12, Targets: targets, Out: time.Minute, In: 30 * time.Minute, CoolDown: 5 * time.Minute}
}

// Under whatever load that does not change, on whatever slots, the number of shards comes to rest: shards may be removed first and added
// then, and none is removed after one was added.
func TestConstantLoadComesToRest(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 74))
		c := config(map[Measure]float64{Memory: 0.1 + 0.8*random.Float64()})
		if random.IntN(2) == 0 {
			c.Targets[Operations] = 100 + 10000*random.Float64()
		}
		if random.IntN(4) == 0 {
			c.Targets = map[Measure]float64{Network: 10000 + 1e6*random.Float64()}
		}
		c.Least, c.Most = 3+random.IntN(4), 8+random.IntN(20)
		w := newWorld(t, c.Least+random.IntN(c.Most-c.Least+1), c)
		w.even(10*random.Float64(), 50000*math.Pow(random.Float64(), 4))
		for range random.IntN(50) { // some slots are hotter than others, next to each other or not
			at, size := random.IntN(slots.Count), 1+random.IntN(2000)
			memory, rate := w.memory[at]*20*random.Float64(), w.rates[at]*1000*random.Float64()
			for i := at; i < min(at+size, slots.Count); i++ {
				w.memory[i], w.rates[i] = memory, rate
			}
		}
		w.known = nil
		w.run(30 * time.Hour)
		settled := len(w.history)
		w.run(10 * time.Hour)
		added := false
		before := 0
		for _, to := range w.history {
			if before > 0 && to < before && added {
				t.Fatalf("seed %d: removed after it was added: %v", seed, w.history)
			}
			added = added || to > before && before > 0
			before = to
		}
		if len(w.history) != settled {
			t.Errorf("seed %d: not at rest: %v", seed, w.history)
		}
	}
}

// With a load that is spread evenly, the number of shards changes in one direction, and then the load is within the targets.
func TestEvenLoad(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 75))
		c := config(map[Measure]float64{Memory: 0.7, Operations: 10000})
		w := newWorld(t, 3+random.IntN(10), c)
		w.even(8*random.Float64(), 100000*random.Float64())
		w.run(20 * time.Hour)
		for i := 2; i < len(w.history); i++ {
			if (w.history[i] > w.history[i-1]) != (w.history[1] > w.history[0]) {
				t.Fatalf("seed %d: %v", seed, w.history)
			}
		}
		for _, load := range w.loads() {
			if within := load.Memory <= 0.701*load.Room && load.Operations <= 10010; !within && !w.last.Limited {
				t.Errorf("seed %d: %d shards bear %+v, and that is not told: %+v", seed, w.shards, load, w.last)
			}
		}
	}
}

// A day: the load grows, comes to a peak for a moment, stays, and declines.
func TestDay(t *testing.T) {
	w := newWorld(t, 3, config(map[Measure]float64{Operations: 1000}))
	w.even(0.5, 1500)
	w.run(2 * time.Hour)
	if len(w.history) > 0 {
		t.Fatalf("a load within the targets: %v", w.history)
	}
	w.even(0.5, 9000)
	w.look()
	w.even(0.5, 1500)
	w.run(time.Hour)
	if len(w.history) > 0 {
		t.Fatalf("a peak shorter than the stabilization: %v", w.history)
	}
	for rate := 1500.0; rate < 9000; rate += 500 {
		w.even(0.5, rate)
		w.run(10 * time.Minute)
	}
	if w.shards < 9 {
		t.Fatalf("%d shards for 9 targets: %v", w.shards, w.history)
	}
	most := w.shards
	w.even(0.5, 600)
	w.run(29 * time.Minute)
	w.even(0.5, 9000)
	w.look()
	w.even(0.5, 600)
	w.run(29 * time.Minute)
	if w.shards < most {
		t.Fatalf("removed before the load was low without a break: %v", w.history)
	}
	w.run(3 * time.Hour)
	if w.shards != 3 {
		t.Fatalf("%d shards at night: %v", w.shards, w.history)
	}
}

func TestHolds(t *testing.T) {
	low, high := func(w *world) { w.even(0.1, 10) }, func(w *world) { w.even(10, 100000) }
	for name, tt := range map[string]struct {
		begin   func(*world)
		between func(*world)
		run     time.Duration
	}{
		"an operator that is new":  {low, func(w *world) { w.track = Track{} }, 29 * time.Minute},
		"a clock that jumps ahead": {low, func(w *world) { w.now = w.now.Add(24 * time.Hour) }, 30 * time.Minute},
		"a clock set back":         {low, func(w *world) { w.now = w.now.Add(-24 * time.Hour) }, 30 * time.Minute},
		"a load that is not known": {low, func(w *world) {
			w.track, w.last = w.track.Decide(w.now, w.c, w.loads()[1:], w.shards, true, w.past)
			if w.last.Known || w.last.To != 0 || w.last.Reason == "" {
				w.t.Errorf("%+v", w.last)
			}
		}, 30 * time.Minute},
		"a cool-down": {high, func(w *world) { w.past.ScaledAt = w.now.Add(time.Second); w.c.CoolDown = time.Hour }, 59 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, 6, config(map[Measure]float64{Memory: 0.7, Operations: 1000}))
			w.c.Out = 2 * time.Minute
			tt.begin(w)
			w.run(time.Minute)
			tt.between(w)
			w.run(tt.run)
			if len(w.history) > 0 {
				t.Fatalf("it did not hold: %v", w.history)
			}
			w.run(3 * time.Minute)
			if len(w.history) == 0 {
				t.Fatalf("it holds for ever: %+v", w.last)
			}
		})
	}
}

// What a rollout or a backup adds to the load asks for no more shards: not while it lasts, and not for the stabilization after it. A load
// that is low all the same is low.
func TestBusy(t *testing.T) {
	w := newWorld(t, 6, config(map[Measure]float64{Memory: 0.7}))
	w.c.Out = 3 * time.Minute
	w.even(6, 0)
	w.busy = true
	w.run(2 * time.Hour)
	if o := w.last; len(w.history) > 0 || o.Wanted != 9 || !o.Since.IsZero() {
		t.Fatalf("while it lasts: %v, %+v", w.history, o)
	}
	w.busy = false
	w.run(3 * time.Minute)
	if len(w.history) > 0 {
		t.Fatalf("at once after it: %v", w.history)
	}
	w.run(time.Minute)
	if w.shards != 9 {
		t.Fatalf("%d shards after it: %+v", w.shards, w.last)
	}
	w.even(1, 0)
	w.busy = true
	w.run(40 * time.Minute)
	if w.shards != 5 {
		t.Errorf("%d shards for little: %+v", w.shards, w.last)
	}
}

// A time that lies ahead was written by another clock, and holds nothing up.
func TestScaledInTheFuture(t *testing.T) {
	w := newWorld(t, 3, config(map[Measure]float64{Memory: 0.7}))
	w.even(9, 0)
	w.past.ScaledAt = began.Add(1000 * time.Hour)
	w.run(3 * time.Minute)
	if len(w.history) == 0 {
		t.Errorf("%+v", w.last)
	}
}

func TestWhatIsTold(t *testing.T) {
	w := newWorld(t, 12, config(map[Measure]float64{Memory: 0.7}))
	w.even(11, 0)
	w.look()
	if o := w.last; !o.Limited || o.Wanted != 12 || o.Measure != Memory || !o.Since.IsZero() {
		t.Errorf("at the bound: %+v", o)
	}
	w.room, w.known = 0, nil
	w.look()
	if o := w.last; o.Known || !strings.Contains(o.Reason, "neither maxmemory nor a memory limit") {
		t.Errorf("without a limit: %+v", o)
	}
	w.c.Targets = map[Measure]float64{Operations: 1000}
	w.even(0, 100)
	w.look()
	if o := w.last; !o.Known || o.Wanted != 6 || o.Measure != Operations || !o.NotBefore.Equal(w.now.Add(30*time.Minute)) {
		t.Errorf("of little: %+v", o)
	}
}

// A load that was too much for three shards is too much for them again, however well it is spread over four; unless it is less by now.
func TestOutgrown(t *testing.T) {
	for demand, want := range map[float64]int{2.1: 0, 2.8: 0, 3: 3} {
		w := newWorld(t, 4, config(map[Measure]float64{Memory: 0.5}))
		w.even(1.15, 0) // 2.3 targets, which 3 shards bear
		w.past.Outgrown = &Outgrown{Shards: 3, Measure: Memory, Demand: demand}
		w.run(2 * time.Hour)
		if len(w.history) == 0 && want != 0 || len(w.history) > 0 && w.history[0] != want {
			t.Errorf("%.1f then: %v", demand, w.history)
		}
	}
}

func TestConfigOf(t *testing.T) {
	c := ConfigOf(&v1alpha1.Autoscale{}, Bounds{Least: 3, Most: 9})
	if c.Least != 3 || c.Most != 9 || len(c.Targets) != 1 || c.Targets[Memory] != 0.7 || c.Out != time.Minute || c.In != 30*time.Minute ||
		c.CoolDown != 5*time.Minute {
		t.Errorf("by default: %+v", c)
	}
	c = ConfigOf(&v1alpha1.Autoscale{Targets: v1alpha1.AutoscaleTargets{OperationsPerSecond: ptr.To(int64(500)),
		NetworkBytesPerSecond: ptr.To(int64(1 << 20))}}, Bounds{})
	if len(c.Targets) != 2 || c.Targets[Operations] != 500 || c.Targets[Network] != 1<<20 {
		t.Errorf("without a target of memory: %+v", c)
	}
}

// A load of nothing asks for fewer shards, and says by what.
func TestNoLoad(t *testing.T) {
	w := newWorld(t, 6, Config{Least: 3, Most: 9, Targets: map[Measure]float64{Network: 1000}})
	loads := make([]Load, 6)
	for i := range loads {
		loads[i] = Load{Shard: i, Slots: slots.Count / 6}
	}
	if asks := w.c.asks(loads, 6, Past{}); asks.shards != 3 || asks.measure != Network || asks.why == "" {
		t.Errorf("%+v", asks)
	}
}
