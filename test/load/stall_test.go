// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// second is a moment of a run.
func second(s float64) time.Time { return time.Unix(0, 0).Add(time.Duration(s * float64(time.Second))) }

// stalledMachine knows a machine of two processors, one of which stalled in the seconds 10 to 12 and 13 to 14, and since second
// 20. The other one did in seconds 13 to 13.5.
func stalledMachine() *stalls {
	return &stalls{processors: []processor{
		{due: second(20), late: []span{{second(10), second(12)}, {second(13), second(14)}}},
		{due: second(100), late: []span{{second(13), second(13.5)}}},
	}}
}

// A sleeper takes down that it woke up late, and when it is to wake up next.
func TestAwake(t *testing.T) {
	s := &stalls{processors: []processor{{due: second(1)}}}
	for _, at := range []float64{1, 1.01, 3} { // in time, a little late, late
		s.awake(0, second(at))
	}
	want := processor{due: second(3).Add(nap), late: []span{{second(1.01).Add(nap), second(3)}}}
	if diff := cmp.Diff(want, s.processors[0], cmp.AllowUnexported(processor{}, span{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestStandstills(t *testing.T) {
	s := stalledMachine()
	for _, tt := range []struct{ from, to, want float64 }{
		{1, 9, 0}, {9, 11, 1}, {10.5, 11, 0.5}, {9, 15, 3}, {12, 15, 1}, {14, 20, 0}, {13, 13.25, 0.25}, {19, 20.01, 0}, {19, 23, 3},
	} {
		want := time.Duration(tt.want * float64(time.Second))
		if got := s.during(second(tt.from), second(tt.to)); got != want {
			t.Errorf("during(%v, %v) = %v, want %v", tt.from, tt.to, got, want)
		}
	}
	if got := s.longest(); got != 2*time.Second {
		t.Errorf("longest() = %v, want 2s", got)
	}
	var none *stalls
	if got := none.during(second(0), second(1)); got != 0 {
		t.Errorf("nobody watched, and still %v", got)
	}
}

// There is a sleeper on every processor, and each goes on waking up.
func TestSleepersWakeUp(t *testing.T) {
	begun := time.Now()
	s := watchStalls(t.Context())
	if len(s.processors) == 0 {
		t.Fatal("no processor is watched")
	}
	for i := range s.processors {
		for awake := false; !awake; time.Sleep(nap) {
			s.mu.Lock()
			awake = s.processors[i].due.Sub(begun) > 2*lateAfter
			s.mu.Unlock()
			if !awake && time.Since(begun) > time.Minute {
				t.Fatalf("the sleeper on processor %d of %d does not wake up", i, len(s.processors))
			}
		}
	}
}

// Timeouts are not counted as failures while the machine stalled; other errors are.
func TestWhatCountsAsStarved(t *testing.T) {
	timedOut := &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}
	for _, tt := range []struct {
		begun, ended float64
		err          error
		want         kind
	}{
		{9, 12, timedOut, stalled},
		{10.5, 13.5, timedOut, stalled},
		{11, 14, fmt.Errorf("reach the cluster: %w", timedOut), stalled},
		{7.9, 10.9, timedOut, failed}, // most of its time the machine ran
		{1, 4, timedOut, failed},
		{19, 22, timedOut, stalled}, // the machine stalls
		{10, 12, io.EOF, failed},
		{10, 12, errors.New("CLUSTERDOWN The cluster is down"), failed},
		{10, 12, nil, fine},
	} {
		a := &attempts{still: stalledMachine(), now: func() time.Time { return second(tt.ended) }}
		ctx, tried := mark(t.Context())
		a.note(ctx, second(tt.begun), "10.0.0.1:6379", "set", []any{"set", "k"}, tt.err)
		if got := a.judge("set", second(tt.begun), tt.err); got != tt.want {
			t.Errorf("from %v to %v: %v is %v, want %v", tt.begun, tt.ended, tt.err, got, tt.want)
		}
		if a.failed != count(tt.want == failed) || a.stalled != count(tt.want == stalled) || tried.perhapsTwice() != (tt.want != fine) {
			t.Errorf("from %v to %v: %v: %d failed, %d stalled, perhaps twice %t", tt.begun, tt.ended, tt.err, a.failed, a.stalled,
				tried.perhapsTwice())
		}
	}
}

// A new client that cannot connect has failed, unless it stalled.
func TestNewClientsTurnedAway(t *testing.T) {
	for _, tt := range []struct {
		begun float64
		err   error
		want  kind
	}{
		{10, os.ErrDeadlineExceeded, stalled},
		{1, os.ErrDeadlineExceeded, failed},
		{10, net.ErrClosed, failed},
		{10, errors.New("MOVED 1 10.0.0.1:6379"), failed},
	} {
		s := &session{attempts: &attempts{still: stalledMachine(), now: func() time.Time { return second(tt.begun + 2) }}}
		s.turnedAway(second(tt.begun), tt.err)
		if s.failed.Load() != count(tt.want == failed) || s.attempts.stalled != count(tt.want == stalled) {
			t.Errorf("from second %v on, %v: %d failed, %d stalled", tt.begun, tt.err, s.failed.Load(), s.attempts.stalled)
		}
	}
}

func count(is bool) int64 {
	if is {
		return 1
	}
	return 0
}
