// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "sync/atomic"

// ledger knows what a correct cluster may answer for each key. Values are numbered from
// 1 in the order they are written; 0 stands for no value. One goroutine writes a key,
// any may read it.
type ledger struct {
	entries []entry
}

type entry struct {
	acknowledged atomic.Uint64 // highest number whose write was acknowledged
	attempted    atomic.Uint64 // highest number that was sent
}

func newLedger(keys int) *ledger { return &ledger{entries: make([]entry, keys)} }

// attempt gives the number to write next. It is called before the write is sent.
func (l *ledger) attempt(key int) uint64 { return l.entries[key].attempted.Add(1) }

// acknowledge notes that the write of a number was answered with success.
func (l *ledger) acknowledge(key int, number uint64) { l.entries[key].acknowledged.Store(number) }

// acknowledged is the oldest number that a read which is sent now may bring.
func (l *ledger) acknowledged(key int) uint64 { return l.entries[key].acknowledged.Load() }

// attempted is the newest number that a read whose answer came before may have brought.
func (l *ledger) attempted(key int) uint64 { return l.entries[key].attempted.Load() }

// verdict is what an answer means.
type verdict int

const (
	right   verdict = iota
	old             // older than the last acknowledged write, or no value at all
	foreign         // a number that was never written
)

// judge compares an answer with the numbers that were acknowledged when it was asked for
// and attempted when it came. A write that failed may or may not have happened, so all
// between the two is right.
func judge(answer, acknowledged, attempted uint64) verdict {
	switch {
	case answer < acknowledged:
		return old
	case answer > attempted:
		return foreign
	}
	return right
}
