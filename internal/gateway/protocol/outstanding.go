// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"errors"
	"sync"
)

// ErrFinished says that a connection was finished while it was at rest: a command that came after that was passed to nobody.
var ErrFinished = errors.New("the connection is finished")

// mostRuns bounds what is remembered of commands whose replies have not come. Ordinary commands in a row are one run, however many.
const mostRuns = 1 << 16

// run is commands in a row whose replies are read alike.
type run struct {
	kind kind
	// count is how many replies are awaited, or confirmations; of an unsubscription from everything 0, until its turn has come.
	count uint32
}

// outstanding are the commands that an instance has got and not answered, in their order.
type outstanding struct {
	mu       sync.Mutex
	room     sync.Cond
	runs     []run // a ring
	first    int
	size     int
	finished bool
}

func newOutstanding() *outstanding {
	o := &outstanding{runs: make([]run, 4)}
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
	switch {
	case o.finished:
		return false, ErrFinished
	case r.kind == ordinary && o.size > 0 && o.last().kind == ordinary && o.last().count < most:
		o.last().count++
		return false, nil
	case o.size == mostRuns:
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
	o.room.Signal()
}

// finish makes later commands fail: always, or if there are none now and the connection is not held.
func (o *outstanding) finish(held func() bool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if held != nil && (o.finished || o.size > 0 || held()) {
		return false
	}
	o.finished = true
	o.room.Broadcast()
	return true
}
