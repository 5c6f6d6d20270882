// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"sync"
	"time"
)

// Gate lets reconciliations of the objects of those shards begin that this replica holds. It is safe for concurrent use; a nil one lets all
// begin.
type Gate struct {
	shards int

	mu     sync.Mutex
	open   []*opened // by shard; nil: it is not held
	guards []*Guard
}

// opened is a shard that is held.
type opened struct {
	ctx     context.Context //nolint:containedctx // of what is under way: it ends with the shard
	cancel  context.CancelFunc
	running int
	closed  bool
	idle    chan struct{} // closed when it is closed and nothing runs
}

// NewGate makes a gate of so many shards, none of which is held; with none, it is nil.
func NewGate(shards int) *Gate {
	if shards == 0 {
		return nil
	}
	return &Gate{shards: shards, open: make([]*opened, shards)}
}

// Of is the shard of a namespace.
func (g *Gate) Of(namespace string) int { return Of(namespace, g.shards) }

// Holds reports whether objects of a namespace are this replica's.
func (g *Gate) Holds(namespace string) bool {
	if g == nil {
		return true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.open[g.Of(namespace)] != nil
}

// enter lets a reconciliation begin, if the shard of its namespace is held. Its context ends when the shard is let go and it was not over
// in time. leave is called when it has ended.
func (g *Gate) enter(ctx context.Context, namespace string) (_ context.Context, leave func(), ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of := g.open[g.Of(namespace)]
	if of == nil || of.closed {
		return nil, nil, false
	}
	of.running++
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(of.ctx, cancel)
	return ctx, func() {
		stop()
		cancel()
		g.mu.Lock()
		defer g.mu.Unlock()
		of.running--
		of.done()
	}, true
}

// close lets nothing begin any more. It is called with the gate's lock, as done is.
func (o *opened) close() {
	if !o.closed {
		o.closed = true
		o.done()
	}
}

func (o *opened) done() {
	if o.closed && o.running == 0 {
		close(o.idle)
	}
}

// gain opens a shard whose Lease this replica got, and has all its objects reconciled.
func (g *Gate) gain(shard int) {
	ctx, cancel := context.WithCancel(context.Background())
	g.mu.Lock()
	g.open[shard] = &opened{ctx: ctx, cancel: cancel, idle: make(chan struct{})}
	guards := g.guards
	g.mu.Unlock()
	for _, guard := range guards {
		guard.enqueue(shard)
	}
}

// shut lets nothing begin any more in a shard that is held, and returns what waits until nothing runs: for so long as it likes to take at
// the most, and then until it has heard that it is over. What is remembered of the shard's objects is forgotten by then.
func (g *Gate) shut(shard int, within time.Duration) (wait func()) {
	g.mu.Lock()
	of := g.open[shard]
	of.close()
	g.mu.Unlock()
	return func() {
		timer := time.AfterFunc(within, of.cancel)
		<-of.idle
		timer.Stop()
		of.cancel()
		g.mu.Lock()
		guards := g.guards
		g.mu.Unlock()
		for _, guard := range guards {
			guard.forget(shard)
		}
		g.mu.Lock()
		g.open[shard] = nil
		g.mu.Unlock()
	}
}

// abort ends everything that is under way, and lets nothing begin: a Lease was lost.
func (g *Gate) abort() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range g.open {
		if of == nil {
			continue
		}
		of.cancel()
		of.close()
	}
}
