// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"middleware.hc.cn/operator/internal/redis/redistest"
)

// eachSeed runs a test for every seed, a few or SIMULATION_SEEDS of them (SIMULATION_FIRST is the first one), each in a bubble
// of its own: its clock stops while anybody does anything. Commands of the operator take effect one at a time, in an
// order that the seed and what they say decide (see schedule), so that one seed tells one story.
func eachSeed(t *testing.T, few uint64, test func(t *testing.T, seed uint64)) {
	t.Helper()
	first := environment(t, "SIMULATION_FIRST", 0)
	for seed := range environment(t, "SIMULATION_SEEDS", few) {
		t.Run(fmt.Sprint(first+seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { test(t, first+seed) })
		})
	}
}

func environment(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text, set := os.LookupEnv(name)
	if !set {
		return otherwise
	}
	number, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return number
}

// schedule lets what is sent to nodes arrive, each after a latency of its own. Only when all goroutines wait for something
// does the next one arrive.
type schedule struct {
	seed uint64
	// latency is that of a round trip on average.
	latency time.Duration
	sent    chan struct{} // of one place: something new is on its way
	ended   chan struct{}
	// told is called with everything that arrives.
	told func(addr string, sent []byte)

	mu    sync.Mutex
	onWay []*parcel
}

// parcel is what one call of Write sends to a node.
type parcel struct {
	addr string
	sent []byte
	more bool // a part of a pipeline whose first part has arrived
	due  time.Time
	done chan struct{}
}

// newSchedule makes one that ends with the test.
func newSchedule(t *testing.T, seed uint64) *schedule {
	s := &schedule{seed: seed, sent: make(chan struct{}, 1), ended: make(chan struct{})}
	s.latency = []time.Duration{300 * time.Microsecond, 2 * time.Millisecond, 8 * time.Millisecond}[s.hash("latency", nil, 0)%3]
	go s.run()
	t.Cleanup(func() { close(s.ended) })
	return s
}

// hash is a number that looks random, the same one for the same seed.
func (s *schedule) hash(addr string, sent []byte, at int64) uint64 {
	h := fnv.New64a()
	for _, number := range []uint64{s.seed, uint64(at)} {
		for i := range 8 {
			_, _ = h.Write([]byte{byte(number >> (8 * i))}) // it does not fail
		}
	}
	_, _ = h.Write([]byte(addr)) // it does not fail
	_, _ = h.Write(sent)         // it does not fail
	sum := h.Sum64()
	sum ^= sum >> 33 // the last bytes reach the low bits
	sum *= 0xff51afd7ed558ccd
	return sum ^ sum>>33
}

func (s *schedule) run() {
	for {
		synctest.Wait()
		next := s.next()
		var due <-chan time.Time
		if next != nil {
			wait := time.Until(next.due)
			if wait <= 0 {
				s.deliver(next)
				continue
			}
			timer := time.NewTimer(wait)
			due = timer.C
		}
		select {
		case <-s.sent:
		case <-due:
		case <-s.ended:
			return
		}
	}
}

// next is what arrives first. Of parcels that are the same in everything it is any: they have the same effect, and arrive one
// after the other at the same instant.
func (s *schedule) next() *parcel {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	for _, p := range s.onWay {
		if !p.due.IsZero() {
			continue
		}
		// What is the same, and sent at the same time, arrives at the same time: it cannot be told apart.
		latency := s.hash(p.addr, p.sent, now.UnixNano()) % uint64(2*s.latency)
		if p.more {
			latency /= 1000
		}
		p.due = now.Add(time.Duration(latency))
	}
	if len(s.onWay) == 0 {
		return nil
	}
	return slices.MinFunc(s.onWay, func(a, b *parcel) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.addr, b.addr), slices.Compare(a.sent, b.sent))
	})
}

func (s *schedule) deliver(p *parcel) {
	s.mu.Lock()
	s.onWay = slices.DeleteFunc(s.onWay, func(other *parcel) bool { return other == p })
	s.mu.Unlock()
	if s.told != nil {
		s.told(p.addr, p.sent)
	}
	close(p.done)
}

// dialer connects to nodes of the world by way of the schedule.
func (s *schedule) dialer(world *redistest.World) func(context.Context, string) (net.Conn, error) {
	return func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := world.Connect(ctx, addr)
		if err != nil {
			return nil, err
		}
		return &slow{Conn: conn, schedule: s, addr: addr}, nil
	}
}

// slow is a connection on which what is written arrives when its time has come.
type slow struct {
	net.Conn
	schedule *schedule
	addr     string
	more     bool
}

func (c *slow) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("*")) && bytes.Contains(p[:min(len(p), 20)], []byte("hello")) {
		return c.Conn.Write(p) // takes no time, so that it does not matter who gets an old connection and who a new one
	}
	arrives := &parcel{addr: c.addr, sent: slices.Clone(p), more: c.more, done: make(chan struct{})}
	c.more = true
	c.schedule.mu.Lock()
	c.schedule.onWay = append(c.schedule.onWay, arrives)
	c.schedule.mu.Unlock()
	select {
	case c.schedule.sent <- struct{}{}:
	default: // the schedule looks anyway
	}
	select {
	case <-arrives.done:
	case <-c.schedule.ended:
	}
	return c.Conn.Write(p)
}

func (c *slow) Read(p []byte) (int, error) {
	c.more = false
	return c.Conn.Read(p)
}
