// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// A source that is told to give slots away once more when they have come back does so, of those of which it holds no key, to a master
// that does not know of it. Everybody else takes the source for the owner, and no engine ever settles that: the operator tells it.
// The slots can be moved again afterwards, with their keys.
func TestSlotsThatNobodyClaimsAreReclaimed(t *testing.T) {
	forEveryEngine(t, func(t *testing.T, e engine) {
		o := operate(t, e, 2, 1, 1)
		source, destination := o.master(0), o.named(2, 0)
		given := o.view(source).Slots.Take(20)
		full := slots.Of(slots.KeySlot(tags(given, 1)[0]))
		empty, client := given.Subtract(full), o.client()
		must(t, client.Set(t.Context(), "{"+tags(full, 1)[0]+"}", "kept", 0).Err())
		o.moveSlots(source, destination, given)
		o.moveSlots(destination, source, given)
		epoch := o.view(source).ConfigEpoch

		err := o.node(source).SetSlots(t.Context(), given, redis.SlotOwned, o.view(destination).NodeID)
		if !errors.Is(err, redis.ErrSlotHasKeys) {
			t.Errorf("a slot with a key: %v", err)
		}
		time.Sleep(3 * time.Second) // more than a node timeout, in which all hear of each other
		for _, p := range o.pods {
			view, named := o.view(p), destination
			if strings.HasPrefix(p.pod.Name, "c-1") || p == destination {
				named = source
			}
			if !view.Slots.Intersect(empty).IsEmpty() {
				t.Errorf("%s claims %s", p.pod.Name, view.Slots.Intersect(empty))
			}
			t.Logf("%s takes %s for the owner of %d of the %d slots that nobody claims", p.pod.Name, named.pod.Name,
				o.says(p, named).Intersect(empty).Len(), empty.Len())
		}
		key := "{" + tags(empty, 1)[0] + "}"
		if err := client.Set(t.Context(), key, "lost", 0).Err(); err == nil {
			t.Error("somebody serves a slot that nobody claims")
		}

		o.converge()
		if !slices.ContainsFunc(o.steps, func(step string) bool { return strings.HasPrefix(step, "ReclaimSlots: ") }) {
			t.Errorf("nothing was reclaimed:\n%s", strings.Join(o.steps, "\n"))
		}
		if view := o.view(source); view.ConfigEpoch != epoch || !given.Subtract(view.Slots).IsEmpty() {
			t.Errorf("it owns %s with epoch %d, and had %d", view.Slots, view.ConfigEpoch, epoch)
		}
		must(t, client.Set(t.Context(), key, "new", 0).Err())
		rest()
		o.moveSlots(source, destination, given)
		o.moveSlots(destination, source, given)
		o.converge()
		for key, want := range map[string]string{key: "new", "{" + tags(full, 1)[0] + "}": "kept"} {
			if got, err := client.Get(t.Context(), key).Result(); err != nil || got != want {
				t.Errorf("%s is %q, %v; want %q", key, got, err, want)
			}
		}
	})
}

// moveSlots moves slots key by key, and waits until all instances agree on it and what was said before has arrived.
func (o *operated) moveSlots(from, to *operatedPod, set slots.Set) {
	o.t.Helper()
	end := func(p *operatedPod) reshard.End {
		return reshard.End{Node: o.node(p), ID: o.view(p).NodeID, IP: p.pod.Status.PodIP, Port: int(v1alpha1.PortRedis)}
	}
	eventually(o.t, func() error {
		left := set.Intersect(o.view(from).Slots)
		_, err := reshard.Classic(o.t.Context(), []reshard.Move{{From: end(from), To: end(to), Slots: set}}, reshard.Options{})
		if err := want(err == nil && left.IsEmpty(), "%s is left to move: %v", left, err); err != nil {
			return err
		}
		for _, p := range o.pods {
			if p != to && !set.Subtract(o.says(p, to)).IsEmpty() {
				return errors.New(p.pod.Name + " has not heard of it")
			}
		}
		return nil
	})
	rest()
}

// rest lasts as long as a master that received slots gives none, be it by a move or because it reclaimed them: until then Redis 7.0 takes
// an older message of who did not claim them for the latest.
func rest() { time.Sleep(4 * time.Second) }

// says is which slots an instance takes another one for the owner of.
func (o *operated) says(p, owner *operatedPod) slots.Set {
	o.t.Helper()
	id := o.view(owner).NodeID
	for _, peer := range o.view(p).Peers {
		if peer.ID == id {
			return peer.Slots
		}
	}
	return slots.Set{}
}
