// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

func TestPaceKeepsBlocksNearTheTarget(t *testing.T) {
	for _, perKey := range []time.Duration{2 * time.Microsecond, 20 * time.Microsecond, 500 * time.Microsecond} {
		p := newPace()
		var took time.Duration
		for range 50 {
			took = time.Duration(p.budget()) * perKey
			p.moved(p.budget(), took)
		}
		if took < blockTarget*8/10 || took > blockTarget*12/10 {
			t.Errorf("at %v a key, a round trip takes %v", perKey, took)
		}
	}
}

func TestPaceSlowsDownAtOnce(t *testing.T) {
	p := newPace()
	before := p.budget()
	p.moved(before, 10*blockTarget)
	if p.budget() > before/5 {
		t.Errorf("budget %f after one round trip that took ten times too long, before %f", p.budget(), before)
	}
}

func TestPaceOfGroups(t *testing.T) {
	p := newPace()
	for range 20 {
		p.marked(time.Millisecond)
	}
	if p.slots != 512 || p.groupBudget() != p.budget() {
		t.Errorf("quick marks: %d slots, budget %f of %f", p.slots, p.groupBudget(), p.budget())
	}
	for range 20 {
		p.marked(time.Second)
	}
	if most := float64(mostOpen) / p.perCost; p.slots != 16 || p.groupBudget() != most {
		t.Errorf("slow marks: %d slots, budget %f, want %f", p.slots, p.groupBudget(), most)
	}
}

// Round trips that are mostly waiting teach nothing.
func TestPaceOfSmallRoundTrips(t *testing.T) {
	p := newPace()
	p.moved(p.budget()/4-1, time.Hour)
	if p.perCost != float64(firstGuess) {
		t.Error("learned from a small one")
	}
	p.moved(p.budget()/4, time.Hour)
	if p.perCost == float64(firstGuess) {
		t.Error("nothing learned from one that is large enough")
	}
}

// Groups grow while marks are quicker than the target, and shrink from twice of it on.
func TestPaceOfMarks(t *testing.T) {
	const target = 20 * time.Millisecond
	for took, want := range map[time.Duration]int{target - 1: 64, target: 32, 2 * target: 32, 2*target + 1: 16} {
		p := newPace()
		if p.marked(took); p.slots != want {
			t.Errorf("%v: %d slots, want %d", took, p.slots, want)
		}
	}
}

func TestSleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if err := sleep(t.Context(), time.Hour); err != nil || time.Since(begin) != time.Hour {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := sleep(ctx, time.Hour); !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != time.Hour+time.Minute {
			t.Errorf("the caller gave up: %v after %v", err, time.Since(begin))
		}
		for range 30 { // which of two that are ready is chosen is left to chance
			if err := sleep(ctx, 0); !errors.Is(err, context.DeadlineExceeded) {
				t.Fatalf("the caller had given up: %v", err)
			}
		}
	})
}

func TestDefaults(t *testing.T) {
	for _, tt := range []struct{ pipeline, perSecond, want int }{
		{0, 0, 100}, {-1, 0, 100}, {1, 0, 1}, {10000, 0, 10000}, {20000, 0, 10000}, {0, 500, 50}, {20, 500, 20}, {0, 1, 1},
	} {
		o := Options{Pipeline: tt.pipeline, KeysPerSecond: tt.perSecond}.withDefaults()
		if o.Pipeline != tt.want || o.Slice != time.Second || o.Now == nil {
			t.Errorf("%+v: %d keys in a MIGRATE, slice %v", tt, o.Pipeline, o.Slice)
		}
	}
}

func TestProgressAddsUp(t *testing.T) {
	total := Progress{LongestBlock: 2}
	total.add(Progress{Slots: slots.Of(1), Keys: 1, Bytes: 10, Conflicts: 3, LongestBlock: 1})
	total.add(Progress{Slots: slots.Of(2), Keys: 2, Bytes: 20, Conflicts: 4, LongestBlock: 5})
	if !total.Slots.Equal(slots.Of(1, 2)) || total.Keys != 3 || total.Bytes != 30 || total.Conflicts != 7 || total.LongestBlock != 5 {
		t.Errorf("%+v", total)
	}
}

func TestLimiter(t *testing.T) {
	now := time.Unix(100, 0)
	l := &limiter{now: func() time.Time { return now }, perSecond: 1000}
	for range 2 {
		now = now.Add(time.Minute) // what was not used in quiet times is not saved up
		if err := l.wait(t.Context(), 500); err != nil {
			t.Fatal(err)
		}
		if owed := l.free.Sub(now); owed != 500*time.Millisecond {
			t.Errorf("500 keys are paid off after %v", owed)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, perSecond := range []int{0, 1} {
		l = &limiter{now: l.now, perSecond: perSecond}
		if err := l.wait(ctx, 1); !errors.Is(err, context.Canceled) {
			t.Errorf("the caller gave up: %v", err)
		}
	}
	if owed := l.free.Sub(now); owed != time.Second {
		t.Errorf("a key a second is paid off after %v", owed)
	}
}

func TestSort(t *testing.T) {
	source := redis.View{
		Slots:     slots.Range(0, 9),
		Migrating: map[uint16]string{1: "to", 2: "to", 3: "other", 6: "to", 18: "other"},
	}
	destination := redis.View{
		Slots:     slots.Range(10, 19).Union(slots.Of(2)),
		Importing: map[uint16]string{1: "from", 4: "from", 5: "other"},
	}
	got, err := sort(source, destination, "from", "to", slots.Range(0, 20).Subtract(slots.Range(11, 17)).Subtract(slots.Of(19)))
	for _, part := range []struct {
		name string
		got  slots.Set
		want string
	}{{"moved", got.moved, "2,10"}, {"open", got.open, "1,4,6"}, {"fresh", got.fresh, "0,7-9"}} {
		if part.got.String() != part.want {
			t.Errorf("%s: %s, want %s", part.name, part.got, part.want)
		}
	}
	const want = "slots 20: neither end owns them\n" +
		"slots 3,5,18: they are open to or from another node, which must be finished first"
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}
