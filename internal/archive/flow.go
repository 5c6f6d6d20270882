// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/replication"
)

// flow is what comes from one shard: its base and its stream, up to the mark.
type flow struct {
	taking Taking
	shard  int
	from   members
	source member        // that the base comes from
	based  chan struct{} // closed when the base was read

	mu       sync.Mutex
	released *sync.Cond
	held     bool
	stopped  bool
	session  *replication.Session
	end      *replication.Position // the mark, when it is set

	resumed replication.Position // where the stream was resumed last, and how often there
	inVain  int
}

func newFlow(t Taking, shard int, from members) *flow {
	f := &flow{taking: t, shard: shard, from: from, based: make(chan struct{})}
	f.released = sync.NewCond(&f.mu)
	return f
}

// run writes the shard's objects. A few shards at a time have their turn to send a base.
func (f *flow) run(ctx context.Context, m *Manifest, s *Shard, turns *semaphore.Weighted) error {
	f.weigh(ctx, f.from.master)
	if err := turns.Acquire(ctx, 1); err != nil {
		return err
	}
	done := sync.OnceFunc(func() { turns.Release(1) })
	defer done()
	session, err := f.begin(ctx)
	if err != nil {
		return fmt.Errorf("shard %d: %w", f.shard, err)
	}
	f.session = session
	defer f.stop()
	position := session.Position()
	s.History, s.From = position.ID, position.Offset
	group, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, f.stop)()
	group.Go(func() error {
		f.estimate(ctx, f.source)
		return nil
	})
	group.Go(func() (err error) {
		s.Base, err = f.taking.Store.put(ctx, m.baseKey(f.shard), func(to io.Writer) error { return f.copyBase(to, s) })
		done()
		return err
	})
	group.Go(func() (err error) {
		select {
		case <-f.based:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.Stream, err = f.taking.Store.put(ctx, m.streamKey(f.shard), func(to io.Writer) error { return f.copyStream(ctx, to) })
		return err
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("shard %d: %w", f.shard, err)
	}
	return nil
}

// stop ends the session, and whoever waits for it.
func (f *flow) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.session != nil {
		f.session.Close()
	}
	f.held, f.stopped = false, true
	f.released.Broadcast()
}

// begin follows an instance of the shard from a base on: a replica that is in sync, or else the master, unless it would count the
// session as a replica whose loss stops its writes.
func (f *flow) begin(ctx context.Context) (session *replication.Session, err error) {
	for _, m := range append(slices.Clone(f.from.replicas), f.from.master) {
		if err = m.refresh(ctx); err == nil { // a shard that had to wait for its turn may have another master by now
			err = m.followable()
		}
		if err == nil {
			session, err = m.follow(ctx, replication.Position{})
		}
		if err == nil {
			f.source = m
			return session, nil
		}
		f.taking.Report(Progress{Shard: f.shard, What: err.Error()})
	}
	return nil, fmt.Errorf("no instance can be followed: %w", err)
}

// refresh asks again where an instance is.
func (m *member) refresh(ctx context.Context) error {
	h, err := m.node.History(ctx)
	if err == nil && h.View.NodeID != m.id() {
		err = fmt.Errorf("another instance answers at %s", m.addr)
	}
	if err == nil {
		m.history = h
	}
	return err
}

// followable says why an instance is not followed.
func (m member) followable() error {
	switch {
	case m.history.View.Role == redis.RoleReplica && !m.history.View.MasterLinkUp:
		return fmt.Errorf("%s has lost its master", m.addr)
	case m.history.View.Role == redis.RoleMaster && m.history.Counts:
		return fmt.Errorf("%s is a master that counts replicas (min-replicas-to-write): bring a replica back", m.addr)
	}
	return nil
}

func (m member) follow(ctx context.Context, from replication.Position) (*replication.Session, error) {
	return m.node.Follow(ctx, from, version(m), m.history.View.Role == redis.RoleMaster)
}

// version is what is told to an instance of its own version.
func version(m member) string {
	if m.history.View.Engine == redis.EngineValkey {
		return m.history.View.Version
	}
	return ""
}

// copyBase copies the base, and notes its header.
func (f *flow) copyBase(to io.Writer, s *Shard) error {
	const headerSize = 9
	header := make([]byte, headerSize)
	if _, err := io.ReadFull(f.session.Base(), header); err != nil {
		return err
	}
	s.RDB = string(header)
	if !headerForm.MatchString(s.RDB) {
		return fmt.Errorf("the base begins with %q, which is no header of an RDB", header)
	}
	if _, err := to.Write(header); err != nil {
		return err
	}
	counting := &counting{flow: f, read: headerSize}
	if _, err := io.Copy(to, io.TeeReader(f.session.Base(), io.MultiWriter(counting, f.taking.Meter.of(f.shard)))); err != nil {
		return err
	}
	f.taking.Report(Progress{Shard: f.shard, What: "the base is there", Bytes: counting.read})
	close(f.based)
	return nil
}

// counting reports every 64 MiB.
type counting struct {
	flow *flow
	read int64
}

func (c *counting) Write(p []byte) (int, error) {
	const step = 64 << 20
	before := c.read / step
	if c.read += int64(len(p)); c.read/step > before {
		c.flow.taking.Report(Progress{Shard: c.flow.shard, What: "reading the base", Bytes: c.read})
	}
	return len(p), nil
}

// copyStream copies commands until the mark.
func (f *flow) copyStream(ctx context.Context, to io.Writer) error {
	for ctx.Err() == nil {
		err := f.session.Wait()
		if err == nil {
			if f.ended() {
				break
			}
			err = f.session.Copy(to)
		}
		if f.ended() {
			break
		}
		if err != nil && ctx.Err() == nil {
			err = f.resume(ctx, err, f.session.Position(), f.session.Whole())
		}
		if err != nil {
			return errors.Join(ctx.Err(), err)
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if position := f.session.Position(); position != *f.end || !f.session.Whole() {
		return fmt.Errorf("the stream is at %d of %s, and the mark at %d of %s", position.Offset, position.ID, f.end.Offset, f.end.ID)
	}
	return nil
}

// ended waits while the flow is held, and reports whether the mark was reached.
func (f *flow) ended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.held {
		f.released.Wait()
	}
	return f.atEnd()
}

func (f *flow) atEnd() bool { return f.end != nil && f.session.Position().Offset >= f.end.Offset }

// hold keeps commands that have not begun to arrive from being read. Those that have came before whatever happens next.
func (f *flow) hold() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held = true
}

// release ends hold. With an end, the flow goes on to there and no further.
func (f *flow) release(end *replication.Position) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.held, f.end = false, end
	if end != nil && f.atEnd() {
		f.session.Close() // nobody waits for another command
	}
	f.released.Broadcast()
}

// position is how far the flow is.
func (f *flow) position() replication.Position {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.session.Position()
}

// resume follows an instance that has what comes after a position, after the session was lost. What was read until there can be gone on
// with only if it is whole.
func (f *flow) resume(ctx context.Context, why error, position replication.Position, whole bool) error {
	const mostInVain = 10
	if position == f.resumed {
		f.inVain++
	} else {
		f.resumed, f.inVain = position, 0
	}
	for _, last := range []error{replication.ErrTorn, replication.ErrProtocol, replication.ErrRefused} {
		if errors.Is(why, last) {
			return why // the same would come again
		}
	}
	if !whole || f.inVain > mostInVain {
		return why
	}
	f.session.Close()
	f.taking.Report(Progress{Shard: f.shard, What: why.Error()})
	return f.attach(ctx, position)
}

// attach follows an instance that has what comes after a position. One that has not is not asked: it would begin with a new base.
func (f *flow) attach(ctx context.Context, position replication.Position) error {
	return f.taking.retry(ctx, func() error {
		all, err := f.taking.ask(ctx)
		if err != nil {
			return err
		}
		slices.SortStableFunc(all, func(a, b member) int {
			return strings.Compare(string(b.history.View.Role), string(a.history.View.Role))
		})
		var failed error
		for _, m := range all { // replicas first
			if !has(m.history, position) || m.followable() != nil {
				continue
			}
			const within = 10 * time.Second // for an answer; what follows comes later
			begin, cancel := context.WithTimeout(ctx, within)
			session, err := m.follow(begin, position)
			cancel()
			if err != nil {
				failed = err
				continue
			}
			if session.Base() != nil { // it has just lost it
				session.Close()
				continue
			}
			f.use(session)
			return nil
		}
		if failed != nil {
			return blocked(f.shard, "%v", failed)
		}
		return blocked(f.shard, "no instance has what follows %d of %s", position.Offset, position.ID)
	})
}

// use goes on with another session.
func (f *flow) use(session *replication.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.session = session
	if f.stopped {
		session.Close()
	}
}

// has reports whether a node has what follows a position.
func has(h redis.History, p replication.Position) bool {
	if h.Backlog == 0 || h.Backlog > p.Offset+1 {
		return false
	}
	return h.At.ID == p.ID && h.At.Offset >= p.Offset || h.Before.ID == p.ID && p.Offset < h.Before.Offset
}
