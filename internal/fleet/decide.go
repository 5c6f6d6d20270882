// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fleet decides which objects take a change that only the operator made, and when: a few canaries first, then waves, with a pause
// after each, and none any more while one that took it is not well. It is pure but for Fleet, which keeps what was last told of each.
package fleet

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Options are how a change reaches a fleet.
type Options struct {
	// Canaries is how many take it first, Wave how many at once after that; Pause is how long all of a wave have been well before the next.
	Canaries, Wave int
	// Share is how many of a hundred a wave has at least.
	Share int
	Pause time.Duration
	// Stuck is how long one that takes it may make no progress.
	Stuck time.Duration
}

const (
	// longest is how long one may take in all before the others go on without it.
	longest = 4 * time.Hour
	// blamed is for how long after it has taken the change one that stops being well is put down to the change.
	blamed = time.Hour
	// holdsFor is how long members of one namespace stop all others. Then one of another namespace is tried.
	holdsFor = 10 * time.Minute
	// fresh is how long one that waits keeps its place in line without asking again.
	fresh = 5 * time.Minute
)

// State is how far a member is.
type State string

// The states.
const (
	// Waiting: it has the change still to take.
	Waiting State = "Waiting"
	// Upgrading: its turn has come, Done: it has taken the change.
	Upgrading State = "Upgrading"
	Done      State = "Done"
)

// Member is one object that takes the change.
type Member struct {
	Namespace, Name string
	UID             types.UID
	State           State
	// AskedAt is when it last asked for its turn; zero: it did not ask this process.
	AskedAt time.Time
	// Wave is the number of the wave that it went with: 1 are the canaries. TurnAt is when its turn came, DoneAt when it was done.
	Wave           int
	TurnAt, DoneAt time.Time
	// ProgressAt is when it last made progress; zero: it has made none.
	ProgressAt time.Time
	// UnwellSince is since when it has not been well; zero: it is.
	UnwellSince time.Time
	// recorded reports whether the object says itself that its turn has come.
	recorded bool
}

func (m Member) String() string { return m.Namespace + "/" + m.Name }

// Verdict is how far a fleet is, and who is next.
type Verdict struct {
	// Turns are those whose turn it is now, as members of Wave.
	Turns []types.UID
	Wave  int
	// Waiting, Upgrading, Done and Failed are how many are so far.
	Waiting, Upgrading, Done, Failed int
	// Current are those that take the change, and Failing those that took it and are not well, each in order.
	Current, Failing []Member
	// Stopped reports whether none has its turn before one of Failing is well. Aside is the namespace without which the others go on; empty:
	// none.
	Stopped bool
	Aside   string
	// Next is when the next wave begins; zero: that is not known.
	Next time.Time
}

// failing is since when a member that had its turn is not well because of the change, as far as can be told; zero: it is well.
func (o Options) failing(m Member, now time.Time) time.Time {
	var since time.Time
	switch {
	case m.State == Upgrading:
		progress := m.TurnAt
		if m.ProgressAt.After(progress) {
			progress = m.ProgressAt
		}
		since = progress.Add(o.Stuck)
		if limit := m.TurnAt.Add(longest); limit.Before(since) {
			since = limit
		}
	case m.State == Done && !m.UnwellSince.IsZero() && m.UnwellSince.Sub(m.DoneAt) < blamed:
		since = m.UnwellSince
	}
	if since.IsZero() || since.After(now) {
		return time.Time{}
	}
	return since
}

// inLine reports whether a member waits and is there to take its turn.
func inLine(m Member, now time.Time) bool {
	return m.State == Waiting && !m.AskedAt.IsZero() && now.Sub(m.AskedAt) < fresh
}

// Decide says whose turn it is. One namespace stops the others for no longer than holdsFor: then one of another namespace is tried, and if
// that one is well, the others go on without the first namespace.
func (o Options) Decide(members []Member, now time.Time) Verdict {
	var v Verdict
	var had []Member
	var since time.Time
	for _, m := range members {
		failing := o.failing(m, now)
		switch {
		case !failing.IsZero():
			v.Failed++
			v.Failing = append(v.Failing, m)
			if since.IsZero() || failing.Before(since) {
				since = failing
			}
		case m.State == Upgrading:
			v.Upgrading++
			v.Current = append(v.Current, m)
			had = append(had, m)
		case m.State == Done:
			v.Done++
			had = append(had, m)
		default:
			v.Waiting++
		}
	}
	slices.SortFunc(v.Current, byName)
	slices.SortFunc(v.Failing, byName)
	o.Wave = max(o.Wave, len(members)*o.Share/100)
	most := o.Wave
	if len(v.Failing) > 0 {
		namespace, only := v.Failing[0].Namespace, true
		for _, m := range v.Failing {
			only = only && m.Namespace == namespace
		}
		if v.Stopped = !only || now.Sub(since) < holdsFor; v.Stopped {
			return v
		}
		v.Aside = namespace
		if !o.proven(had, namespace, now) {
			most = 1
		}
	}
	free := o.free(&v, had, min(most, o.Wave), now)
	line := line(members, v.Aside, now)
	v.Stopped = v.Aside != "" && len(line) == 0 && v.Waiting > 0 && v.Upgrading == 0
	for _, m := range line[:min(free, len(line))] {
		v.Turns = append(v.Turns, m.UID)
	}
	return v
}

// proven reports whether one of another namespace took the change and has been well since.
func (o Options) proven(had []Member, but string, now time.Time) bool {
	return slices.ContainsFunc(had, func(m Member) bool {
		return m.Namespace != but && m.State == Done && m.UnwellSince.IsZero() && now.Sub(m.DoneAt) >= o.Pause
	})
}

// free is how many may have their turn now, of at most so many in a wave. had are those that had it and do not fail.
func (o Options) free(v *Verdict, had []Member, most int, now time.Time) int {
	v.Wave = 1
	var doneAt time.Time
	for _, m := range slices.Concat(had, v.Failing) {
		v.Wave = max(v.Wave, m.Wave)
		if m.State == Done && m.DoneAt.After(doneAt) && !m.DoneAt.After(now) { // a clock that ran ahead holds up nobody
			doneAt = m.DoneAt
		}
	}
	size := func() int {
		if v.Wave == 1 {
			return min(o.Canaries, max(most, 1))
		}
		return most
	}
	switch {
	case len(had)+len(v.Failing) == 0:
		return size()
	case v.Upgrading > 0:
		of := 0
		for _, m := range had {
			if m.Wave == v.Wave {
				of++
			}
		}
		return max(0, size()-max(of, v.Upgrading))
	case now.Before(doneAt.Add(o.Pause)):
		v.Next = doneAt.Add(o.Pause)
		return 0
	}
	v.Wave++
	return size()
}

// line are those that wait for their turn, in order: each namespace's first before any second, and by chance among them, which nobody who
// names an object decides on. Those that had their turn before count for their namespace.
func line(members []Member, but string, now time.Time) []Member {
	rank := map[string]int{}
	var line []Member
	for _, m := range members {
		if m.State != Waiting {
			rank[m.Namespace]++
		} else if inLine(m, now) && m.Namespace != but {
			line = append(line, m)
		}
	}
	slices.SortFunc(line, func(a, b Member) int { return cmp.Or(cmp.Compare(chance(a), chance(b)), cmp.Compare(a.UID, b.UID)) })
	place := make(map[types.UID]int, len(line))
	for _, m := range line {
		place[m.UID] = rank[m.Namespace]
		rank[m.Namespace]++
	}
	slices.SortStableFunc(line, func(a, b Member) int { return cmp.Compare(place[a.UID], place[b.UID]) })
	return line
}

func chance(m Member) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(m.UID))
	return h.Sum64()
}

func byName(a, b Member) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// For is the fleet in one line, for those of a namespace: others are counted, not named.
func (v Verdict) For(namespace string) string {
	theirs := func(all []Member) string {
		var own []string
		for _, m := range all {
			if m.Namespace == namespace {
				own = append(own, m.Name)
			}
		}
		text := fmt.Sprint(len(all))
		if len(own) > 0 {
			text += " (here: " + strings.Join(own[:min(most, len(own))], ", ") + ")"
		}
		return text
	}
	text := fmt.Sprintf("%d of %d upgraded", v.Done, v.all())
	if len(v.Current) > 0 {
		text += fmt.Sprintf(", %s being upgraded", theirs(v.Current))
	}
	if len(v.Failing) > 0 {
		text += fmt.Sprintf(", %s not well since then", theirs(v.Failing))
	}
	if v.Stopped || v.Aside == namespace {
		text += ", and none of the others is upgraded before"
	}
	return text
}

func (v Verdict) all() int { return v.Done + v.Upgrading + v.Waiting + v.Failed }

// most is how many members are named.
const most = 3

// String is the fleet in one line, for who runs the operator.
func (v Verdict) String() string {
	text := fmt.Sprintf("%d of %d upgraded", v.Done, v.all())
	if len(v.Current) > 0 {
		text += fmt.Sprintf(", %s being upgraded", names(v.Current))
	}
	if len(v.Failing) > 0 {
		text += fmt.Sprintf(", %s not well since it was", names(v.Failing))
	}
	switch {
	case v.Stopped:
		text += ": no other is upgraded before"
	case v.Aside != "":
		text += fmt.Sprintf(": the others go on without namespace %s", v.Aside)
	case !v.Next.IsZero():
		text += fmt.Sprintf(", the next at %s", v.Next.UTC().Format(time.RFC3339))
	}
	return text
}

// names are the first few of some members.
func names(of []Member) string {
	text := ""
	for i, m := range of[:min(most, len(of))] {
		if i > 0 {
			text += ", "
		}
		text += m.String()
	}
	if more := len(of) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
