// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/replication"
)

// setMark sets the mark once all bases are there.
func (t Taking) setMark(ctx context.Context, m *Manifest, flows []*flow) error {
	for _, f := range flows {
		select {
		case <-f.based:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	t.Report(Progress{Shard: -1, What: "all bases are there"})
	return t.retry(ctx, func() error { return t.tryMark(ctx, m, flows) })
}

// tryMark sets the mark, or says what is in the way. Nothing is read from a stream that comes after the mark: all flows are held until
// it is known.
func (t Taking) tryMark(ctx context.Context, m *Manifest, flows []*flow) (err error) {
	now, err := t.look(ctx)
	if err != nil {
		return err
	}
	if len(now.shards) != len(flows) {
		return errors.New("the cluster was scaled during the backup: take it again")
	}
	for _, f := range flows {
		f.hold()
	}
	ends := make([]*replication.Position, len(flows))
	defer func() {
		for i, f := range flows {
			f.release(ends[i])
		}
	}()
	cut, err := t.cut(ctx, now)
	if err != nil {
		return err
	}
	// What began meanwhile shows now: a job of the engine that moves slots, or a failover of which the old master had not heard.
	after, err := t.look(ctx)
	if err != nil {
		return err
	}
	if !now.same(after) {
		return blocked(-1, "slots or roles changed while the mark was set")
	}
	found := make([]*replication.Position, len(flows))
	for i, f := range flows {
		shard, at := cut.find(f.position())
		if at == nil {
			return blocked(i, "shard %d: no master has the history that is followed", i)
		}
		found[i] = at
		m.Shards[i].Slots, m.Shards[i].NodeID, m.Shards[i].To = shard.View.Slots, shard.View.NodeID, at.Offset
		m.Shards[i].History = at.ID
	}
	m.Marked, m.Consistent, m.Paused, m.Skew = cut.at.UTC(), cut.paused > 0, cut.paused.Seconds(), cut.skew.Seconds()
	copy(ends, found)
	return nil
}

// cut is one moment of all masters.
type cut struct {
	at           time.Time
	paused, skew time.Duration
	masters      []redis.History
}

// find is the master whose history a position is in.
func (c cut) find(p replication.Position) (redis.History, *replication.Position) {
	for _, h := range c.masters {
		if h.At.ID == p.ID && h.At.Offset >= p.Offset {
			return h, &h.At
		}
	}
	return redis.History{}, nil
}

// cut asks all masters where they are, while none of them executes writes if the engines allow that.
func (t Taking) cut(ctx context.Context, now topology) (cut, error) {
	pause := true
	for _, s := range now.shards {
		pause = pause && canPause(s.master.history.View.Engine, s.master.history.View.Version)
	}
	c := cut{at: time.Now(), masters: make([]redis.History, len(now.shards))}
	each := func(do func(ctx context.Context, i int) error) error {
		group, ctx := errgroup.WithContext(ctx)
		for i := range now.shards {
			group.Go(func() error { return do(ctx, i) })
		}
		return group.Wait()
	}
	var err error
	if pause {
		err = each(func(ctx context.Context, i int) error { return now.shards[i].master.node.PauseWrites(ctx, t.Pause) })
	}
	asked := time.Now()
	if err == nil {
		err = each(func(ctx context.Context, i int) (err error) {
			c.masters[i], err = now.shards[i].master.node.History(ctx)
			return err
		})
	}
	answered := time.Now()
	if pause {
		// Also one that did not answer may have heard it, and also when the backup is given up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Pause)
		defer cancel()
		err = errors.Join(err, resumeAll(ctx, now))
		c.paused = time.Since(c.at)
	}
	c.skew = answered.Sub(asked)
	switch {
	case errors.Is(err, redis.ErrAuth):
		return cut{}, err // so it would stay, and each attempt would delay writes
	case err != nil:
		return cut{}, blocked(-1, "%v", err)
	}
	if pause && answered.Sub(c.at) >= t.Pause {
		return cut{}, blocked(-1, "the instances took %s to answer, and writes are delayed for %s at most", answered.Sub(c.at), t.Pause)
	}
	for i, h := range c.masters {
		was := now.shards[i]
		if h.View.NodeID != was.master.id() || h.View.Role != redis.RoleMaster || !h.View.Slots.Equal(was.slots) ||
			len(h.View.Migrating)+len(h.View.Importing) > 0 {
			return cut{}, blocked(-1, "slots or roles changed while the mark was set")
		}
	}
	return c, nil
}

// resumeAll asks every master, also after one failed.
func resumeAll(ctx context.Context, now topology) error {
	errs := make([]error, len(now.shards))
	var wait sync.WaitGroup
	for i, s := range now.shards {
		wait.Go(func() { errs[i] = s.master.node.ResumeWrites(ctx) })
	}
	wait.Wait()
	return errors.Join(errs...)
}
