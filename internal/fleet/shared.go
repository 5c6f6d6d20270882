// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Given is a turn that was given.
type Given struct {
	UID  types.UID `json:"uid"`
	Wave int       `json:"wave"`
	At   time.Time `json:"at"`
}

// Ledger is where processes that share a fleet write down a turn before it is used. Each knows what objects say, a moment late; what was
// given in that moment is in the ledger.
type Ledger interface {
	// Read returns what was given lately, and which version that is.
	Read() (given []Given, version string, err error)
	// Write replaces what was given, unless somebody has written since that version.
	Write(version string, given []Given) (written bool, err error)
}

// mostGiven is how many turns of the last minutes are written down. No further one is given meanwhile.
const mostGiven = 1000

// claim gives a turn to one of this process' own members, if it is its turn also by what others gave.
func (f *Fleet) claim(uid types.UID, now time.Time) (wave int, has bool, err error) {
	given, version, err := f.Ledger.Read()
	if err != nil {
		return 0, false, fmt.Errorf("read whose turn it is: %w", err)
	}
	given = slices.DeleteFunc(given, func(g Given) bool { return now.Sub(g.At).Abs() >= fresh }) // a clock that ran ahead holds nobody up
	members := make(map[types.UID]Member, len(f.members))
	for uid, m := range f.members {
		members[uid] = m
	}
	for _, g := range given {
		if g.UID == uid {
			return g.Wave, true, nil // it was given before, and not written down by the object
		}
		m, known := members[g.UID]
		if !known || m.State == Waiting {
			m.UID, m.State, m.Wave, m.TurnAt = g.UID, Upgrading, g.Wave, g.At
			members[g.UID] = m
		}
	}
	all := make([]Member, 0, len(members))
	for _, m := range members {
		all = append(all, m)
	}
	v := f.Options.Decide(all, now)
	if !slices.Contains(v.Turns, uid) || len(given) >= mostGiven {
		return 0, false, nil
	}
	written, err := f.Ledger.Write(version, append(given, Given{UID: uid, Wave: v.Wave, At: now}))
	if err != nil {
		return 0, false, fmt.Errorf("write down whose turn it is: %w", err)
	}
	return v.Wave, written, nil
}

// refresh reads how far all members are: those of other processes are not reported to this one.
func (f *Fleet) refresh(now time.Time) {
	if f.Ledger == nil || !f.loaded || now.Sub(f.refreshed) < lasts {
		return
	}
	members, err := f.Load()
	if err != nil {
		return // it is as it was
	}
	f.refreshed = now
	there := make(map[types.UID]Member, len(members))
	for _, m := range members {
		was := f.members[m.UID]
		if m.State == Waiting && was.State == Upgrading { // what was read is from before that
			m.State, m.Wave, m.TurnAt = was.State, was.Wave, was.TurnAt
			m.recorded = was.recorded
		} else {
			m.recorded = m.State != Waiting
		}
		m.AskedAt = was.AskedAt
		there[m.UID] = m
	}
	f.members = there
}
