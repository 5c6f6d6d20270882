// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
)

var (
	now     = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	options = Options{Canaries: 1, Wave: 3, Pause: time.Minute, Stuck: 30 * time.Minute}
)

func ago(d time.Duration) time.Time { return now.Add(-d) }

func member(namespace, name string, state State, changes ...func(*Member)) Member {
	m := Member{Namespace: namespace, Name: name, UID: types.UID(namespace + "/" + name), State: state}
	switch state {
	case Waiting:
		m.AskedAt = now
	case Upgrading:
		m.Wave, m.TurnAt = 1, ago(time.Minute)
	case Done:
		m.Wave, m.TurnAt, m.DoneAt = 1, ago(time.Hour), ago(50*time.Minute)
	}
	for _, change := range changes {
		change(&m)
	}
	return m
}

func inWave(n int) func(*Member)            { return func(m *Member) { m.Wave = n } }
func doneAt(at time.Time) func(*Member)     { return func(m *Member) { m.DoneAt = at } }
func turnAt(at time.Time) func(*Member)     { return func(m *Member) { m.TurnAt = at } }
func progressAt(at time.Time) func(*Member) { return func(m *Member) { m.ProgressAt = at } }
func unwell(at time.Time) func(*Member)     { return func(m *Member) { m.UnwellSince = at } }
func askedAt(at time.Time) func(*Member)    { return func(m *Member) { m.AskedAt = at } }

// waiting are n members of a namespace that wait.
func waiting(namespace string, n int) []Member {
	var members []Member
	for i := range n {
		members = append(members, member(namespace, fmt.Sprint("w", i), Waiting))
	}
	return members
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name    string
		members []Member
		turns   int
		wave    int
		stopped bool
		aside   string
		line    string
	}{
		{name: "the canary first", members: waiting("a", 5), turns: 1, wave: 1, line: "0 of 5 upgraded"},
		{name: "nobody beside the canary", members: append(waiting("a", 5), member("a", "canary", Upgrading)), turns: 0, wave: 1,
			line: "0 of 6 upgraded, a/canary being upgraded"},
		{name: "a pause after the canary", members: append(waiting("a", 5), member("a", "canary", Done, doneAt(ago(59*time.Second)))),
			turns: 0, wave: 1, line: "1 of 6 upgraded, the next at 2026-11-27T12:00:01Z"},
		{name: "then a wave", members: append(waiting("a", 5), member("a", "canary", Done, doneAt(ago(time.Minute)))), turns: 3, wave: 2,
			line: "1 of 6 upgraded"},
		{name: "a clock that ran ahead", members: append(waiting("a", 5), member("a", "canary", Done, doneAt(now.Add(time.Hour)))), turns: 3,
			wave: 2, line: "1 of 6 upgraded"},
		{name: "who comes late joins a wave that has room", members: append(waiting("a", 5), member("a", "canary", Done),
			member("a", "x", Upgrading, inWave(2)), member("a", "y", Done, inWave(2))), turns: 1, wave: 2,
			line: "2 of 8 upgraded, a/x being upgraded"},
		{name: "a wave that is full", members: append(waiting("a", 5), member("a", "canary", Done), member("a", "x", Upgrading, inWave(2)),
			member("a", "y", Done, inWave(2)), member("a", "z", Done, inWave(2))), turns: 0, wave: 2,
			line: "3 of 9 upgraded, a/x being upgraded"},
		{name: "one that is not well after its turn stops all", members: append(waiting("a", 5),
			member("a", "canary", Done, unwell(ago(time.Minute)))), stopped: true,
			line: "0 of 6 upgraded, a/canary not well since it was: no other is upgraded before"},
		{name: "one that has made no progress for too long, too", members: append(waiting("a", 5),
			member("a", "canary", Upgrading, turnAt(ago(30*time.Minute)))), stopped: true,
			line: "0 of 6 upgraded, a/canary not well since it was: no other is upgraded before"},
		{name: "not one that makes progress", members: append(waiting("a", 5),
			member("a", "canary", Upgrading, turnAt(ago(time.Hour)), progressAt(ago(29*time.Minute)))), wave: 1,
			line: "0 of 6 upgraded, a/canary being upgraded"},
		{name: "one that takes longer than any may", members: append(waiting("a", 5),
			member("a", "canary", Upgrading, turnAt(ago(4*time.Hour)), progressAt(now))), stopped: true,
			line: "0 of 6 upgraded, a/canary not well since it was: no other is upgraded before"},
		{name: "what goes wrong long after is not put down to the change", members: append(waiting("a", 5),
			member("a", "canary", Done, doneAt(ago(2*time.Hour)), unwell(ago(time.Hour)))), turns: 3, wave: 2, line: "1 of 6 upgraded"},
		{name: "one namespace stops others for ten minutes", members: append(waiting("b", 5),
			member("a", "canary", Done, unwell(ago(9*time.Minute)))), stopped: true,
			line: "0 of 6 upgraded, a/canary not well since it was: no other is upgraded before"},
		{name: "then one of another is tried", members: append(append(waiting("b", 5), waiting("a", 5)...),
			member("a", "canary", Done, unwell(ago(10*time.Minute)))), turns: 1, wave: 2, aside: "a",
			line: "0 of 11 upgraded, a/canary not well since it was: the others go on without namespace a"},
		{name: "alone", members: append(waiting("b", 5), member("a", "canary", Done, unwell(ago(10*time.Minute))),
			member("b", "second", Upgrading, inWave(2))), turns: 0, wave: 2, aside: "a",
			line: "0 of 7 upgraded, b/second being upgraded, a/canary not well since it was: the others go on without namespace a"},
		{name: "if it is well the others go on", members: append(waiting("b", 5), member("a", "canary", Done, unwell(ago(10*time.Minute))),
			member("b", "second", Done, inWave(2))), turns: 3, wave: 3, aside: "a",
			line: "1 of 7 upgraded, a/canary not well since it was: the others go on without namespace a"},
		{name: "if not, all stop", members: append(append(waiting("b", 5), waiting("c", 5)...),
			member("a", "canary", Done, unwell(ago(40*time.Minute))), member("b", "second", Done, inWave(2), unwell(ago(30*time.Minute)))),
			stopped: true, line: "0 of 12 upgraded, a/canary, b/second not well since it was: no other is upgraded before"},
		{name: "there is no other namespace", members: append(waiting("a", 5), member("a", "canary", Done, unwell(ago(40*time.Minute)))),
			stopped: true, wave: 2, aside: "a", line: "0 of 6 upgraded, a/canary not well since it was: no other is upgraded before"},
		{name: "who does not ask keeps nobody", members: []Member{member("a", "x", Waiting, askedAt(ago(6*time.Minute))),
			member("a", "y", Waiting), member("a", "z", Waiting, askedAt(time.Time{}))}, turns: 1, wave: 1, line: "0 of 3 upgraded"},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := options.Decide(c.members, now)
			if diff := cmp.Diff([]any{c.turns, c.wave, c.stopped, c.aside, c.line},
				[]any{len(v.Turns), v.Wave, v.Stopped, v.Aside, v.String()}); diff != "" {
				t.Errorf("turns, wave, stopped, aside, line (-want +got):\n%s", diff)
			}
		})
	}
}

// Each namespace has its first before any has its second, and the order is the same at every look.
func TestLine(t *testing.T) {
	members := append(append(waiting("a", 20), waiting("b", 2)...), waiting("c", 1)...)
	first := line(members, "", now)
	seen := map[string]bool{}
	for _, m := range first[:3] {
		seen[m.Namespace] = true
	}
	if len(seen) != 3 {
		t.Errorf("the first three are of the namespaces %v", seen)
	}
	members[0], members[10] = members[10], members[0]
	if diff := cmp.Diff(first, line(members, "", now), cmp.AllowUnexported(Member{})); diff != "" {
		t.Errorf("the order depends on that of the members:\n%s", diff)
	}
	had := append(members, member("c", "had", Done))
	if got := line(had, "", now); got[0].Namespace == "c" || got[1].Namespace == "c" {
		t.Errorf("a namespace that had a turn comes before one that had none: %v", got[:3])
	}
}
