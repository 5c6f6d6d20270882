// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"sync"
)

// ErrFinished says that no more commands are passed on: the one that came was passed to nobody.
var ErrFinished = errors.New("the connection is finished")

const (
	// mostRuns bounds what is remembered of commands whose replies have not come, and mostAtFirst that of a client that is not let in yet.
	// Ordinary commands in a row are one run, however many.
	mostRuns, mostAtFirst = 1 << 14, 1 << 6
	// fewRuns are what a connection begins with.
	fewRuns = 4
)

// run is commands in a row whose replies are read alike.
type run struct {
	kind kind
	// count is how many replies are awaited, or confirmations; of an unsubscription from everything 0, until its turn has come.
	count uint32
}

// outstanding are the commands that an instance has got and not answered, in their order.
type outstanding struct {
	mu    sync.Mutex
	room  sync.Cond
	runs  []run // a ring
	first int
	size  int
	// admitted reports that a reply has shown that the instance has let the client in.
	admitted bool
	state    state
}

// state is whether commands are passed on.
type state uint8

const (
	open     state = iota
	stopped        // no more, but replies are
	finished       // neither
)

func newOutstanding() *outstanding {
	o := &outstanding{runs: make([]run, fewRuns)}
	o.room.L = &o.mu
	return o
}

func (o *outstanding) last() *run { return &o.runs[(o.first+o.size-1)%len(o.runs)] }

// add notes a command; full reports that there is no room.
func (o *outstanding) add(r run) (full bool, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.put(r)
}

// await notes a command as soon as there is room.
func (o *outstanding) await(r run) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		full, err := o.put(r)
		if !full || err != nil {
			return err
		}
		o.room.Wait()
	}
}

func (o *outstanding) put(r run) (full bool, err error) {
	const most = 1 << 31
	bound := mostRuns
	if !o.admitted {
		bound = mostAtFirst
	}
	switch {
	case o.state != open:
		return false, ErrFinished
	case r.kind == ordinary && o.size > 0 && o.last().kind == ordinary && o.last().count < most:
		o.last().count++
		return false, nil
	case o.size >= bound:
		return true, nil
	case o.size == len(o.runs):
		larger := make([]run, 2*len(o.runs))
		n := copy(larger, o.runs[o.first:])
		copy(larger[n:], o.runs[:o.first])
		o.runs, o.first = larger, 0
	}
	o.size++
	*o.last() = r
	return false, nil
}

// next is the command whose reply comes next.
func (o *outstanding) next() (run, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.size == 0 {
		return run{}, false
	}
	return o.runs[o.first], true
}

// expect says how many confirmations the next command has.
func (o *outstanding) expect(confirmations uint32) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.runs[o.first].count = confirmations
}

// answered takes away a reply, or a confirmation, of the next command. all takes the command away, whatever is awaited.
func (o *outstanding) answered(all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := &o.runs[o.first]
	if r.count--; r.count > 0 && !all {
		return
	}
	o.first, o.size = (o.first+1)%len(o.runs), o.size-1
	if o.size == 0 && len(o.runs) > mostAtFirst {
		o.runs, o.first = make([]run, fewRuns), 0
	}
	o.room.Signal()
}

// admit notes that the instance has let the client in.
func (o *outstanding) admit() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.admitted = true
}

// entry is whether the client was let in, and whether nothing is outstanding that could show it.
func (o *outstanding) entry() (admitted, resting bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.admitted, o.size == 0
}

// stop makes later commands fail.
func (o *outstanding) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.state = max(o.state, stopped)
	o.room.Broadcast()
}

// finish ends the connection: always, or if nothing is outstanding, and the connection is stopped or not held. It reports whether it did.
func (o *outstanding) finish(held func() bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if held != nil && (o.state == finished || o.size > 0 || o.state == open && held()) {
		return false
	}
	o.state = finished
	o.room.Broadcast()
	return true
}
