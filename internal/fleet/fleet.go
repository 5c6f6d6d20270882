// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Fleet is what was last told of each member. It is safe for concurrent use. What it knows can be told anew by the objects: whose turn
// has come is written down in each before it does anything.
type Fleet struct {
	Options Options
	// Load reads the members from the objects, before the first has its turn: what happened before this process began counts, too. It
	// makes no request, and is called once; with a Ledger, again and again.
	Load func() ([]Member, error)
	// Ledger is set if other processes work on some of the members, and report these to themselves.
	Ledger Ledger
	Now    func() time.Time
	// Told is called with how far the fleet is whenever that has changed.
	Told func(Verdict)

	mu     sync.Mutex
	loaded bool
	// refreshed is when members were last read, with a Ledger.
	refreshed time.Time
	members   map[types.UID]Member
	verdict   Verdict
	// until is how long verdict holds; zero: something has changed since.
	until time.Time
}

// lasts is how long a verdict is the answer to all who ask, unless something changes: so many ask at once.
const lasts = time.Second

// Report notes how far a member is, as the object says. One that has nothing to take is no member (State is empty).
func (f *Fleet) Report(m Member) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.report(m)
}

func (f *Fleet) report(m Member) {
	was, known := f.members[m.UID]
	switch {
	case m.State == "":
		if !known {
			return
		}
		delete(f.members, m.UID)
		f.until = time.Time{}
		f.tell()
		return
	case m.State == Waiting && known && was.State == Upgrading && !was.recorded:
		m.State, m.Wave, m.TurnAt = was.State, was.Wave, was.TurnAt // it has not been written down yet
	default:
		m.recorded = m.State != Waiting
	}
	if m.AskedAt.IsZero() {
		m.AskedAt = was.AskedAt
	}
	if f.members == nil {
		f.members = map[types.UID]Member{}
	}
	f.members[m.UID] = m
	if was.AskedAt = m.AskedAt; was != m {
		f.changed(m, known)
		f.tell()
	}
}

// changed has who asks next hear of a member that is another one now. Where many begin to wait, one after the other, they hear of it
// within lasts: to look at all for each would take a time that grows with their square.
func (f *Fleet) changed(m Member, known bool) {
	const many = 100
	if known || m.State != Waiting || len(f.members) < many {
		f.until = time.Time{}
	}
}

// tell says how far the fleet is if somebody is to hear of a change: who asks is told anyway. Not before all are known.
func (f *Fleet) tell() {
	if f.loaded {
		f.decide()
	}
}

// Forget drops a member that is gone.
func (f *Fleet) Forget(uid types.UID) { f.Report(Member{UID: uid}) }

// Ask is whether a member that waits has its turn, and with which wave. It goes on having it until the object says so itself.
func (f *Fleet) Ask(m Member) (wave int, has bool, _ Verdict, _ error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.load(); err != nil {
		return 0, false, Verdict{}, err
	}
	now := f.Now()
	m.State, m.AskedAt = Waiting, now
	f.report(m)
	is := f.members[m.UID]
	if is.State == Upgrading {
		return is.Wave, true, f.decide(), nil
	}
	v := f.decide()
	if !slices.Contains(v.Turns, m.UID) {
		return 0, false, v, nil
	}
	is.Wave = v.Wave
	if f.Ledger != nil {
		wave, has, err := f.claim(m.UID, now)
		if err != nil || !has {
			return 0, false, v, err
		}
		is.Wave = wave
	}
	is.State, is.TurnAt = Upgrading, now
	f.members[m.UID], f.until = is, time.Time{}
	return is.Wave, true, f.decide(), nil
}

// load reads the members once. Those that were reported meanwhile are newer.
func (f *Fleet) load() error {
	if f.loaded {
		return nil
	}
	members, err := f.Load()
	if err != nil {
		return fmt.Errorf("read how far the others are: %w", err)
	}
	for _, m := range members {
		if _, known := f.members[m.UID]; !known {
			f.report(m)
		}
	}
	f.loaded = true
	return nil
}

// decide is the verdict of now.
func (f *Fleet) decide() Verdict {
	now := f.Now()
	if now.Before(f.until) {
		return f.verdict
	}
	f.refresh(now)
	members := make([]Member, 0, len(f.members))
	for uid, m := range f.members {
		if m.State == Upgrading && !m.recorded && now.Sub(m.AskedAt) >= fresh { // it did not use it
			m.State, m.Wave, m.TurnAt = Waiting, 0, time.Time{}
			f.members[uid] = m
		}
		members = append(members, m)
	}
	before := f.verdict
	f.verdict, f.until = f.Options.Decide(members, now), now.Add(lasts)
	if f.Told != nil && !same(before, f.verdict) {
		f.Told(f.verdict)
	}
	return f.verdict
}

// same reports whether two verdicts say the same of a fleet.
func same(a, b Verdict) bool {
	return a.String() == b.String()
}
