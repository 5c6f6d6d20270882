// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"middleware.hc.cn/operator/internal/archive/report"
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
	t.Meter.mark()
	t.Report(Progress{Shard: -1, What: "all bases are there"})
	return t.retry(ctx, func() error { return t.tryMark(ctx, m, flows) })
}

// tryMark sets the mark, or says what is in the way.
func (t Taking) tryMark(ctx context.Context, m *Manifest, flows []*flow) error {
	now, err := t.look(ctx)
	if err != nil {
		return err
	}
	if len(now.shards) != len(flows) {
		return errors.New("the cluster was scaled during the backup: take it again")
	}
	all := make([]followed, len(flows))
	for i, f := range flows {
		all[i] = f
	}
	cut, err := t.mark(ctx, now, all, true)
	if err != nil {
		return err
	}
	for i, master := range cut.masters {
		m.Shards[i].Slots, m.Shards[i].NodeID = master.View.Slots, master.View.NodeID
		m.Shards[i].History, m.Shards[i].To = master.At.ID, master.At.Offset
		m.Shards[i].Counts = counts(master)
	}
	m.Moment = cut.moment()
	return nil
}

// counts are the keys of a master.
func counts(h redis.History) *report.Counts {
	return &report.Counts{Keys: h.View.Keys, WithTTL: h.View.KeysWithTTL, WithFieldTTL: h.View.KeysWithFieldTTL}
}

// followed is a stream that a mark can be set in.
type followed interface {
	// hold keeps commands that have not begun to arrive from being read. Those that have came before whatever happens next.
	hold()
	// position is how far the stream was read. It does not change while the stream is held, but for a command that has begun to arrive.
	position() replication.Position
	// release ends hold. With an end, the stream is read to there first.
	release(end *replication.Position)
}

// mark sets a mark in all streams. The masters of what it returns are those of the streams, in their order. Nothing is read from a stream
// that comes after the mark: all are held until it is known.
func (t Taking) mark(ctx context.Context, now topology, streams []followed, pause bool) (cut, error) {
	for _, f := range streams {
		f.hold()
	}
	ends := make([]*replication.Position, len(streams))
	defer func() {
		for i, f := range streams {
			f.release(ends[i])
		}
	}()
	c, err := t.cut(ctx, now, pause)
	if err != nil {
		return cut{}, err
	}
	// What began meanwhile shows now: a job of the engine that moves slots, or a failover of which the old master had not heard.
	after, err := t.look(ctx)
	if err != nil {
		return cut{}, err
	}
	if !now.same(after) {
		return cut{}, blocked(-1, "slots or roles changed while the mark was set")
	}
	masters := make([]redis.History, len(streams))
	for i, f := range streams {
		at := slices.IndexFunc(c.masters, func(h redis.History) bool { return ahead(h, f.position()) })
		if at < 0 {
			return cut{}, blocked(i, "shard %d: no master has the history that is followed", i)
		}
		masters[i] = c.masters[at]
	}
	for i := range masters {
		ends[i] = &masters[i].At
	}
	c.masters = masters
	return c, nil
}

// ahead reports whether a node is in the history of a position, there or further.
func ahead(h redis.History, p replication.Position) bool {
	return h.At.ID == p.ID && h.At.Offset >= p.Offset
}

// cut is one moment of all masters.
type cut struct {
	at           time.Time
	took         time.Duration // until all had answered: what is done after that is not in it
	paused, skew time.Duration
	masters      []redis.History
}

func (c cut) moment() Moment {
	return Moment{Marked: c.at.Add(c.took).UTC(), Consistent: c.paused > 0, Paused: c.paused.Seconds(), Skew: c.skew.Seconds()}
}

// cut asks all masters where they are; with pause, while none of them executes writes if the engines allow that.
func (t Taking) cut(ctx context.Context, now topology, pause bool) (cut, error) {
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
	collect := func(histories []redis.History) error {
		return each(func(ctx context.Context, i int) (err error) {
			histories[i], err = now.shards[i].master.node.History(ctx)
			return err
		})
	}
	if err == nil {
		err = collect(c.masters)
	}
	answered := time.Now()
	if pause {
		again := make([]redis.History, len(c.masters))
		if err == nil {
			err = collect(again)
		}
		err = errors.Join(err, stood(c.masters, again))
		// Also one that did not answer may have heard it, and also when the backup is given up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), t.Pause)
		defer cancel()
		err = errors.Join(err, resumeAll(ctx, now))
		c.paused = time.Since(c.at)
	}
	c.skew, c.took = answered.Sub(asked), answered.Sub(c.at)
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

// stood is an error if a master has gone on between two answers. If none has, all were where they are at the moment between the two, and
// that is one moment: whoever else ends delays of writes, another backup or an archive, cannot have spoiled it.
func stood(before, after []redis.History) error {
	for i := range before {
		if before[i].At != after[i].At {
			return fmt.Errorf("instance %s went on while its writes were to be delayed", before[i].View.NodeID)
		}
	}
	return nil
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
