// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// ledger is one in memory, in which somebody else writes in between now and then.
type ledger struct {
	given   []Given
	version int
	fails   error
	random  *rand.Rand
}

func (l *ledger) Read() ([]Given, string, error) {
	return append([]Given{}, l.given...), fmt.Sprint(l.version), l.fails
}

func (l *ledger) Write(version string, given []Given) (bool, error) {
	if version != fmt.Sprint(l.version) || l.random.IntN(4) == 0 {
		return false, l.fails
	}
	l.given, l.version = given, l.version+1
	return true, l.fails
}

// Processes that each work on some objects of a fleet, and hear of the others late, never have more of them take the change at once than
// one process would; and all take it.
func TestProcessesShareWaves(t *testing.T) {
	for seed := range uint64(10) {
		random := rand.New(rand.NewPCG(seed, 1))
		clock := now
		objects, owner := map[types.UID]Member{}, map[types.UID]int{}
		for i := range 25 {
			uid := types.UID(fmt.Sprint("uid-", i))
			objects[uid] = Member{Namespace: fmt.Sprint("team-", i%7), Name: fmt.Sprint("cache-", i), UID: uid, State: Waiting}
			owner[uid] = i % 7 % 3
		}
		book := &ledger{random: random}
		var fleets []*Fleet
		caches := make([]map[types.UID]Member, 3)
		for i := range caches {
			caches[i] = maps.Clone(objects)
			fleets = append(fleets, &Fleet{Options: options, Now: func() time.Time { return clock }, Ledger: book,
				Load: func() (all []Member, _ error) {
					for _, m := range caches[i] {
						all = append(all, m)
					}
					return all, nil
				}})
		}
		for step := 0; ; step++ {
			if step > 40000 {
				t.Fatalf("seed %d: not all took it: %v", seed, objects)
			}
			clock = clock.Add(time.Duration(random.IntN(700)) * time.Millisecond)
			if i := random.IntN(len(caches)); random.IntN(20) == 0 { // some hear of nothing for many steps
				caches[i] = maps.Clone(objects)
			}
			uid := types.UID(fmt.Sprint("uid-", random.IntN(len(objects))))
			m, fleet := objects[uid], fleets[owner[uid]]
			switch {
			case m.State == Waiting:
				wave, has, _, err := fleet.Ask(m)
				if err != nil {
					t.Fatal(err)
				}
				if has && random.IntN(5) > 0 { // else the process could not write it down
					m.State, m.Wave, m.TurnAt = Upgrading, wave, clock
				}
			case m.State == Upgrading && clock.Sub(m.TurnAt) > time.Minute:
				m.State, m.DoneAt = Done, clock
			}
			if objects[uid] = m; m.State != Waiting {
				fleet.Report(m)
			}
			upgrading, done, first := 0, 0, 0
			for _, m := range objects {
				if m.State == Upgrading {
					upgrading++
				}
				if m.State == Done {
					done++
				}
				if m.Wave == 1 {
					first++
				}
			}
			if upgrading > max(options.Wave, options.Canaries) || first > options.Canaries {
				t.Fatalf("seed %d, step %d: %d take it at once, %d are canaries", seed, step, upgrading, first)
			}
			if done == len(objects) {
				break
			}
		}
	}
}

// Without the ledger nobody has a turn.
func TestTheLedgerFails(t *testing.T) {
	broken := errors.New("the API server is away")
	m := Member{Namespace: "shop", Name: "cache", UID: "a", State: Waiting}
	f := &Fleet{Options: options, Now: func() time.Time { return now }, Ledger: &ledger{fails: broken},
		Load: func() ([]Member, error) { return []Member{m}, nil }}
	if _, has, _, err := f.Ask(m); has || !errors.Is(err, broken) {
		t.Errorf("has a turn: %t, %v", has, err)
	}
}
