// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"runtime"
	"sync"
	"time"
)

const (
	nap = 2 * time.Millisecond
	// lateAfter is what a sleeper may wake up late on a processor that has something else to do first.
	lateAfter = 20 * time.Millisecond
)

// stalls knows when processors of this machine did not run a program that was due: a virtual machine whose host is busy
// stalls for seconds at times, and all the programs that a cluster consists of with it. A sleeper on each processor wakes
// up every 2 ms and takes down when it woke up late. Safe for concurrent use; nil knows of none.
type stalls struct {
	mu         sync.Mutex
	processors []processor
}

type processor struct {
	due  time.Time // when its sleeper is to wake up
	late []span    // in order
}

type span struct{ from, to time.Time }

// watchStalls watches until ctx ends; during tells nothing afterwards.
func watchStalls(ctx context.Context) *stalls {
	numbers := processorNumbers()
	s := &stalls{processors: make([]processor, len(numbers))}
	for i, number := range numbers {
		s.processors[i].due = time.Now().Add(lateAfter)
		go func() {
			runtime.LockOSThread() // it ends with this goroutine, so nothing else runs on one processor only
			stayOn(number)
			for ctx.Err() == nil {
				time.Sleep(nap)
				s.awake(i, time.Now())
			}
		}()
	}
	return s
}

// awake takes down that the sleeper of a processor has woken up.
func (s *stalls) awake(i int, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.processors[i]
	if at.Sub(p.due) > lateAfter {
		p.late = append(p.late, span{p.due, at})
	}
	p.due = at.Add(nap)
}

// during is how long that processor stalled, in the time from one moment to another, which did so the longest. It may still
// stall.
func (s *stalls) during(from, to time.Time) time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var most time.Duration
	for _, p := range s.processors {
		var sum time.Duration
		if to.Sub(p.due) > lateAfter {
			sum = overlap(span{p.due, to}, from, to)
		}
		for i := len(p.late) - 1; i >= 0 && p.late[i].to.After(from); i-- {
			sum += overlap(p.late[i], from, to)
		}
		most = max(most, sum)
	}
	return most
}

func overlap(s span, from, to time.Time) time.Duration {
	if s.from.Before(from) {
		s.from = from
	}
	if s.to.After(to) {
		s.to = to
	}
	return max(0, s.to.Sub(s.from))
}

// longest is the longest time that a processor stalled.
func (s *stalls) longest() (longest time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.processors {
		for _, late := range p.late {
			longest = max(longest, late.to.Sub(late.from))
		}
	}
	return longest
}
