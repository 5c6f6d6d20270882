// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"middleware.hc.cn/operator/internal/archive"
)

// severalParts is more than two parts of an object, in keys of a MiB. Nothing makes them smaller.
const severalParts = 40

// fillLarge writes keys of a MiB each.
func fillLarge(c *cluster, name string, keys int) {
	c.t.Helper()
	client, value := c.client(), make([]byte, 1<<20)
	for i := range keys {
		rand.Read(value)
		must(c.t, client.Set(c.t.Context(), fmt.Sprint(name, i), value, 0).Err())
	}
}

// streamBegun waits until the first part of a backup's stream lies in the store, and returns its key.
func (m *minio) streamBegun() (key string) {
	m.t.Helper()
	eventually(m.t, func() error {
		objects := m.objects()
		if len(objects) != 1 {
			return fmt.Errorf("there are %q", objects)
		}
		key = strings.Replace(objects[0], "base.rdb", "stream.aof", 1)
		return want(m.unfinished(key) == 1, "%d uploads of %s", m.unfinished(key), key)
	})
	return key
}

// TestUploadsOfSeveralParts: what is larger than a part is read back and restored; and when it is given up half way, no part is left, which
// would be paid for and be in no list.
func TestUploadsOfSeveralParts(t *testing.T) {
	t.Parallel()
	e := engines(t)[0]
	m, c := startMinIO(t), startCluster(t, e, 1, 1, 0)
	fillLarge(c, "base", severalParts/2)
	store := m.store(m.session(documented(t, "s3:ListBucket")), archive.Keys{})

	ctx, giveUp := context.WithCancel(t.Context())
	abandoned, begun := c.taking("abandoned", store), ""
	onReport(&abandoned, basesAreThere, func() {
		fillLarge(c, "stream", severalParts)
		begun = m.streamBegun()
		giveUp()
	})
	_, err := abandoned.Take(ctx)
	wantError(t, err, context.Canceled.Error())
	if left, parts := m.objects(), m.unfinished(begun); len(left) > 0 || parts > 0 {
		t.Errorf("of a backup that was given up, %q and %d unfinished uploads are left", left, parts)
	}

	whole := c.taking("whole", store)
	onReport(&whole, basesAreThere, func() { fillLarge(c, "stream", severalParts) })
	manifest, err := whole.Take(t.Context())
	must(t, err)
	if s := manifest.Shards[0]; s.Base.Size < severalParts<<20 || s.Stream.Size < severalParts<<20 {
		t.Errorf("the objects have %d and %d bytes", s.Base.Size, s.Stream.Size)
	}
	_, err = m.command(m.root()).run(t, "verify", "whole")
	must(t, err)
	if keys := restored(t, e, store, manifest).view(0).Keys; keys != c.view(0).Keys {
		t.Errorf("%d keys were restored", keys)
	}
}

// TestTwoBackupsOfOneName: one of two that end at once is the backup, and the other one leaves nothing.
func TestTwoBackupsOfOneName(t *testing.T) {
	t.Parallel()
	m, c := startMinIO(t), startCluster(t, engines(t)[0], 1, 1, 0)
	store := m.store(m.root(), archive.Keys{})
	var both, done sync.WaitGroup
	both.Add(2)
	attempts, errs := make([]*archive.Manifest, 2), make([]error, 2)
	for i := range attempts {
		taking := c.taking("backup", store)
		onReport(&taking, "reading back", func() { both.Done(); both.Wait() })
		done.Go(func() { attempts[i], errs[i] = taking.Take(t.Context()) })
	}
	done.Wait()
	winner := 0
	if errs[0] != nil {
		winner = 1
	}
	must(t, errs[winner])
	wantError(t, errs[1-winner], "backup backup exists")
	manifest, err := store.Manifest(t.Context(), "backup")
	must(t, err)
	must(t, store.Verify(t.Context(), manifest))
	if objects := m.objects(); manifest.Attempt != attempts[winner].Attempt || len(objects) != 3 {
		t.Errorf("the manifest is of attempt %s, and not of %s; there are %q", manifest.Attempt, attempts[winner].Attempt, objects)
	}
}

// TestStoreThatFails: whatever becomes of a store during a backup, there is a whole one or none, and what is left of it is deleted by its
// name.
func TestStoreThatFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		during string
		fail   func(m *minio, c *cluster)
		says   string // empty: nothing fails
	}{
		"the credentials are revoked": {basesAreThere, func(m *minio, _ *cluster) {
			m.kill()
			m.secret = "another-secret"
			m.run()
		}, "SignatureDoesNotMatch"},
		"it stops while a stream is uploaded": {basesAreThere, func(m *minio, c *cluster) {
			fillLarge(c, "stream", severalParts)
			m.streamBegun()
			m.kill()
		}, "connection refused"},
		"it stops before all is read back": {"reading back", func(m *minio, _ *cluster) { m.kill() }, "connection refused"},
		"it restarts":                      {"reading back", func(m *minio, _ *cluster) { m.kill(); m.run() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, c := startMinIO(t), startCluster(t, engines(t)[0], 1, 1, 0)
			store := m.store(m.root(), archive.Keys{})
			taking := c.taking("backup", store)
			taking.Request = "asked"
			onReport(&taking, tt.during, func() { tt.fail(m, c) })
			manifest, err := taking.Take(t.Context())
			if tt.says == "" {
				must(t, err)
				must(t, store.Verify(t.Context(), manifest))
				return
			}
			wantError(t, err, tt.says, m.secret)
			wantError(t, err, "what was written is left")
			m.kill()
			m.run()
			store = m.store(m.root(), archive.Keys{})
			for found, err := range store.List(t.Context()) {
				t.Errorf("there is a backup %v, %v", found, err)
			}
			left := m.objects()
			must(t, store.DeleteRequested(t.Context(), "backup", "asked otherwise"))
			if kept := m.objects(); len(kept) != len(left) {
				t.Errorf("who asked otherwise left %q of %q", kept, left)
			}
			must(t, store.DeleteRequested(t.Context(), "backup", "asked"))
			if left := m.objects(); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
			taking = c.taking("backup", store)
			taking.Request = "asked"
			manifest, err = taking.Take(t.Context())
			must(t, err)
			if err := store.DeleteRequested(t.Context(), "backup", "asked otherwise"); !errors.Is(err, archive.ErrAnother) {
				t.Errorf("who asked otherwise deletes it: %v", err)
			}
			must(t, store.Verify(t.Context(), manifest))
			must(t, store.DeleteRequested(t.Context(), "backup", "asked"))
			if left := m.objects(); len(left) > 0 {
				t.Errorf("%q are left", left)
			}
		})
	}
}

// TestStoreThatIsFull: the backup fails, and what was written by then is deleted. The server may close the connection in the middle of a
// part, and then nobody hears why.
func TestStoreThatIsFull(t *testing.T) {
	t.Parallel()
	m := newMinIO(t)
	m.room = "32m"
	m.start()
	c := startCluster(t, engines(t)[0], 1, 1, 0)
	taking := c.taking("backup", m.store(m.root(), archive.Keys{}))
	onReport(&taking, basesAreThere, func() { fillLarge(c, "stream", severalParts) })
	_, err := taking.Take(t.Context())
	wantError(t, err, "stream.aof")
	if left := m.objects(); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}
