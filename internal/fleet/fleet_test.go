// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// world is a fleet whose objects take a change, some badly. What an object says is in objects; a process that ends loses all else.
type world struct {
	now     time.Time
	objects map[types.UID]Member
	bad     map[types.UID]bool
	fleet   *Fleet
}

func newWorld(members []Member) *world {
	w := &world{now: now, objects: map[types.UID]Member{}, bad: map[types.UID]bool{}}
	for _, m := range members {
		w.objects[m.UID] = m
	}
	w.restart()
	return w
}

func (w *world) restart() {
	w.fleet = &Fleet{Options: options, Now: func() time.Time { return w.now }, Load: func() ([]Member, error) {
		var members []Member
		for _, m := range w.objects {
			m.AskedAt = time.Time{}
			members = append(members, m)
		}
		return members, nil
	}}
}

// look is a reconciliation of one object: it asks if it waits, writes down its turn, and takes the change within a minute.
func (w *world) look(t *testing.T, uid types.UID) {
	t.Helper()
	m := w.objects[uid]
	switch m.State {
	case Waiting:
		wave, has, _, err := w.fleet.Ask(m)
		if err != nil {
			t.Fatal(err)
		}
		if !has {
			return
		}
		m.State, m.Wave, m.TurnAt = Upgrading, wave, w.now
	case Upgrading:
		if w.bad[uid] || w.now.Sub(m.TurnAt) < time.Minute {
			break
		}
		m.State, m.DoneAt = Done, w.now
	case Done:
	}
	w.objects[uid] = m
	if m.State != Waiting {
		w.fleet.Report(m)
	}
}

// count is how many are in a state, and are not given up.
func (w *world) count(state State) (n int) {
	for _, m := range w.objects {
		if m.State == state && options.failing(m, w.now).IsZero() {
			n++
		}
	}
	return n
}

// Whatever the order in which objects are looked at, and however often the operator is restarted, the canary goes alone, no more than a
// wave is upgraded at once, and all are upgraded in the end.
func TestWaves(t *testing.T) {
	for seed := range uint64(40) {
		chance := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(append(append(waiting("a", 12), waiting("b", 5)...), waiting("c", 1)...))
		for range 20000 {
			if w.count(Done) == len(w.objects) {
				break
			}
			w.now = w.now.Add(time.Duration(chance.IntN(4)) * time.Second)
			if chance.IntN(200) == 0 {
				w.restart()
			}
			for uid := range w.objects { // in any order
				w.look(t, uid)
				break
			}
			most := 1
			if w.count(Done) > 0 {
				most = options.Wave
			}
			if n := w.count(Upgrading); n > most {
				t.Fatalf("seed %d: %d are upgraded at once, and %d have been", seed, n, w.count(Done))
			}
		}
		if n := w.count(Done); n != len(w.objects) {
			t.Fatalf("seed %d: %d of %d are upgraded in the end", seed, n, len(w.objects))
		}
	}
}

// run looks at all objects for a time.
func (w *world) run(t *testing.T, d time.Duration) {
	t.Helper()
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(10 * time.Second) {
		for uid := range w.objects {
			w.look(t, uid)
		}
	}
}

// A change that no object takes well reaches the canaries, one more, and no other, however long it is tried and whoever restarts.
func TestBadChangeStops(t *testing.T) {
	w := newWorld(append(append(waiting("a", 12), waiting("b", 12)...), waiting("c", 12)...))
	for uid := range w.objects {
		w.bad[uid] = true
	}
	for range 10 {
		w.run(t, time.Hour)
		w.restart()
	}
	if n := len(w.objects) - w.count(Waiting); n != 2 {
		t.Errorf("%d had their turn", n)
	}
}

// One who has all of his objects fail keeps no other namespace from being upgraded.
func TestNamespaceHoldsNobody(t *testing.T) {
	w := newWorld(append(waiting("bad", 12), append(waiting("b", 12), waiting("c", 12)...)...))
	for uid, m := range w.objects {
		w.bad[uid] = m.Namespace == "bad"
	}
	w.run(t, 6*time.Hour)
	for _, m := range w.objects {
		if m.Namespace != "bad" && m.State != Done {
			t.Errorf("%s is %s", m, m.State)
		}
	}
}

// An object that is gone, or that its author has changed, holds up nobody.
func TestWhatIsGoneDropsOut(t *testing.T) {
	w := newWorld(waiting("a", 4))
	for uid := range w.objects {
		w.bad[uid] = true
	}
	w.run(t, time.Hour)
	for uid, m := range w.objects {
		w.bad[uid] = false
		if m.State == Upgrading {
			delete(w.objects, uid)
			w.fleet.Forget(uid)
		}
	}
	w.run(t, time.Hour)
	if n := w.count(Done); n != 3 || len(w.objects) != 3 {
		t.Errorf("%d of %d are upgraded", n, len(w.objects))
	}
}

// Who has its turn and could not write it down has it still; who does not come back for it loses it.
func TestTurnIsKept(t *testing.T) {
	w := newWorld(waiting("a", 2))
	var mine, others types.UID
	for uid := range w.objects {
		if _, has, _, _ := w.fleet.Ask(w.objects[uid]); has {
			mine = uid
		} else {
			others = uid
		}
	}
	if mine == "" { // the other one came first, and was told then that it is the only one
		t.Fatal("nobody has a turn")
	}
	w.fleet.Report(w.objects[mine])
	ask := func(uid types.UID) bool {
		_, has, _, err := w.fleet.Ask(w.objects[uid])
		return has && err == nil
	}
	if !ask(mine) || ask(others) {
		t.Error("the turn went to another one")
	}
	w.now = w.now.Add(fresh)
	if !ask(others) {
		t.Error("who does not come back holds its turn")
	}
}

func TestUnknownFleetGivesNoTurn(t *testing.T) {
	fails := true
	f := &Fleet{Options: options, Now: func() time.Time { return now }, Load: func() ([]Member, error) {
		if fails {
			return nil, errors.New("no cache")
		}
		return []Member{member("a", "canary", Upgrading)}, nil
	}}
	if _, has, _, err := f.Ask(member("a", "x", Waiting)); has || err == nil {
		t.Errorf("has a turn: %v, error: %v", has, err)
	}
	fails = false
	if _, has, v, err := f.Ask(member("a", "x", Waiting)); has || err != nil || v.Upgrading != 1 {
		t.Errorf("has a turn: %v, error: %v, verdict: %s", has, err, v)
	}
}

// Told hears of every change once, and of nothing while nothing changes.
func TestTold(t *testing.T) {
	var told []string
	at := now
	f := &Fleet{Options: options, Now: func() time.Time { return at }, Load: func() ([]Member, error) { return nil, nil },
		Told: func(v Verdict) { told = append(told, v.String()) }}
	for range 3 {
		for i := range 2 {
			_, _, _, _ = f.Ask(member("a", fmt.Sprint(i), Waiting))
		}
		at = at.Add(10 * time.Second)
	}
	if len(told) != 3 || told[2] != "0 of 2 upgraded, a/0 being upgraded" {
		t.Errorf("told %q", told)
	}
}

func TestManyAtOnce(t *testing.T) {
	w := newWorld(waiting("a", 8))
	w.fleet.Now = func() time.Time { return now }
	var all sync.WaitGroup
	var mu sync.Mutex
	turns := 0
	for uid := range w.objects {
		all.Go(func() {
			_, has, _, _ := w.fleet.Ask(member("a", string(uid), Waiting))
			mu.Lock()
			defer mu.Unlock()
			if has {
				turns++
			}
		})
	}
	all.Wait()
	if turns != 1 {
		t.Errorf("%d have a turn", turns)
	}
}

// beginsToWait has so many members ask for their turn for the first time, one after the other, and returns how many have it.
func beginsToWait(tb testing.TB, f *Fleet, members int) (turns int) {
	tb.Helper()
	for i := range members {
		_, has, _, err := f.Ask(Member{Namespace: fmt.Sprint(i % 7), Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))})
		if err != nil {
			tb.Fatal(err)
		}
		if has {
			turns++
		}
	}
	return turns
}

// However many begin to wait at once, a canary has its turn, and no other one.
func TestManyBeginToWait(t *testing.T) {
	at := now
	f := &Fleet{Options: Options{Canaries: 1, Wave: 10, Share: 5, Pause: time.Minute, Stuck: time.Hour}, Now: func() time.Time { return at },
		Load: func() ([]Member, error) { return nil, nil }}
	turns := beginsToWait(t, f, 1000)
	for range 3 {
		at = at.Add(lasts)
		turns += beginsToWait(t, f, 1000) - turns // who has its turn keeps it
	}
	if turns != 1 {
		t.Errorf("%d have their turn", turns)
	}
}

func BenchmarkManyBeginToWait(b *testing.B) {
	for b.Loop() {
		f := &Fleet{Options: Options{Canaries: 1, Wave: 10, Pause: time.Minute, Stuck: time.Hour}, Now: time.Now,
			Load: func() ([]Member, error) { return nil, nil }}
		beginsToWait(b, f, 10_000)
	}
}
