// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"middleware.hc.cn/operator/internal/archive/report"
)

// Archiving is a continuous archive: bases, and all that follows them, with a record of a moment every few seconds.
type Archiving struct {
	// Taking is what there is to know for a backup. Name is that of the archive; Request says whose it is.
	Taking
	// Interval is how often a record is written, by default DefaultInterval. What came after the last one is lost with a cluster.
	Interval time.Duration
	// MarkEvery is how often the moment of a record is one for all shards, by default DefaultMarkEvery.
	MarkEvery time.Duration
	// BaseEvery is how old a base becomes, by default DefaultBaseEvery: what follows it has to be carried out at a restore.
	BaseEvery time.Duration
	// Keep is for how long moments can be restored, by default DefaultKeep; somewhat longer, since a base goes with all that follows it.
	Keep time.Duration
	// Watch is told how far the archive is; nil: nobody.
	Watch *Watch
}

// Defaults of Archiving.
const (
	DefaultInterval  = 5 * time.Second
	DefaultMarkEvery = time.Minute
	DefaultBaseEvery = 24 * time.Hour
	DefaultKeep      = 7 * 24 * time.Hour
	// DefaultReattach is the Timeout of an archive: longer than a failover, after which it shows who has what follows.
	DefaultReattach = time.Minute
	// DefaultObjective is how far an archive may be behind.
	DefaultObjective = time.Minute
)

const (
	leastInterval = 100 * time.Millisecond
	// Between bases of one archive that failed: each costs a server a fork.
	soonestBase, latestBase = 10 * time.Second, 10 * time.Minute
	pruneEvery              = time.Hour
	// sayAgain is how often what lasts is said.
	sayAgain = time.Minute
)

func (a Archiving) withDefaults() Archiving {
	of := func(d *time.Duration, is time.Duration) {
		if *d <= 0 {
			*d = is
		}
	}
	of(&a.Interval, DefaultInterval)
	of(&a.MarkEvery, DefaultMarkEvery)
	of(&a.BaseEvery, DefaultBaseEvery)
	of(&a.Keep, DefaultKeep)
	of(&a.Timeout, DefaultReattach)
	a.Interval = max(a.Interval, leastInterval)
	a.Taking = a.Taking.withDefaults()
	return a
}

// archiver is an archive that is being written.
type archiver struct {
	Archiving
	writer string
	turns  *semaphore.Weighted
	group  *errgroup.Group
	count  atomic.Int64 // of objects

	kept    atomic.Pointer[Record] // the first one to be restored; nil: all
	last    atomic.Pointer[Record] // nil: there is none
	marked  time.Time              // when a mark was tried last
	chains  []*chain
	ends    []context.CancelFunc // of the chains
	pause   time.Duration        // before the next base, after one that failed
	bases   time.Time            // not before
	said    string
	saidAt  time.Time
	refused refusals
	pausing bool // a mark is being set
}

// Run writes the archive until ctx ends, which is no error. It goes on where the last record of the same Request ends, if the instances
// still have what follows, and with new bases otherwise. What passes is waited for and reported; the error says what does not.
func (a Archiving) Run(ctx context.Context) error {
	a = a.withDefaults()
	if err := ValidateName(a.Name); err != nil {
		return err
	}
	if len(a.Seeds) == 0 {
		return errNoSeeds
	}
	if there, err := a.Store.lists(ctx, manifestKey(a.Name)); err != nil || there {
		return errors.Join(err, fmt.Errorf("%s is a backup, or cannot be looked at, and no archive is written there", a.Name))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := &archiver{Archiving: a, writer: newAttempt(a.Request), turns: semaphore.NewWeighted(atOnce), group: &errgroup.Group{}}
	defer func() {
		cancel()
		_ = r.group.Wait() // each has said why it ended
	}()
	a.Watch.begin(a.known)
	if err := r.claim(ctx); err != nil {
		return err
	}
	r.group.Go(func() error { return r.prune(ctx) })
	return r.loop(ctx)
}

func (r *archiver) loop(ctx context.Context) error {
	for {
		began := time.Now()
		err := r.tick(ctx)
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // it is asked to stop, and goes on from the last record when it starts again
		case errors.Is(err, ErrReplaced), r.refused.stay(err, r.pausing, r.Timeout, time.Now()):
			return err
		case err != nil && (err.Error() != r.said || time.Since(r.saidAt) > sayAgain):
			r.Report(Progress{Shard: -1, What: err.Error()})
			r.said, r.saidAt = err.Error(), time.Now()
		case err == nil:
			r.said = ""
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(leastInterval, r.Interval-time.Since(began))):
		}
	}
}

// number is that of the next object.
func (r *archiver) number() int64 { return r.count.Add(1) }

// start runs a chain.
func (r *archiver) start(ctx context.Context, c *chain) {
	ctx, cancel := context.WithCancel(ctx)
	r.chains, r.ends = append(r.chains, c), append(r.ends, cancel)
	r.Watch.follow(r.chains)
	r.group.Go(func() error {
		err := c.run(ctx)
		if ctx.Err() == nil {
			r.Watch.failed(err)
			r.Report(Progress{Shard: c.shard, What: err.Error()})
		}
		c.change(func() { c.over = errors.Join(err, errors.New("it has ended")) })
		return nil
	})
}

// drop ends the chains that are not wanted any more, and forgets those that have ended.
func (r *archiver) drop(unwanted func(*chain) bool) {
	var chains []*chain
	var ends []context.CancelFunc
	inVain := false
	for i, c := range r.chains {
		failed := c.hasEnded()
		inVain = inVain || failed && c.since == 0
		if failed || unwanted(c) {
			r.ends[i]()
			continue
		}
		chains, ends = append(chains, c), append(ends, r.ends[i])
	}
	r.chains, r.ends = chains, ends
	r.Watch.follow(r.chains)
	if inVain {
		r.pause = min(max(soonestBase, 2*r.pause), latestBase)
		r.bases = time.Now().Add(r.pause)
	}
}

// tick writes a record, or says what is in the way.
func (r *archiver) tick(ctx context.Context) error {
	r.pausing = false
	r.Watch.waits(report.WaitInstances)
	now, err := r.look(ctx)
	if err != nil {
		return err
	}
	r.Watch.waits(report.WaitBases)
	chains, err := r.assign(ctx, now)
	if err != nil {
		return err
	}
	r.pausing = time.Since(r.marked) >= r.MarkEvery
	if r.pausing {
		r.marked = time.Now() // one that fails is not tried again at once: writes are delayed for it
	}
	streams := make([]followed, len(chains))
	for i, c := range chains {
		streams[i] = c
	}
	r.Watch.waits(report.WaitInstances)
	at, err := r.mark(ctx, now, streams, r.pausing)
	if err != nil {
		return err
	}
	r.Watch.waits(report.WaitStore)
	for _, c := range chains {
		if err := c.await(ctx); err != nil {
			return err
		}
	}
	if err := r.record(ctx, now, chains, at, r.pausing); err != nil {
		return err
	}
	r.Watch.reached(at)
	// Whoever was in a record, and is in this one no more, is not gone on with: records before this one may be deleted.
	r.drop(func(c *chain) bool { return c.since > 0 && !slices.Contains(chains, c) })
	return nil
}

// assign finds each shard's chain. One without gets a new one.
func (r *archiver) assign(ctx context.Context, now topology) ([]*chain, error) {
	r.drop(func(c *chain) bool { return !slices.ContainsFunc(now.shards, c.of) })
	chains := make([]*chain, len(now.shards))
	var missing error
	starting := slices.ContainsFunc(r.chains, func(c *chain) bool { return !c.isReady() })
	for i, shard := range now.shards {
		var follows bool
		for _, c := range r.chains { // the newest counts
			if of := c.of(shard); of && c.isReady() && c.position().ID == shard.master.history.At.ID {
				chains[i] = c
			} else if of {
				follows = true
			}
		}
		switch {
		case chains[i] == nil && follows:
			missing = errors.Join(missing, blocked(i, "shard %d: its base is being read, or its stream taken up", i))
		case chains[i] == nil:
			missing = errors.Join(missing, blocked(i, "shard %d: it needs a base", i))
			r.begin(ctx, i, shard, len(now.shards))
		case !starting && (time.Since(chains[i].begun) > r.BaseEvery || chains[i].parts > mostParts/2):
			starting = r.begin(ctx, i, shard, len(now.shards))
		}
	}
	return chains, missing
}

// begin starts a chain with a base, unless the last one was a moment ago and failed.
func (r *archiver) begin(ctx context.Context, i int, shard members, shards int) bool {
	if time.Now().Before(r.bases) {
		return false
	}
	c := &chain{flow: newFlow(r.Taking, i, shard), archiver: r, id: newAttempt(""), begun: time.Now(), room: room(shards)}
	r.start(ctx, c)
	return true
}

// room is how many segments of a shard there may be in one record.
func room(shards int) int {
	const least = 8
	return max(least, mostPieces/max(1, shards))
}

// of reports whether a chain is of a shard.
func (c *chain) of(shard members) bool {
	p, master := c.position(), shard.master.history
	if p.ID == "" { // its base has not begun
		return slices.ContainsFunc(append(slices.Clone(c.from.replicas), c.from.master), func(m member) bool {
			return m.id() == shard.master.id() || slices.ContainsFunc(shard.replicas, func(s member) bool { return s.id() == m.id() })
		})
	}
	return master.At.ID == p.ID || master.Before.ID == p.ID && p.Offset < master.Before.Offset
}

func (c *chain) isReady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ready && !c.stopped && c.session != nil
}

func (c *chain) hasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped || c.over != nil
}

// record writes what has come since the last one. When nothing has, and nobody asks for a mark, nothing is written.
func (r *archiver) record(ctx context.Context, now topology, chains []*chain, at cut, wanted bool) error {
	last := r.last.Load()
	next := &Record{Format: Format, Name: r.Name, Number: 1, Writer: r.writer, Request: r.Request, Cluster: r.Cluster, Engine: now.engine,
		Version: now.version, Moment: at.moment(), Compression: compressionName, Shards: make([]ArchivedShard, len(chains))}
	if next.Recipients = r.Store.recipients(); next.Recipients != "" {
		next.Encryption = encryptionName
	}
	if last != nil {
		next.Number, next.Previous = last.Number+1, last.checksum
		if next.Marked.Before(last.Marked) { // a clock that was put back
			next.Marked = last.Marked
		}
	}
	var first time.Time // if it is another one than before
	next.First, next.Oldest = 1, 1
	if last != nil {
		next.First, next.Oldest = last.First, last.Oldest
	}
	if kept := r.kept.Load(); kept != nil && kept.Number > next.First {
		next.First, next.Oldest = kept.Number, max(next.Oldest, kept.earliest())
		first = kept.Marked
	}
	for i, c := range chains {
		master := at.masters[i]
		s := &next.Shards[i]
		*s = ArchivedShard{Chain: c.id, Since: c.since, Begun: c.begun.UTC(), Slots: master.View.Slots,
			NodeID: master.View.NodeID, RDB: c.rdb, History: master.At.ID,
			To: master.At.Offset, Counts: counts(master)}
		c.change(func() { s.Base, s.Segments = c.base, slices.Clone(c.pieces[:c.upTo]) })
		s.Parts = c.parts + int64(len(s.Segments))
		if s.Since == 0 {
			s.Since = next.Number
		}
		wanted = wanted || s.Base != nil || len(s.Segments) > 0
	}
	if !wanted && last != nil {
		return nil
	}
	if err := r.write(ctx, next); err != nil {
		if errors.Is(err, errTooLarge) { // so it would stay
			r.drop(func(*chain) bool { return true })
		}
		return err
	}
	r.last.Store(next)
	r.Watch.recorded(next, first)
	for i, c := range chains {
		s := next.Shards[i]
		if s.Base != nil {
			r.pause = 0
		}
		c.since, c.parts = s.Since, s.Parts
		c.change(func() {
			c.base, c.pieces = nil, c.pieces[len(s.Segments):]
			c.upTo -= len(s.Segments)
		})
	}
	return nil
}

// write writes a record, for as long as that takes.
func (r *archiver) write(ctx context.Context, next *Record) error {
	for {
		within, cancel := context.WithTimeout(ctx, putTimeout(0))
		err := r.Store.writeRecord(within, next)
		cancel()
		if err == nil || errors.Is(err, ErrReplaced) || errors.Is(err, errTooLarge) || next.Validate() != nil || ctx.Err() != nil {
			return err
		}
		r.Watch.failed(err)
		r.Report(Progress{Shard: -1, What: err.Error()})
		select {
		case <-ctx.Done():
		case <-time.After(betweenAttempts):
		}
	}
}
