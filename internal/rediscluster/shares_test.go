// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package rediscluster

import (
	"fmt"
	"testing"
	"time"
)

// enterAll lets as many reconciliations of a namespace in as there is room for.
func enterAll(s *shares, namespace string, now time.Time) []*turn {
	var turns []*turn
	for {
		t := s.enter(namespace, now)
		if t == nil {
			return turns
		}
		turns = append(turns, t)
	}
}

// leaveAfter ends a reconciliation whose instances kept it waiting.
func leaveAfter(s *shares, t *turn, held time.Duration, now time.Time) {
	t.held = held
	s.leave(t, now)
}

// One namespace leaves workers to others, and more of them when it has used up its credit.
func TestSharesOfOneNamespace(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &shares{workers: 8}
	turns := enterAll(s, "hostile", now)
	if len(turns) != 6 || turns[0].indebted {
		t.Fatalf("%d reconciliations of one namespace at once (short of time: %v), want 6 of 8, not short of time", len(turns), turns[0].indebted)
	}
	if got := enterAll(s, "honest", now); len(got) != 6 || got[0].indebted {
		t.Errorf("another namespace gets %d workers beside, want 6 asked for", len(got))
	}
	for _, turn := range turns {
		leaveAfter(s, turn, 4*time.Second, now)
	}
	if turns = enterAll(s, "hostile", now); len(turns) != 2 || !turns[0].indebted {
		t.Errorf("%d reconciliations of a namespace without credit, want 2, short of time", len(turns))
	}
	for _, turn := range turns {
		leaveAfter(s, turn, 0, now)
	}
	later := now.Add(giveBack * (24*time.Second - credit))
	if turns = enterAll(s, "hostile", later.Add(-time.Second)); len(turns) != 2 {
		t.Errorf("%d reconciliations a second before the debt is paid back, want 2", len(turns))
	}
	for _, turn := range turns {
		leaveAfter(s, turn, 0, later)
	}
	if turns = enterAll(s, "hostile", later); len(turns) != 6 {
		t.Errorf("%d reconciliations when the debt is paid back, want 6", len(turns))
	}
	leaveAfter(s, turns[0], 24*time.Hour, later)
	if turn := s.enter("hostile", later.Add(giveBack*(mostUsed-credit))); turn != nil && turn.indebted {
		t.Error("a namespace owes for longer than it can")
	}
}

// However many namespaces have used up their credit, half of the workers are left to those that have not.
func TestSharesOfManyNamespaces(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &shares{workers: 8}
	for i := range 20 {
		turn := s.enter(fmt.Sprint("hostile", i), now)
		if turn == nil {
			t.Fatalf("namespace %d is turned away at first", i)
		}
		leaveAfter(s, turn, time.Minute, now)
	}
	var inside []*turn
	for i := range 20 {
		inside = append(inside, enterAll(s, fmt.Sprint("hostile", i), now)...)
	}
	if len(inside) != 4 {
		t.Fatalf("%d reconciliations of namespaces without credit, want 4 of 8", len(inside))
	}
	if turn := s.enter("honest", now); turn == nil || turn.indebted {
		t.Errorf("a namespace with credit is not let in, or short of time: %+v", turn)
	}
}

// Of namespaces without credit, the one that has waited longest comes first, and who does not ask any more loses its place.
func TestSharesAreGivenInTurn(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &shares{workers: 2} // one for those without credit
	for _, namespace := range []string{"a", "b", "c"} {
		turn := s.enter(namespace, now)
		leaveAfter(s, turn, time.Minute, now)
	}
	first := s.enter("a", now)
	if first == nil {
		t.Fatal("nobody else is there, and a is turned away")
	}
	for i, namespace := range []string{"b", "c"} {
		if s.enter(namespace, now.Add(time.Duration(i)*time.Millisecond)) != nil {
			t.Fatalf("%s is let in beside a", namespace)
		}
	}
	now = now.Add(turnedAway)
	leaveAfter(s, first, time.Second, now)
	for _, namespace := range []string{"a", "c"} {
		if s.enter(namespace, now) != nil {
			t.Fatalf("%s is let in before b, which has waited longer", namespace)
		}
	}
	second := s.enter("b", now)
	if second == nil {
		t.Fatal("b has waited longest and is turned away")
	}
	leaveAfter(s, second, 0, now)
	if s.enter("a", now.Add(stillWaiting)) == nil {
		t.Error("c does not ask any more, and a waits for it")
	}
}

// What is kept of namespaces goes when nothing is owed.
func TestSharesForget(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	s := &shares{workers: 4}
	for i := range 100 {
		turn := s.enter(fmt.Sprint(i), now)
		leaveAfter(s, turn, time.Second, now)
	}
	turn := s.enter("last", now.Add(time.Minute))
	leaveAfter(s, turn, 0, now.Add(time.Minute))
	if len(s.of) != 0 {
		t.Errorf("%d namespaces are remembered", len(s.of))
	}
}
