// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"gocloud.dev/gcerrors"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/slots"
)

// opened is a store as the program opens it.
func opened(t *testing.T, address string) *Store {
	t.Helper()
	bucket, err := Open(t.Context(), address)
	check(t, err)
	t.Cleanup(func() { check(t, bucket.Close()) })
	return NewStore(bucket, Keys{})
}

// TestStores is what each kind of store does for backups: whatever its server is, a backup is whole or none, and one's own.
func TestStores(t *testing.T) {
	for kind, start := range places {
		t.Run(kind, func(t *testing.T) {
			p := start(t)
			t.Run("a backup is read back, listed and deleted", func(t *testing.T) { contractOfBackups(t, p) })
			t.Run("one of those who end at once wins", func(t *testing.T) { contractOfManifests(t, p) })
			t.Run("what is given up leaves nothing", func(t *testing.T) { contractOfGivingUp(t, p) })
			t.Run("one's own is deleted", func(t *testing.T) { contractOfDeleting(t, p) })
			t.Run("errors say what is wrong", func(t *testing.T) { contractOfErrors(t, p) })
		})
	}
}

func contractOfBackups(t *testing.T, p place) {
	s, beside := opened(t, p.within("shop/cache/")), opened(t, p.within("shop/cache2/"))
	for found, err := range s.List(t.Context()) {
		t.Errorf("before there is a backup: %v, %v", found, err)
	}
	backup(t, s)
	read, err := s.Manifest(t.Context(), "b")
	check(t, err)
	check(t, s.Verify(t.Context(), read))
	var names []string
	for found, err := range s.List(t.Context()) {
		check(t, err)
		names = append(names, found.Name)
	}
	if len(names) != 1 || names[0] != "b" {
		t.Errorf("the list is %q", names)
	}
	for found, err := range beside.List(t.Context()) {
		t.Errorf("beside it: %v, %v", found, err)
	}
	check(t, s.Restore(t.Context(), Restoring{Manifest: read, Shard: 1, Directory: t.TempDir()}))
	check(t, s.Delete(t.Context(), "b"))
	check(t, s.Delete(t.Context(), "b")) // once more, because nobody heard that it was done
	if left := objects(t, s); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func contractOfManifests(t *testing.T, p place) {
	s := opened(t, p.within("race/"))
	const writers = 4
	var done sync.WaitGroup
	errs := make([]error, writers)
	attempts := make([]string, writers)
	for i := range writers {
		attempts[i] = fmt.Sprintf("%016x", i)
		m := &Manifest{Format: Format, Name: "b", Attempt: attempts[i], Engine: redis.EngineRedis, Version: "8.0.6",
			Compression: compressionName, Shards: make([]Shard, 1)}
		base, err := s.put(t.Context(), m.baseKey(0), text("REDIS0012"))
		check(t, err)
		m.Shards[0] = Shard{Slots: slots.All(), NodeID: strings.Repeat("a", 40), RDB: "REDIS0012", History: strings.Repeat("b", 40),
			Base: base, Stream: base}
		done.Go(func() { errs[i] = s.complete(t.Context(), m) })
	}
	done.Wait()
	is, err := s.Manifest(t.Context(), "b")
	check(t, err)
	for i, err := range errs {
		if won := is.Attempt == attempts[i]; won != (err == nil) || !won && !strings.Contains(fmt.Sprint(err), "backup b exists") {
			t.Errorf("attempt %d, and %s won: %v", i, is.Attempt, err)
		}
	}
}

func contractOfGivingUp(t *testing.T, p place) {
	s := opened(t, p.within("given-up/"))
	noise := make([]byte, 1<<20) // which nothing makes smaller
	for name, mebibytes := range map[string]int{"within the first part": 1, "after two parts": 40} {
		ctx, giveUp := context.WithCancel(t.Context())
		_, err := s.put(ctx, "b/"+attempt+"/shard-0/base.rdb", func(to io.Writer) error {
			for range mebibytes {
				rand.Read(noise)
				if _, err := to.Write(noise); err != nil {
					return err
				}
			}
			giveUp()
			return ctx.Err()
		})
		if left := objects(t, s); !errors.Is(err, context.Canceled) || len(left) > 0 {
			t.Errorf("%s: %v, and %q are left", name, err, left)
		}
		giveUp()
	}
	large, err := s.put(t.Context(), "b/"+attempt+"/shard-0/base.rdb", func(to io.Writer) error {
		for range 40 {
			rand.Read(noise)
			if _, err := to.Write(noise); err != nil {
				return err
			}
		}
		return nil
	})
	check(t, err)
	check(t, s.readBack(t.Context(), "b/"+attempt+"/shard-0/base.rdb", large, io.Discard))
	check(t, s.Delete(t.Context(), "b"))
}

func contractOfDeleting(t *testing.T, p place) {
	s := opened(t, p.within("own/"))
	m := backup(t, s) // which nobody asked for by a request
	if err := s.DeleteRequested(t.Context(), "b", "another"); !errors.Is(err, ErrAnother) {
		t.Errorf("another's is deleted: %v", err)
	}
	check(t, s.Verify(t.Context(), m))
	check(t, s.Delete(t.Context(), "b"))
	if left := objects(t, s); len(left) > 0 {
		t.Errorf("%q are left", left)
	}
}

func contractOfErrors(t *testing.T, p place) {
	s := opened(t, p.within("errors/"))
	if _, err := s.Manifest(t.Context(), "none"); !errors.Is(err, ErrNotFound) {
		t.Errorf("a backup that is not there: %v", err)
	}
	backup(t, s)
	if p.denied != nil {
		p.denied(t)
		s := opened(t, p.within("errors/"))
		for name, try := range map[string]func() error{
			"show":   func() error { _, err := s.Manifest(t.Context(), "b"); return err },
			"delete": func() error { return s.Delete(t.Context(), "b") },
			"write":  func() error { _, err := s.put(t.Context(), "key", text("x")); return err },
		} {
			if err := try(); err == nil || errors.Is(err, ErrNotFound) || gcerrors.Code(err) == gcerrors.NotFound {
				t.Errorf("%s by somebody whom the store does not know: %v", name, err)
			}
		}
	}
	if strings.HasPrefix(p.address, "file:") {
		return // a directory that is not there is not opened
	}
	none := opened(t, strings.Replace(p.within("errors/"), bucketName, "none-of-these", 1))
	if _, err := none.Manifest(t.Context(), "b"); err == nil || errors.Is(err, ErrNotFound) {
		t.Errorf("in a bucket that is not there: %v", err)
	}
}
