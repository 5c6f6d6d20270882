// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name                            string
		answer, acknowledged, attempted uint64
		want                            verdict
	}{
		{"nothing was ever written", 0, 0, 0, right},
		{"the acknowledged value", 5, 5, 5, right},
		{"a write whose answer was lost may have happened", 6, 5, 6, right},
		{"and may not have happened", 5, 5, 6, right},
		{"an older value", 4, 5, 5, old},
		{"no value after an acknowledged write", 0, 5, 5, old},
		{"a value that was never sent", 7, 5, 6, foreign},
	} {
		if got := judge(tt.answer, tt.acknowledged, tt.attempted); got != tt.want {
			t.Errorf("%s: judge(%d, %d, %d) = %v, want %v", tt.name, tt.answer, tt.acknowledged, tt.attempted, got, tt.want)
		}
	}
}

func TestLedgerKeepsAFailedWriteApart(t *testing.T) {
	l := newLedger(1)
	l.acknowledge(0, l.attempt(0))
	l.attempt(0) // its answer never came
	if l.acknowledged(0) != 1 || l.attempted(0) != 2 {
		t.Errorf("acknowledged %d, attempted %d; want 1 and 2", l.acknowledged(0), l.attempted(0))
	}
	if n := l.attempt(0); n != 3 {
		t.Errorf("the next number is %d, want 3: numbers are never used twice", n)
	}
}

func TestJudgeAttempt(t *testing.T) {
	for _, tt := range []struct {
		command string
		err     error
		want    kind
	}{
		{"get", nil, fine},
		{"get", redis.Nil, fine},
		{"get", errors.New("MOVED 1 10.0.0.1:6379"), redirected},
		{"get", errors.New("ASK 1 10.0.0.1:6379"), redirected},
		{"mset", errors.New("TRYAGAIN Multiple keys request during rehashing of slot"), tryAgain},
		{"get", errors.New("TRYAGAIN Multiple keys request during rehashing of slot"), failed},
		{"get", errors.New("CLUSTERDOWN The cluster is down"), failed},
		{"set", errors.New("READONLY You can't write against a read only replica."), failed},
		{"set", errors.New("LOADING Redis is loading the dataset in memory"), failed},
		{"mset", errors.New("CLUSTERDOWN Hash slot not served"), failed},
		{"set", io.EOF, failed},
		{"set", &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}, failed},
		{"set", &net.OpError{Op: "read", Net: "tcp", Err: net.ErrClosed}, closedByClient},
		{"get", redis.ErrClosed, closedByClient},
	} {
		if got := judgeAttempt(tt.command, tt.err); got != tt.want {
			t.Errorf("judgeAttempt(%s, %v) = %v, want %v", tt.command, tt.err, got, tt.want)
		}
	}
}

func TestAttempts(t *testing.T) {
	a := &attempts{now: func() time.Time { return time.Unix(0, 0) }}
	ctx, tried := mark(t.Context())
	a.note(ctx, a.now(), "10.0.0.1:6379", "set", []any{"set", "k"}, io.EOF)
	a.note(ctx, a.now(), "10.0.0.1:6379", "set", []any{"set", "k"}, nil) // the library tried again, and succeeded
	a.note(ctx, a.now(), "10.0.0.1:6379", "cluster", nil, io.EOF)        // its own look at the topology
	a.note(context.Background(), a.now(), "10.0.0.1:6379", "get", []any{"get", "k"}, errors.New("MOVED 1 10.0.0.1:6379"))
	if tried.failed.Load() != 1 || a.failed != 1 || a.administrative != 1 || a.redirected != 1 || len(a.samples) != 1 {
		t.Errorf("failures of the command %d, in all %d, administrative %d, redirected %d, samples %v; want 1 of each",
			tried.failed.Load(), a.failed, a.administrative, a.redirected, a.samples)
	}
	for range 10 {
		a.note(ctx, a.now(), "10.0.0.1:6379", "get", []any{"get", "k"},
			errors.New("read tcp 10.0.0.9:40000->10.0.0.1:6379: connection reset by peer"))
	}
	if got := a.errors(); len(got) != 2 || got[0] != (errorCount{"read tcp 10.0.0.1:6379: connection reset by peer", 10}) {
		t.Errorf("errors by text: %v", got)
	}
	if len(a.samples) != samplesKept {
		t.Errorf("%d samples, want %d", len(a.samples), samplesKept)
	}
}

func TestSessionJudges(t *testing.T) {
	s := &session{values: values{prefix: "run:", sizes: "64"}}
	value := s.values.value(3, 7)
	s.judge("run:3", 3, value, true, 7, 7, &s.lost, "a write finds")
	if s.lost.Load()+s.corrupt.Load() != 0 {
		t.Errorf("the last value counts as lost or corrupt: %v", s.wrongs)
	}
	s.judge("run:3", 3, value, true, 8, 8, &s.lost, "a write finds")
	s.judge("run:3", 3, "", false, 8, 8, &s.stale, "a read finds")
	s.judge("run:3", 3, value+"x", true, 7, 7, &s.lost, "a write finds")
	s.judge("run:3", 3, s.values.value(4, 7), true, 7, 7, &s.lost, "a write finds")
	if s.lost.Load() != 1 || s.stale.Load() != 1 || s.corrupt.Load() != 2 {
		t.Errorf("lost %d, stale %d, corrupt %d; want 1, 1, 2: %v", s.lost.Load(), s.stale.Load(), s.corrupt.Load(), s.wrongs)
	}
}

func TestWritersShareNoKey(t *testing.T) {
	s := &session{runOptions: runOptions{keys: 23, workers: 5}}
	owner := map[int]int{}
	for w := range s.workers {
		for range 1000 {
			key := s.keyOf(w)
			if before, taken := owner[key]; key < 0 || key >= s.keys || taken && before != w {
				t.Fatalf("writer %d writes key %d, of %d keys; its owner is %d", w, key, s.keys, before)
			}
			owner[key] = w
		}
	}
	if len(owner) != s.keys {
		t.Errorf("%d of %d keys are written", len(owner), s.keys)
	}
}

func TestLatencies(t *testing.T) {
	a, b := &latencies{}, &latencies{}
	at := time.Unix(0, 0)
	for i := 1; i <= 999; i++ {
		a.add(at, time.Duration(i)*time.Microsecond, 1, func() string { return "get" })
	}
	b.add(at, 150*time.Millisecond, 2, func() string { return "set k" })
	whole := merge([]*latencies{a, b})
	if whole.quantile(0.5) != 0.501 || whole.quantile(1) != 150 {
		t.Errorf("median %v, longest %v; want 0.501 and 150", whole.quantile(0.5), whole.quantile(1))
	}
	if len(whole.slowest) != slowKept || whole.slowest[0].Command != "set k" || whole.slowest[1].MS != 0.999 {
		t.Errorf("slowest: %+v", whole.slowest)
	}
	if (&latencies{}).quantile(0.5) != 0 {
		t.Error("without commands every quantile is 0")
	}
}

func TestGaps(t *testing.T) {
	var g gaps
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	g.acknowledged(0, at(100))
	g.acknowledged(1023, at(350)) // the same range
	g.acknowledged(5, at(300))    // taken down late
	g.acknowledged(1024, at(900)) // the next range, for the first time
	if got := g.milliseconds(); got[0] != 250 || got[1] != 0 || len(got) != slotRanges {
		t.Errorf("gaps are %v, want 250 in the first range only", got)
	}
	g.acknowledged(16383, at(1)) // the last slot has a range
}

func TestDatasetIsTheSameEachTime(t *testing.T) {
	d := dataset{keys: 5000, types: "all", sizes: "mixed", big: 6, bigBytes: 1 << 20}
	if err := d.check(); err != nil {
		t.Fatal(err)
	}
	seen, bytes, expiring := map[valueKind]int{}, 0, 0
	for i := range d.total() {
		it := d.item(i)
		if !slices.Equal(it.all(), d.item(i).all()) {
			t.Fatalf("item %d differs from itself", i)
		}
		seen[it.kind]++
		bytes += it.size()
		if it.expires > 0 {
			expiring++
		}
	}
	if len(seen) != int(kinds) || expiring != 1002 {
		t.Errorf("kinds %v, %d expire; want all kinds, and 1002", seen, expiring)
	}
	if text(1, 64) == text(2, 64) || len(text(1, 3<<20)) != 3<<20 {
		t.Error("texts of different numbers are equal, or not as long as asked for")
	}
	for _, bad := range []dataset{{types: "hash", sizes: "mixed", bigBytes: 64}, {types: "all", sizes: "0", bigBytes: 64},
		{keys: -1, types: "all", sizes: "mixed", bigBytes: 64}} {
		if bad.check() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

func TestJudgeExpiry(t *testing.T) {
	for _, tt := range []struct {
		name      string
		got, want int64
		fine      bool
	}{
		{"never", -1, 0, true},
		{"it would expire, but never should", 1, 0, false},
		{"MIGRATE shifted it a little", expiryBase + 40, expiryBase, true},
		{"lost its expiry", -1, expiryBase, false},
		{"lives much longer", expiryBase + 60_000, expiryBase, false},
	} {
		if err := judgeExpiry(tt.got, tt.want, 1000); (err == nil) != tt.fine {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}

func TestWatchTellsBeginAndEnd(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(int64(ms)) }
	var w watchResult
	w.saw(0, false, true, at(0))
	w.saw(0, true, false, at(100)) // importing
	w.saw(1, true, false, at(200))
	w.saw(4096, false, false, at(1100))
	w.saw(4096, false, false, at(2000))
	if w.From != 0 || w.To != 4096 || !w.Begin.Equal(at(100)) || w.Seconds != 1 {
		t.Errorf("%+v, want from 0 to 4096 in 1 s since 100 ms", w)
	}
}

func TestOwnSlots(t *testing.T) {
	const nodes = `07c37dfeb235213a872192d90877d0cd55635b91 127.0.0.1:30004@31004 slave e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 0 1426238317239 4 connected
67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1 127.0.0.1:30002@31002 master - 0 1426238316232 2 connected 5461-10922
e7d1eecce10fd6bb5eb35b9f99a514335d9ba9ca 127.0.0.1:30001@31001 myself,master - 0 0 1 connected 0-5460 16000 [93-<-67ed2db8d677e59ec4a4cefb06858cf2a1a89fa1]
`
	if owned, moving := ownSlots(nodes); owned != 5462 || !moving {
		t.Errorf("%d slots, moving %t; want 5462 and one on its way", owned, moving)
	}
}
