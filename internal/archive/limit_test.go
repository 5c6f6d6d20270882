// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"io"
	"math/rand"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/blob/memblob"
)

// What all shards write and read together keeps to the limit, by a clock that passes only while all wait; and a wait ends with its context.
func TestLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const perSecond, shards, each = 100_000, 4, 300_000
		bucket := memblob.OpenBucket(nil)
		defer func() { check(t, bucket.Close()) }()
		s := NewStore(bucket, Keys{})
		s.Limit(perSecond)
		noise := rand.New(rand.NewSource(1))
		data := make([]byte, each)
		noise.Read(data) // which nothing makes smaller
		var done sync.WaitGroup
		objects := make([]Object, shards)
		began := time.Now()
		for i := range shards {
			key := "object" + string(rune('0'+i))
			done.Go(func() {
				var err error
				objects[i], err = s.put(t.Context(), key, text(string(data)))
				if err == nil {
					err = s.readBack(t.Context(), key, objects[i], io.Discard)
				}
				if err == nil {
					err = s.get(t.Context(), key, objects[i], false, io.Discard)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
		took := time.Since(began)
		var bytes int64
		for _, o := range objects {
			bytes += 3 * o.Size
		}
		least := time.Duration(float64(bytes-perSecond) / perSecond * float64(time.Second))
		if most := least + 2*time.Second; took < least || took > most {
			t.Errorf("%d bytes took %s, want %s to %s", bytes, took, least, most)
		}
		sum := newMeasured(io.Discard)
		_, err := sum.Write(data)
		check(t, err)
		began = time.Now()
		check(t, s.putSegment(t.Context(), "segment", data, Object{Size: each, SHA256: sum.hex()}))
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("a segment took %s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.get(ctx, "object0", objects[0], false, io.Discard); err == nil || errors.Is(err, ErrDamaged) {
			t.Errorf("a read that is given up: %v", err)
		}
	})
}
