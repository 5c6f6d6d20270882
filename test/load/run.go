// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
)

// runOptions say how to run.
type runOptions struct {
	keys, workers         int
	writes, reads         int // a second; 0: as fast as it goes
	pairs, arrivals       int // a second; 0: none
	replicated            int // replicas that must have a write before it counts as acknowledged
	sizes                 string
	duration, readBackFor time.Duration
	dialTimeout, refresh  time.Duration
	verbose               bool
	progress              *json.Encoder
}

func (o *runOptions) flags(cmd *cobra.Command) {
	cmd.Flags().IntVar(&o.keys, "keys", 20000, "number of keys that are written over and over")
	cmd.Flags().IntVar(&o.workers, "workers", 16, "number of writers, and of readers; each has one command under way")
	cmd.Flags().IntVar(&o.writes, "writes", 2500, "writes a second; 0 is as many as possible, -1 none")
	cmd.Flags().IntVar(&o.reads, "reads", 2500, "reads a second; 0 is as many as possible, -1 none")
	cmd.Flags().IntVar(&o.pairs, "pairs", 0, "MSET and MGET of two keys in one slot a second, each")
	cmd.Flags().IntVar(&o.arrivals, "arrivals", 0, "new clients a second: each connects by --addr, reads a few keys and leaves")
	cmd.Flags().IntVar(&o.replicated, "replicated", 0, "number of replicas that must have a write before it counts as acknowledged (WAIT)")
	cmd.Flags().StringVar(&o.sizes, "sizes", "mixed", "size of values, as for fill")
	cmd.Flags().DurationVar(&o.duration, "duration", 0, "how long; 0 is until SIGTERM or SIGINT")
	cmd.Flags().DurationVar(&o.dialTimeout, "dial-timeout", 0,
		"how long to try to connect to an instance, new clients (--arrivals) apart; 0 is the client library's own, 5s")
	cmd.Flags().DurationVar(&o.refresh, "refresh", 0, "how often to ask who owns which slots; 0 is the client library's own, 60s")
	cmd.Flags().DurationVar(&o.readBackFor, "read-back-timeout", time.Minute, "how long to try to read everything back")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "print a line a second to standard error")
}

func (o *runOptions) check() error {
	if o.keys < o.workers || o.workers < 1 {
		return fmt.Errorf("--workers must be at least 1, and --keys at least as many")
	}
	return (&dataset{sizes: o.sizes, types: "string", bigBytes: elementBytes}).check()
}

// session is one run.
type session struct {
	runOptions
	server   server
	client   *redis.ClusterClient
	attempts *attempts
	values   values
	single   *ledger
	paired   *ledger
	gaps     gaps

	counts
	mu     sync.Mutex
	wrongs []string
}

// counts are what the workers count.
type counts struct {
	written, read, pairsDone, arrived  atomic.Int64
	failed, lost, stale, corrupt, torn atomic.Int64
	otherwise                          atomic.Int64 // commands and new clients that failed, and did not time out
	pairsTriedAgain                    atomic.Int64
}

// run runs a load until ctx ends or the duration is over.
func run(ctx context.Context, at server, o runOptions) (result, error) {
	if err := o.check(); err != nil {
		return result{}, err
	}
	watching, watched := context.WithCancel(context.WithoutCancel(ctx))
	defer watched()
	s := &session{runOptions: o, server: at, attempts: &attempts{now: time.Now, still: watchStalls(watching)}, single: newLedger(o.keys),
		paired: newLedger(o.workers)}
	s.values = values{prefix: "run:" + strconv.FormatInt(time.Now().UnixNano(), 36) + ":", sizes: o.sizes}
	var err error
	if s.client, err = connect(ctx, at, 3*o.workers, s.attempts); err != nil {
		return result{}, err
	}
	defer s.client.Close()

	// A command that is under way when the signal comes is finished.
	commands := context.WithoutCancel(ctx)
	if o.duration > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.duration)
		defer cancel()
	}
	started := time.Now()
	single, paired := s.work(ctx, commands)
	seconds := time.Since(started).Seconds()

	reading, cancel := context.WithTimeout(commands, o.readBackFor)
	defer cancel()
	unread := s.readBack(reading)
	return s.result(started, seconds, single, paired, unread), nil
}

// work runs all workers until ctx ends. It returns the times of commands with one key, and with two.
func (s *session) work(ctx, commands context.Context) (single, paired latencies) {
	var all sync.WaitGroup
	var ones, twos []*latencies
	start := func(perSecond, workers int, list *[]*latencies, one func(*latencies)) {
		if perSecond < 0 {
			return
		}
		times := &latencies{}
		*list = append(*list, times)
		all.Go(func() { pace(ctx, perSecond, workers, func() { one(times) }) })
	}
	for w := range s.workers {
		start(s.writes, s.workers, &ones, func(l *latencies) { s.write(commands, l, s.keyOf(w)) })
		start(s.reads, s.workers, &ones, func(l *latencies) { s.readOne(commands, s.client, l, anyOf(s.keys)) })
		if s.pairs > 0 {
			start(s.pairs, s.workers, &twos, func(l *latencies) { s.pair(commands, l, w) })
		}
	}
	if s.arrivals > 0 {
		start(s.arrivals, 1, new([]*latencies), func(l *latencies) { s.arrive(commands, l) })
	}
	if s.progress != nil {
		all.Go(func() { s.report(ctx) })
	}
	all.Wait()
	return merge(ones), merge(twos)
}

// keyOf gives any key that a writer writes: no two write the same.
func (s *session) keyOf(worker int) int {
	return worker + s.workers*anyOf((s.keys-worker-1)/s.workers+1)
}

// anyOf is a number from 0 to below n.
func anyOf(n int) int { return rand.IntN(n) } //nolint:gosec // chooses keys, keeps no secret

// pace calls do again and again, so that workers that do the same reach a rate a second
// together. 0 is without a pause. A call that came late is not made up for: there is
// never more than one under way.
func pace(ctx context.Context, perSecond, workers int, do func()) {
	if perSecond == 0 {
		for ctx.Err() == nil {
			do()
		}
		return
	}
	interval := time.Duration(float64(time.Second) * float64(workers) / float64(perSecond))
	next := time.Now().Add(time.Duration(anyOf(int(interval))))
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		do()
		if next = next.Add(interval); time.Until(next) < -interval {
			next = time.Now()
		}
		timer.Reset(time.Until(next))
	}
}

// finish takes down how a command ended: its time, and whether it or an attempt at it failed.
func (s *session) finish(sent time.Time, l *latencies, command, key string, slot int, t *tries, err error) {
	l.add(sent, time.Since(sent), slot, func() string { return command + " " + key })
	verdict := s.attempts.judge(command, sent, err)
	if verdict == redirected && t.tryAgain.Load() > 0 {
		verdict = tryAgain // the client counts those among the redirections that it follows
	}
	if verdict == tryAgain {
		s.pairsTriedAgain.Add(1)
	}
	if t.failed.Load() > 0 || verdict == failed || verdict == redirected {
		s.failed.Add(1)
	}
	if verdict == redirected || verdict == failed && !timedOut(err) {
		s.otherwise.Add(1)
	}
	if verdict == redirected {
		s.wrong("%s %s: more redirections than the client follows, the last is %v", command, key, err)
	}
}

// wrong keeps the first few sentences.
func (s *session) wrong(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.wrongs) < 2*samplesKept {
		s.wrongs = append(s.wrongs, time.Now().UTC().Format(time.RFC3339Nano)+" "+fmt.Sprintf(format, args...))
	}
}

// write writes the next value of a key and looks at the one that it replaces.
func (s *session) write(ctx context.Context, l *latencies, key int) {
	acknowledged := s.single.acknowledged(key)
	number := s.single.attempt(key)
	name, slot := s.values.key(key)
	args := []any{"set", name, s.values.value(key, number), "get"}
	if s.values.expires(key) {
		args = append(args, "px", lifetime.Milliseconds())
	}
	ctx, tried := mark(ctx)
	sent := time.Now()
	previous, err := s.set(ctx, name, args)
	s.finish(sent, l, "set", name, slot, tried, err)
	if err != nil && !errors.Is(err, redis.Nil) {
		return
	}
	s.single.acknowledge(key, number)
	s.gaps.acknowledged(slot, time.Now())
	s.written.Add(1)
	before := number - 1
	if tried.perhapsTwice() {
		before = number
	}
	s.judge(name, key, previous, err == nil, acknowledged, before, &s.lost, "a write finds")
}

// readOne reads a key and looks at its value.
func (s *session) readOne(ctx context.Context, client *redis.ClusterClient, l *latencies, key int) {
	acknowledged := s.single.acknowledged(key)
	name, slot := s.values.key(key)
	ctx, tried := mark(ctx)
	sent := time.Now()
	got, err := client.Get(ctx, name).Result()
	s.finish(sent, l, "get", name, slot, tried, err)
	if err != nil && !errors.Is(err, redis.Nil) {
		return
	}
	s.read.Add(1)
	s.judge(name, key, got, err == nil, acknowledged, s.single.attempted(key), &s.stale, "a read finds")
}

// arrive is an application that starts now: it asks whoever answers at the address for
// the topology, and reads a few keys. It has the client library's own time to look the
// address up and to connect, because it knows no other.
func (s *session) arrive(ctx context.Context, l *latencies) {
	at := s.server
	at.dialTimeout = 0
	begun := time.Now()
	client, err := connect(ctx, at, 1, s.attempts)
	if err != nil {
		s.turnedAway(begun, err)
		return
	}
	defer client.Close()
	for range 8 {
		s.readOne(ctx, client, l, anyOf(s.keys))
	}
	s.arrived.Add(1)
}

// turnedAway takes down that a new client could not connect, for whatever reason.
func (s *session) turnedAway(begun time.Time, err error) {
	if s.attempts.judge("ping", begun, err) == stalled {
		s.attempts.noteStalled()
		return
	}
	s.failed.Add(1)
	if !timedOut(err) {
		s.otherwise.Add(1)
	}
	s.wrong("a new client: %v", err)
}

// judge counts an answer that is older than it may be in tooOld, and values that nobody wrote.
func (s *session) judge(name string, key int, value string, found bool, acknowledged, attempted uint64, tooOld *atomic.Int64, what string) {
	var number uint64
	if found {
		var ok bool
		if number, ok = s.values.number(key, value); !ok {
			s.corrupt.Add(1)
			s.wrong("%s at %s a value that nobody wrote: %.40q", what, name, value)
			return
		}
	}
	switch judge(number, acknowledged, attempted) {
	case right:
	case old:
		tooOld.Add(1)
		s.wrong("%s at %s number %d, acknowledged was %d", what, name, number, acknowledged)
	case foreign:
		s.corrupt.Add(1)
		s.wrong("%s at %s number %d, attempted was %d", what, name, number, attempted)
	}
}

// pair writes two keys of a slot with one command and reads them with another.
func (s *session) pair(ctx context.Context, l *latencies, pair int) {
	a, b, slot := s.values.pair(pair)
	acknowledged, number := s.paired.acknowledged(pair), s.paired.attempt(pair)
	setting, tried := mark(ctx)
	sent := time.Now()
	err := s.client.MSet(setting, a, number, b, number).Err()
	s.finish(sent, l, "mset", a, slot, tried, err)
	if err == nil {
		s.paired.acknowledge(pair, number)
		acknowledged = number
		s.pairsDone.Add(1)
	}
	getting, tried := mark(ctx)
	sent = time.Now()
	got, err := s.client.MGet(getting, a, b).Result()
	s.finish(sent, l, "mget", a, slot, tried, err)
	if err != nil {
		return
	}
	if got[0] != got[1] {
		s.torn.Add(1)
		s.wrong("%s and %s were written together and are %v and %v", a, b, got[0], got[1])
	}
	text, _ := got[0].(string)
	if seen, _ := strconv.ParseUint(text, 10, 64); judge(seen, acknowledged, number) != right {
		s.stale.Add(1)
		s.wrong("%s is %d, acknowledged was %d, attempted %d", a, seen, acknowledged, number)
	}
}
