// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// When a master was last demoted is when its successor was first seen, also if it does not answer itself until later; and a replica
// that was told to take over is remembered until it has.
func TestRolesAreRemembered(t *testing.T) {
	began := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	clock := began
	var m Memory
	var follows string
	var answered map[string]snapshot.Answered
	pass := func(after time.Duration, master string, answer ...string) map[string]*snapshot.Redis {
		clock = began.Add(after)
		s, seen := &snapshot.Snapshot{}, map[string]*snapshot.Redis{}
		for _, id := range answer {
			seen[id] = &snapshot.Redis{NodeID: id, AnsweredAt: clock, MasterID: follows}
			if id == master {
				seen[id].Slots = slots.All()
			}
			s.Instances = append(s.Instances, snapshot.Instance{Redis: seen[id]})
		}
		other := &snapshot.Redis{NodeID: "other", Slots: slots.All(), AnsweredAt: clock}
		s.Instances = append(s.Instances, snapshot.Instance{Shard: 1, Redis: other})
		m.noteRoles(s, clock)
		answered = s.Answered
		if s.Instances[len(answer)].Redis.DemotedAt != (time.Time{}) {
			t.Errorf("after %s the master of another shard is demoted", after)
		}
		return seen
	}
	pass(0, "a", "a", "b")
	m.NoteSwitchover("b", clock)
	if got := pass(time.Second, "a", "a", "b")["b"].SwitchoverAt; !got.Equal(began) {
		t.Errorf("b was told at %s", got)
	}
	if got := pass(6*time.Second, "b", "b")["b"]; !got.SwitchoverAt.IsZero() || !got.DemotedAt.IsZero() {
		t.Errorf("b took over, and was told at %s, demoted at %s", got.SwitchoverAt, got.DemotedAt)
	}
	if got := answered["a"]; !got.At.Equal(began.Add(time.Second)) || got.Master {
		t.Errorf("a answered at %s, and is a master still: %t", got.At, got.Master)
	}
	if got := pass(40*time.Second, "b", "a", "b")["a"].DemotedAt; !got.Equal(began.Add(6 * time.Second)) {
		t.Errorf("a was demoted at %s", got)
	}
	if got := pass(41*time.Second, "a", "a", "b"); !got["b"].DemotedAt.Equal(began.Add(41*time.Second)) ||
		!got["a"].DemotedAt.Equal(began.Add(6*time.Second)) {
		t.Errorf("b was demoted at %s, a at %s", got["b"].DemotedAt, got["a"].DemotedAt)
	}
	if got := pass(42*time.Second, "a", "a", "b")["a"].ReceivedAt; !got.Equal(began.Add(41 * time.Second)) {
		t.Errorf("a received its slots at %s", got)
	}
	follows = "a"
	pass(3*time.Hour, "", "b")
	if got := answered["a"]; len(answered) != 1 || !got.At.Equal(began.Add(42*time.Second)) || !got.Master {
		t.Errorf("of nodes that do not answer it knows %+v, want a, which somebody follows", answered)
	}
	follows = ""
	pass(3*time.Hour, "b", "b")
	if n := len(m.roles); n != 2 {
		t.Errorf("%d nodes are remembered, want those that answer", n)
	}
}

// Slots are disowned since the first look at which nobody claimed them, without interruption. Others that come to it begin anew when
// the first ones are claimed; what an instance that does not answer owns is not disowned.
func TestDisownedSlotsAreRemembered(t *testing.T) {
	began := time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)
	var m Memory
	pass := func(after time.Duration, claims, named slots.Set, isThere bool, want slots.Set, since time.Duration) {
		t.Helper()
		s := &snapshot.Snapshot{Instances: []snapshot.Instance{
			{Redis: &snapshot.Redis{NodeID: "other", Peers: map[string]snapshot.Peer{"owner": {ID: "owner", Slots: named}}}},
			{Redis: &snapshot.Redis{NodeID: "owner", Slots: claims}}}}
		if !isThere {
			s.Instances[1].Redis = nil
		}
		m.noteDisowned(s, began.Add(after))
		if !s.Disowned.Equal(want) || !want.IsEmpty() && !s.DisownedSince.Equal(began.Add(since)) {
			t.Errorf("after %s: %s since %s", after, s.Disowned, s.DisownedSince.Sub(began))
		}
	}
	one, two := slots.Of(1), slots.Of(1, 2)
	pass(0, slots.All(), slots.All(), true, slots.Set{}, 0)
	pass(1*time.Second, slots.Of(3), slots.Of(1, 3), true, one, 1*time.Second)
	pass(2*time.Second, slots.Of(3), slots.Of(1, 2, 3), true, one, 1*time.Second)
	pass(3*time.Second, slots.Of(1, 3), slots.Of(1, 2, 3), true, slots.Of(2), 3*time.Second)
	pass(4*time.Second, slots.Of(3), two, false, slots.Set{}, 0)
	pass(5*time.Second, slots.Of(3), two, true, two, 5*time.Second)
	pass(6*time.Second, slots.All(), two, true, slots.Set{}, 0)
}
