// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package reshard

import (
	"context"
	"errors"
	"testing"
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
	if err := l.wait(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gave up: %v", err)
	}
}

func TestSort(t *testing.T) {
	source := redis.View{
		Slots:     slots.Range(0, 9),
		Migrating: map[uint16]string{1: "to", 2: "to", 3: "other"},
	}
	destination := redis.View{
		Slots:     slots.Range(10, 19).Union(slots.Of(2)),
		Importing: map[uint16]string{1: "from", 4: "from", 5: "other"},
	}
	got, err := sort(source, destination, "from", "to", slots.Range(0, 20).Subtract(slots.Range(11, 19)))
	for _, part := range []struct {
		name string
		got  slots.Set
		want string
	}{{"moved", got.moved, "2,10"}, {"open", got.open, "1,4"}, {"fresh", got.fresh, "0,6-9"}} {
		if part.got.String() != part.want {
			t.Errorf("%s: %s, want %s", part.name, part.got, part.want)
		}
	}
	const want = "slots 20: neither end owns them\n" +
		"slots 3,5: they are open to or from another node, which must be finished first"
	if err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}
