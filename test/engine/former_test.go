// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// A master that has lost all its slots to others drops their keys. Redis 7.0 does not write that down: when it starts again it has
// them back, and marks their slots as if it imported them. So such marks are no proof that anybody gives it a slot.
func TestFormerMasterComesBackWithAnOldCopy(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		const former, owner = 0, 1
		c := startCluster(t, e, 3, 3, 0)
		part := slots.All().Split(3)[former]
		for _, tag := range tags(part, 3) {
			must(t, c.direct(former).Set(t.Context(), "{"+tag+"}", "old", 0).Err())
		}
		must(t, c.node(owner).SetSlots(t.Context(), part, redis.SlotImporting, c.ids[former]))
		must(t, c.node(owner).SetSlots(t.Context(), part, redis.SlotOwned, c.ids[owner]))
		eventually(t, func() error {
			view, err := c.node(former).Describe(t.Context())
			if err != nil {
				return err
			}
			return want(view.Slots.IsEmpty() && view.Role == redis.RoleMaster, "it is a %s and owns %s", view.Role, view.Slots)
		})
		dropped, err := c.direct(former).DBSize(t.Context()).Result()
		must(t, err)
		c.servers[former].kill()
		c.servers[former].run()
		eventually(t, func() error { return c.node(former).Ping(t.Context()) })
		view := c.view(former)
		keys, err := c.direct(former).DBSize(t.Context()).Result()
		must(t, err)
		t.Logf("%d keys before the restart, %d keys after it and marks %v", dropped, keys, view.Importing)
		want := 0
		if strings.HasPrefix(e.name, "redis-7.0") {
			want = 3
		}
		if int(keys) != want || len(view.Importing) != want || dropped != 0 {
			t.Errorf("%d keys before, %d after it, marks %v; want 0, %d and as many", dropped, keys, view.Importing, want)
		}
	})
}

// A master that receives a slot before it is told that it gave others away takes those back, by its higher epoch, and the destination
// drops the keys. So no master may do both at once.
func TestGiverThatReceivesTakesBack(t *testing.T) {
	forEachEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 0)
		for n := range 5 { // the source may hear of its loss before it looks what it was told
			if c.takesBack(n) {
				return
			}
		}
		t.Error("the destination has kept what it was given each time")
	})
}

// takesBack has the first master give slots to the second, and receive one of the third while it does not hear of it. True if the
// second has neither slots nor keys in the end.
func (c *cluster) takesBack(n int) bool {
	const source, destination, third = 0, 1, 2
	t, ctx := c.t, c.t.Context()
	t.Helper()
	own := func(to int, set slots.Set) error { return c.node(to).SetSlots(ctx, set, redis.SlotOwned, c.ids[to]) }
	begin := func(from, to int, set slots.Set) {
		must(t, c.node(to).SetSlots(ctx, set, redis.SlotImporting, c.ids[from]))
		must(t, c.node(from).SetSlots(ctx, set, redis.SlotMigrating, c.ids[to]))
	}
	first := uint16(100 * n)
	given, one, another := slots.Range(first, first+99), slots.Of(16000+first/50), slots.Of(16001+first/50)
	key := "{" + tags(given, 1)[0] + "}"
	must(t, c.direct(source).Set(ctx, key, "value", 0).Err())
	begin(third, destination, one)
	must(t, own(destination, one)) // now it has the highest epoch
	begin(source, destination, given)
	begin(third, source, another)
	must(t, c.direct(source).Do(ctx, "migrate", "127.0.0.1", c.servers[destination].port, key, 0, 1000, "auth", password).Err())

	must(t, c.servers[source].process.Process.Signal(syscall.SIGSTOP))
	told := make(chan error, 1)
	go func() { told <- own(source, another) }()
	time.Sleep(200 * time.Millisecond) // it finds this first when it goes on
	must(t, own(destination, given))
	must(t, c.servers[source].process.Process.Signal(syscall.SIGCONT))
	must(t, <-told)
	var owns slots.Set
	eventually(t, func() error {
		a, b := c.view(source), c.view(destination)
		owns = b.Slots.Intersect(given)
		return want(a.Slots.Intersect(b.Slots).IsEmpty(), "both own %s", a.Slots.Intersect(b.Slots))
	})
	left, err := c.node(destination).CountKeysInSlots(ctx, given)
	must(t, err)
	t.Logf("the destination owns %d slots of 100, and holds %d keys of them", owns.Len(), len(left))
	return owns.IsEmpty() && len(left) == 0
}
