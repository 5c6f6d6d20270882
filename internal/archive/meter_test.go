// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"fmt"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/redis"
)

// A meter says of each shard how much is done; how much there is in all is known once it is known of every shard.
func TestMeter(t *testing.T) {
	var nobody *Meter
	nobody.begin(report.StageReading, 0, 0)
	nobody.mark()
	if _, err := nobody.of(7).Write([]byte("x")); err != nil {
		t.Error(err)
	}
	m := &Meter{}
	is := func(want report.Progress) {
		t.Helper()
		if diff := cmp.Diff(want, m.Report(), cmpopts.IgnoreFields(report.Progress{}, "Elapsed")); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	is(report.Progress{})
	m.begin(report.StageReading, 0, 0, 0)
	_, err := io.WriteString(m.of(1), "12345")
	check(t, err)
	m.shard(1, func(s *report.ShardProgress) { s.Of = 10 })
	is(report.Progress{Stage: report.StageReading, Bytes: 5, Shards: []report.ShardProgress{{}, {Shard: 1, Bytes: 5, Of: 10}}})
	m.shard(0, func(s *report.ShardProgress) { s.Of = 7 })
	m.mark()
	is(report.Progress{Stage: report.StageMarking, Bytes: 5, Of: 17, Shards: []report.ShardProgress{{Of: 7}, {Shard: 1, Bytes: 5, Of: 10}}})
	m.begin(report.StageReadingBack, 0, 3, 4)
	is(report.Progress{Stage: report.StageReadingBack, Of: 7, Shards: []report.ShardProgress{{Of: 3}, {Shard: 1, Of: 4}}})
	m.begin(report.StageRestoring, 2, 9)
	_, err = io.WriteString(m.of(2), "1")
	check(t, err)
	is(report.Progress{Stage: report.StageRestoring, Bytes: 1, Of: 9, Shards: []report.ShardProgress{{Shard: 2, Bytes: 1, Of: 9}}})
	if m.Report().Elapsed < 0 {
		t.Error("it has not begun yet")
	}
}

// A restore and the reading back of a backup are counted to their last byte.
func TestMeterOfARestore(t *testing.T) {
	s := NewStore(newBucket(t), Keys{})
	m := backup(t, s)
	meter := &Meter{}
	check(t, s.Restore(t.Context(), Restoring{Manifest: m, Shard: 1, Directory: t.TempDir(), Meter: meter}))
	want := []report.ShardProgress{{Shard: 1, Bytes: 140006, Of: 140006}}
	if got := meter.Report(); got.Stage != report.StageRestoring || !cmp.Equal(want, got.Shards) {
		t.Errorf("%+v", got)
	}
	check(t, Taking{Name: "b", Store: s, Meter: meter}.readBack(t.Context(), m))
	stored, _ := m.Bytes()
	if got := meter.Report(); got.Stage != report.StageReadingBack || got.Bytes != stored || got.Of != stored || len(got.Shards) != 2 {
		t.Errorf("%+v, and %d bytes are stored", got, stored)
	}
}

// How large a base is going to be is told by keys once enough of them have been sent, and never less than what has come.
func TestExpected(t *testing.T) {
	for _, tt := range []struct {
		sending redis.Sending
		read    int64
		want    int64
	}{
		{redis.Sending{UsedMemory: 1000}, 0, 1000},
		{redis.Sending{UsedMemory: 1000}, 2000, 2000},
		{redis.Sending{UsedMemory: 1000, Keys: 50, Total: 100}, 300, 600},
		{redis.Sending{UsedMemory: 1000, Keys: 100, Total: 100}, 300, 300},
		{redis.Sending{UsedMemory: 1000, Keys: 1, Total: 1000}, 300, 1000},
		{redis.Sending{UsedMemory: 1000, Keys: 50, Total: 100}, 0, 1000},
		{redis.Sending{UsedMemory: 1000, Keys: 200, Total: 100}, 300, 1000},
		{redis.Sending{}, 0, 0},
	} {
		if got := expected(tt.sending, tt.read); got != tt.want {
			t.Errorf("%s: %d, want %d", fmt.Sprintf("%+v of which %d came", tt.sending, tt.read), got, tt.want)
		}
	}
}
