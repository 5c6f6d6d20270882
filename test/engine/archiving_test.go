// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"middleware.hc.cn/operator/internal/archive"
	"middleware.hc.cn/operator/internal/archive/directory"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/reshard"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// archiving is an archive of the cluster with short intervals.
func (c *cluster) archiving(store *archive.Store) archive.Archiving {
	taking := c.taking("archive", store)
	taking.Request, taking.Cluster = "asked", "shop/cache"
	return archive.Archiving{Taking: taking, Interval: 200 * time.Millisecond, MarkEvery: 400 * time.Millisecond}
}

// archived is an archive that is being written.
type archived struct {
	c     *cluster
	store *archive.Store
	end   func() error // asks it to end, and waits
	wait  func() error
}

func startArchive(a archive.Archiving, c *cluster) *archived {
	ctx, cancel := context.WithCancel(c.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	wait := func() error {
		select {
		case err := <-ended:
			return err
		case <-time.After(timeout):
			return errors.New("it has not ended")
		}
	}
	return &archived{c: c, store: a.Store, end: func() error { cancel(); return wait() }, wait: wait}
}

// after waits for a moment that is of a time or later, one for all shards if the engine can, and returns it.
func (a *archived) after(at time.Time) *archive.Manifest {
	a.c.t.Helper()
	var m *archive.Manifest
	eventually(a.c.t, func() (err error) {
		m, err = a.store.At(a.c.t.Context(), "archive", time.Time{}, a.c.servers[0].engine.name != "valkey-8.1")
		if errors.Is(err, archive.ErrNotFound) {
			return err
		}
		must(a.c.t, err)
		return want(!m.Marked.Before(at), "the last moment is %s, before %s", m.Marked, at)
	})
	return m
}

// TestArchive: what was acknowledged before a moment is in the archive, whatever happens to the cluster and to who writes the archive: a
// restart, a switchover, slots that move, and FLUSHALL, which is undone by the moment before.
func TestArchive(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 3, 3, 3)
		client, store := c.client(), newStore(t)
		ch := startChain(c)
		archiving := c.archiving(store)
		a := startArchive(archiving, c)
		first := a.after(time.Now())

		must(t, a.end()) // and what comes meanwhile is there, too
		tag := tags(slots.All().Split(3)[0], 1)[0]
		keys := everyType(t, client, tag)
		a = startArchive(archiving, c)
		second := a.after(time.Now())
		if base, again := first.Shards[1].Base, second.Shards[1].Base; base != again {
			t.Errorf("a restart needed a new base: %+v, then %+v", base, again)
		}

		must(t, c.node(3).Failover(t.Context(), redis.FailoverDefault))
		eventually(t, func() error {
			view := c.view(3)
			return want(view.Role == redis.RoleMaster && !view.Slots.IsEmpty(), "the replica is a %s", view.Role)
		})
		third := a.after(time.Now())
		if base, again := second.Shards[0].Base, third.Shards[0].Base; base != again {
			t.Errorf("a switchover needed a new base: %+v, then %+v", base, again)
		}
		_, err := reshard.Classic(t.Context(), []reshard.Move{c.move(2, 1, slots.Of(16383))}, reshard.Options{})
		must(t, err)
		written, before := contents(t, client, keys), ch.acknowledged()
		whole := a.after(time.Now())
		ch.end()
		for _, i := range []int{3, 1, 2} {
			must(t, c.direct(i).FlushAll(t.Context()).Err())
		}
		empty := a.after(time.Now())
		must(t, a.end())

		at, err := store.At(t.Context(), "archive", whole.Marked, false)
		must(t, err)
		if at.Checksum != whole.Checksum {
			t.Errorf("the moment of %s is the one of %s", whole.Marked, at.Marked)
		}
		must(t, store.Verify(t.Context(), whole))
		again := restored(t, e, store, whole)
		if got := contents(t, again.client(), keys); fmt.Sprint(got) != fmt.Sprint(written) {
			t.Errorf("keys differ: %v\nwant %v", got, written)
		}
		if whole.Consistent {
			ch.wantWhole(t, again.client(), before)
		}
		if !slices.ContainsFunc(whole.Shards, func(s archive.Shard) bool { return s.Slots.Contains(16383) && s.Slots.Contains(8000) }) {
			t.Errorf("slots that have moved: %+v", whole.Shards)
		}
		emptied := restored(t, e, store, empty)
		for i := range emptied.masters {
			if n := emptied.direct(i).DBSize(t.Context()).Val(); n != 0 {
				t.Errorf("%d keys after FLUSHALL", n)
			}
		}
	})
}

// TestArchiveThroughFaults: a store that is away for a while, another process that takes the archive over, bases that are renewed and
// moments that are too old, and a shard that is added: the archive goes on, and what it has is whole.
func TestArchiveThroughFaults(t *testing.T) {
	forOneEngine(t, func(t *testing.T, e engine) {
		c := startCluster(t, e, 4, 3, 4)
		ch := startChain(c)
		dir := filepath.Join(t.TempDir(), "store")
		must(t, os.Mkdir(dir, 0o700))
		bucket, err := directory.Open(dir, "")
		must(t, err)
		t.Cleanup(func() { _ = bucket.Close() })
		store := archive.NewStore(bucket, archive.Keys{})
		archiving := c.archiving(store)
		first := startArchive(archiving, c)
		before := first.after(time.Now())

		must(t, os.Rename(dir, dir+"-away"))
		must(t, os.WriteFile(dir, nil, 0o600))
		time.Sleep(2 * time.Second) // some intervals
		must(t, os.Remove(dir))
		must(t, os.Rename(dir+"-away", dir))
		if after := first.after(time.Now()); after.Shards[0].Base != before.Shards[0].Base {
			t.Error("a store that was away needed a new base")
		}

		second := startArchive(archiving, c)
		second.after(time.Now())
		if err := first.wait(); !errors.Is(err, archive.ErrReplaced) {
			t.Errorf("the former process ended with %v", err)
		}
		must(t, second.end())

		archiving.BaseEvery, archiving.Keep = time.Second, 2*time.Second
		third := startArchive(archiving, c)
		set := slots.Range(0, 99)
		_, err = reshard.Classic(t.Context(), []reshard.Move{c.move(0, 3, set)}, reshard.Options{})
		must(t, err)
		eventually(t, func() error {
			m := third.after(time.Now())
			return want(len(m.Shards) == 4 && m.Shards[1].Base != before.Shards[1].Base, "%d shards", len(m.Shards))
		})
		acknowledged := ch.acknowledged()
		last := third.after(time.Now())
		ch.end()
		must(t, third.end())
		must(t, store.Verify(t.Context(), last))
		again := restored(t, e, store, last)
		if last.Consistent {
			ch.wantWhole(t, again.client(), acknowledged)
		}
	})
}
