// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Options are those of a replica.
type Options struct {
	// Gate is opened for the shards that the replica holds.
	Gate *Gate
	// Name is what the names of Leases begin with, and Lock makes the lock of one. It has the Identity.
	Name     string
	Lock     func(lease string) (resourcelock.Interface, error)
	Identity string
	// Leader is the Lease of the operators' one leader, and Alike tells by its holder whether that one divides objects as this replica does:
	// while it does not, the replica works on nothing.
	Leader string
	Alike  func(holder string) bool
	// LeaseDuration, RenewDeadline and RetryPeriod are as of client-go.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// DrainWithin is how long reconciliations of a shard that is let go may take to end by themselves.
	DrainWithin time.Duration
	// Lost is called when a Lease was lost: the process has to end.
	Lost func()
	// Told is called with how many shards are held whenever that has changed.
	Told func(held int)
	Log  logr.Logger
}

// MemberLease is the name of the Lease of a slot of members, ShardLease that of a shard.
func MemberLease(name string, slot int) string { return fmt.Sprintf("%s-member-%d", name, slot) }

// ShardLease is the name of a shard's Lease.
func ShardLease(name string, shard int) string { return fmt.Sprintf("%s-shard-%d", name, shard) }

// Replica takes part in dividing the shards, from Start to its end. All its fields belong to the goroutine of Start.
type Replica struct {
	Options
	events chan func()   // are run by Start
	over   chan struct{} // closed when it has returned

	live      []bool
	stand     bool
	slot      int // that it has; negative: none
	trying    int // to get it
	member    *election
	stages    []Stage
	elections []*election

	mu     sync.Mutex
	sights map[string]sight // of all Leases, by name; whoever asks may read it
}

// NewReplica makes a replica.
func NewReplica(o Options) *Replica {
	shards := o.Gate.shards
	return &Replica{Options: o, events: make(chan func()), over: make(chan struct{}), slot: -1, trying: -1,
		stages: make([]Stage, shards), elections: make([]*election, shards), sights: map[string]sight{}}
}

// NeedLeaderElection has a manager start it in every replica.
func (r *Replica) NeedLeaderElection() bool { return false }

// Start takes part once the controllers run, until ctx ends; then it returns when nothing of this replica is under way, and its Leases are
// released.
func (r *Replica) Start(ctx context.Context) error {
	defer close(r.over)
	if !r.Gate.started(ctx) {
		return nil
	}
	looks := make(chan view)
	go r.watch(ctx, looks)
	for {
		select {
		case is := <-looks:
			if is.stand != r.stand {
				r.Log.Info("Whether the leader divides objects among shards as this replica does", "alike", !is.stand)
			}
			r.live, r.stand = is.live, is.stand
			if err := r.decide(); err != nil {
				return err
			}
		case event := <-r.events:
			event()
		case <-ctx.Done():
			return r.stop()
		}
	}
}

// view is what a look at the Leases told.
type view struct {
	live  []bool
	stand bool
}

// watch looks at all Leases, once a period.
func (r *Replica) watch(ctx context.Context, to chan<- view) {
	names := []string{r.Leader}
	for slot := range r.stages {
		names = append(names, MemberLease(r.Name, slot))
	}
	for shard := range r.stages {
		names = append(names, ShardLease(r.Name, shard))
	}
	locks, sights := make([]resourcelock.Interface, len(names)), make([]sight, len(names))
	ticker := time.NewTicker(r.RetryPeriod)
	defer ticker.Stop()
	for ; ctx.Err() == nil; wait(ctx, ticker.C) {
		if err := r.look(ctx, names, locks, sights); err != nil { // nothing is decided on what was half seen
			r.Log.V(1).Info("Cannot look at the Leases of the other replicas", "error", err.Error())
			continue
		}
		r.note(names, sights)
		now, is := time.Now(), view{live: make([]bool, len(r.stages))}
		leader := sights[0]
		is.stand = leader.holder != "" && leader.live(now, r.LeaseDuration) && !r.Alike(leader.holder)
		for slot := range is.live {
			is.live[slot] = sights[slot+1].live(now, r.LeaseDuration)
		}
		select {
		case to <- is:
		case <-ctx.Done():
		}
	}
}

// note has others know what was seen.
func (r *Replica) note(names []string, sights []sight) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, name := range names {
		r.sights[name] = sights[i]
	}
}

// silent reports whether a record of a Lease was not renewed for so long that it is free.
func (r *Replica) silent(name string) func(raw []byte) bool {
	return func(raw []byte) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		s := r.sights[name]
		return s.known && bytes.Equal(raw, s.raw) && !s.live(time.Now(), r.LeaseDuration)
	}
}

func wait(ctx context.Context, tick <-chan time.Time) {
	select {
	case <-tick:
	case <-ctx.Done():
	}
}

func (r *Replica) look(ctx context.Context, names []string, locks []resourcelock.Interface, sights []sight) (err error) {
	for i, name := range names {
		if locks[i] == nil {
			if locks[i], err = r.Lock(name); err != nil {
				return err
			}
		}
		if sights[i], err = sights[i].look(ctx, locks[i]); err != nil {
			return err
		}
	}
	return nil
}

// decide carries out what is to be done next.
func (r *Replica) decide() error {
	if err := r.beMember(); err != nil {
		return err
	}
	v := View{Member: r.slot, Live: append([]bool{}, r.live...), Stages: r.stages, Stand: r.stand}
	if r.slot >= 0 {
		v.Live[r.slot] = true
	}
	for _, step := range v.Decide() {
		switch step.Do {
		case Try:
			if err := r.try(step.Shard); err != nil {
				return err
			}
		case Leave:
			r.elections[step.Shard].giveUp()
		case Drain:
			r.drain(step.Shard)
		}
	}
	return nil
}

// beMember takes a slot, if there is a free one.
func (r *Replica) beMember() (err error) {
	if r.member != nil {
		if r.stand || r.slot < 0 && r.live[r.trying] {
			r.leave()
		}
		return nil
	}
	slot := FreeSlot(r.live, r.first())
	if r.stand || slot < 0 {
		return nil
	}
	r.trying = slot
	r.member, err = r.elect(MemberLease(r.Name, slot), r.silent(MemberLease(r.Name, slot)), r.in(func(e *election) {
		if e == r.member && e.lock.use() {
			e.used, r.slot = true, slot
			r.Log.Info("Takes part in dividing the objects among shards", "slot", slot)
		}
	}), r.in(func(e *election) {
		if e.used && !e.drained {
			r.lose(MemberLease(r.Name, slot))
		}
		if e == r.member {
			r.member, r.slot = nil, -1
		}
	}))
	return err
}

// leave gives the slot up.
func (r *Replica) leave() {
	r.member.drained = true
	r.member.giveUp()
	r.slot = -1
}

// first is the slot that this replica tries first: replicas that start together do not all try the same.
func (r *Replica) first() int {
	return Of(r.Identity, len(r.stages))
}

// in has a function called by the goroutine of Start.
func (r *Replica) in(do func(*election)) func(*election) {
	return func(e *election) { r.post(func() { do(e) }) }
}

// post has an event handled, unless Start has returned.
func (r *Replica) post(event func()) {
	select {
	case r.events <- event:
	case <-r.over:
	}
}

// try tries to get a shard.
func (r *Replica) try(shard int) (err error) {
	r.stages[shard] = Trying
	r.elections[shard], err = r.elect(ShardLease(r.Name, shard), r.silent(ShardLease(r.Name, shard)), r.in(func(e *election) {
		if e.ended || !e.lock.use() {
			return
		}
		e.used, r.stages[shard] = true, Held
		r.tell("Got a shard", shard)
		r.Gate.gain(shard)
	}), r.in(func(e *election) {
		e.ended = true
		if e.used && !e.drained {
			r.lose(ShardLease(r.Name, shard))
			r.drain(shard)
		}
		r.settle(shard)
	}))
	return err
}

// drain lets go of a shard as soon as nothing is under way in it.
func (r *Replica) drain(shard int) {
	if r.stages[shard] != Held {
		return
	}
	r.stages[shard] = Draining
	e, idle := r.elections[shard], r.Gate.shut(shard, r.DrainWithin)
	go func() {
		idle()
		r.post(func() {
			e.drained = true
			r.tell("Let go of a shard", shard)
			r.settle(shard)
		})
	}()
}

// settle goes on with a shard in which nothing is under way any more, or whose election ended.
func (r *Replica) settle(shard int) {
	e := r.elections[shard]
	switch {
	case e.ended && (e.drained || !e.used):
		r.elections[shard], r.stages[shard] = nil, Idle
	case e.drained:
		e.giveUp()
	}
}

// lose ends the process, and everything that it does, now.
func (r *Replica) lose(lease string) {
	r.Log.Info("Lost a Lease", "lease", lease)
	r.Gate.abort()
	r.Lost()
}

func (r *Replica) tell(what string, shard int) {
	held := 0
	for _, stage := range r.stages {
		if stage == Held {
			held++
		}
	}
	r.Log.Info(what, "shard", shard, "held", held)
	r.Told(held)
}

// stop gives up everything, and returns when it is given up.
func (r *Replica) stop() error {
	r.stand = true
	for {
		if r.member != nil && !r.member.drained {
			r.leave()
		}
		busy := r.member != nil
		for shard, e := range r.elections {
			switch {
			case e == nil:
				continue
			case r.stages[shard] == Trying:
				e.giveUp()
			default:
				r.drain(shard)
			}
			busy = true
		}
		if !busy {
			return nil
		}
		(<-r.events)()
	}
}
