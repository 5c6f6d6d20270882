// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"fmt"
	"slices"
)

// The model: replicas, and the Leases of two shards and of two members. Everything that can happen next happens, from every state that is
// reached: replicas look and decide (with the real View.Decide), take Leases, reconcile, drain, release, crash, start again, are stopped
// and go on, and are cut off from the API server; and time passes. What is assumed of Leases is what client-go gives: a holder that can
// renews in time, one that cannot ends before others take its Lease for free, and so does one that was stopped when it goes on; others
// judge by how long they have not seen it renewed; a Lease is taken on condition that nobody has written it since.

const (
	replicas = 3
	modelled = 2            // shards, and slots of members
	leases   = 2 * modelled // first the members', then the shards'

	deadline = 1 // a holder that has not renewed for so long ends
	duration = 2 // a Lease that was not seen renewed for so long is free
	nobody   = -1
	never    = -2 // the holder of a Lease that was not looked at
)

type mode int8

const (
	up mode = iota
	down
	stopped // neither its clock nor anything else of it goes on
	cut     // it runs, and does not reach the API server
	absent  // it never runs
)

// lease is who has it, and how long ago that one renewed it.
type lease struct{ holder, age int8 }

// seen is what a replica knows of a Lease: whose it was, and for how long it has not seen it change.
type seen struct{ holder, still int8 }

type replica struct {
	mode      mode
	slot      int8 // of the Lease that it has; nobody: none
	trying    int8 // to get that slot
	stages    [modelled]Stage
	reconcile bool // an object of the shard that is watched
	seen      [leases]seen
}

// world is a state of the model.
type world struct {
	leases   [leases]lease
	replicas [replicas]replica
	faults   int8 // that may still come
}

// rules are what the model does; a test breaks one to show that it would be noticed.
type rules struct {
	watched      int  // the shard whose reconciliations are followed
	releaseEarly bool // a Lease is released before what was begun has ended
	trustTimes   bool // a Lease is free when its time says so, by a clock that is ahead
	keepForever  bool // nothing is ever let go
}

func fresh() replica {
	r := replica{slot: nobody, trying: nobody}
	for i := range r.seen {
		r.seen[i] = seen{holder: never}
	}
	return r
}

// start is where all begins: with so many replicas, the last of which starts later, and so many faults to come.
func start(of int, faults int8) world {
	w := world{faults: faults}
	for i := range w.leases {
		w.leases[i].holder = nobody
	}
	for i := range w.replicas {
		w.replicas[i] = fresh()
	}
	w.replicas[of-1].mode = down
	for i := range w.replicas[of:] {
		w.replicas[of+i].mode = absent
	}
	return w
}

// look is one replica's look at all Leases.
func (w *world) look(i int) {
	for l, is := range w.leases {
		if s := &w.replicas[i].seen[l]; s.holder != is.holder || is.age == 0 {
			*s = seen{holder: is.holder}
		}
	}
}

// free reports whether a Lease seems free to a replica.
func (r *replica) free(l int) bool {
	s := r.seen[l]
	return s.holder == nobody || s.holder != never && s.still >= duration
}

// decide looks and decides, as a replica does once a period.
func (w *world) decide(i int, rules rules) {
	w.look(i)
	r := &w.replicas[i]
	v := View{Member: int(r.slot), Live: make([]bool, modelled), Stages: r.stages[:]}
	for slot := range v.Live {
		v.Live[slot] = !r.free(slot) || slot == int(r.slot)
	}
	if r.slot == nobody {
		r.trying = int8(FreeSlot(v.Live, i%modelled))
	}
	for _, step := range v.Decide() {
		switch step.Do {
		case Try:
			r.stages[step.Shard] = Trying
		case Leave:
			r.stages[step.Shard] = Idle
		case Drain:
			if !rules.keepForever {
				r.stages[step.Shard] = Draining
			}
		}
	}
}

// take gets a Lease, if it is free.
func (w *world) take(i, l int, rules rules) bool {
	w.look(i)
	if !w.replicas[i].free(l) && !rules.trustTimes {
		return false
	}
	w.leases[l] = lease{holder: int8(i)}
	w.look(i)
	return true
}

// end is the end of a process.
func (w *world) end(i int) {
	w.replicas[i] = fresh()
	w.replicas[i].mode = down
}

// held are the Leases that a replica believes to have.
func (r *replica) held() (held []int) {
	if r.slot != nobody {
		held = append(held, int(r.slot))
	}
	for shard, stage := range r.stages {
		if stage == Held || stage == Draining {
			held = append(held, modelled+shard)
		}
	}
	return held
}

// late reports whether a replica has a Lease that it has not renewed in time, or that is another's.
func (w *world) late(i int) bool {
	return w.deposed(i) || slices.ContainsFunc(w.replicas[i].held(), func(l int) bool { return w.leases[l].age >= deadline })
}

// deposed reports whether a replica finds that a Lease of its own is another's.
func (w *world) deposed(i int) bool {
	return slices.ContainsFunc(w.replicas[i].held(), func(l int) bool { return int(w.leases[l].holder) != i })
}

func (w *world) renew(i int) {
	for _, l := range w.replicas[i].held() {
		w.leases[l].age = 0
	}
}

// tick lets time pass: who can renews and looks, and who could not renew in time ends.
func (w *world) tick() {
	for l := range w.leases {
		if w.leases[l].holder != nobody {
			w.leases[l].age = min(w.leases[l].age+1, duration+1)
		}
	}
	for i := range w.replicas {
		r := &w.replicas[i]
		for l := range r.seen {
			if r.seen[l].holder >= 0 && (r.mode == up || r.mode == cut) {
				r.seen[l].still = min(r.seen[l].still+1, duration)
			}
		}
		switch {
		case r.mode == up && w.deposed(i):
			w.end(i)
		case r.mode == up:
			w.renew(i)
		case r.mode == cut && w.late(i):
			w.end(i)
		}
	}
	for i := range w.replicas {
		if w.replicas[i].mode == up {
			w.look(i)
		}
	}
}

// event is something that happens to a replica, or to one of its shards.
type event struct {
	what  string
	of    int
	shard int
}

// works are what a replica that runs may do besides deciding.
func (w *world) works(i int, rules rules) (events []event) {
	r := &w.replicas[i]
	if r.slot == nobody && r.trying != nobody {
		events = append(events, event{"take slot", i, 0})
	}
	for shard, stage := range r.stages {
		busy := r.reconcile && shard == rules.watched
		switch {
		case stage == Trying:
			events = append(events, event{"take", i, shard})
		case stage == Draining && (!busy || rules.releaseEarly):
			events = append(events, event{"release", i, shard})
		case stage == Held && !busy && shard == rules.watched:
			events = append(events, event{"begin", i, shard})
		}
	}
	if r.reconcile {
		events = append(events, event{"end", i, rules.watched})
	}
	return events
}

// can are all events that may come next.
func (w *world) can(rules rules) (events []event) {
	events = append(events, event{what: "time passes"})
	for i := range w.replicas {
		switch w.replicas[i].mode {
		case down:
			events = append(events, event{what: "start", of: i})
		case stopped:
			events = append(events, event{what: "go on", of: i})
		case cut:
			events = append(events, event{what: "reach again", of: i})
		case up:
			events = append(append(events, event{what: "decide", of: i}), w.works(i, rules)...)
			if w.faults > 0 {
				events = append(events, event{what: "crash", of: i}, event{what: "stop", of: i}, event{what: "cut", of: i})
			}
		}
	}
	return events
}

// after is the world after an event.
func (w world) after(e event, rules rules) world { //nolint:gocyclo // a table
	i, l := e.of, modelled+e.shard
	r := &w.replicas[i]
	fault := func(mode mode) { w.faults, r.mode = w.faults-1, mode }
	switch e.what {
	case "time passes":
		w.tick()
	case "decide":
		w.decide(i, rules)
	case "take slot":
		if w.take(i, int(r.trying), rules) {
			r.slot, r.trying = r.trying, nobody
		}
	case "take":
		if w.take(i, l, rules) {
			r.stages[e.shard] = Held
		}
	case "begin", "end":
		r.reconcile = e.what == "begin"
	case "release":
		r.stages[e.shard], w.leases[l] = Idle, lease{holder: nobody}
	case "start":
		*r = fresh()
	case "crash":
		w.faults--
		w.end(i)
	case "stop":
		fault(stopped)
	case "cut":
		fault(cut)
	case "go on", "reach again":
		if r.mode = up; w.late(i) {
			w.end(i)
		} else {
			w.renew(i)
			for l := range r.seen { // it reads what was written meanwhile
				r.seen[l].still = 0
			}
		}
	}
	return w
}

// unsafe says who works on the shard besides its owner. One that is stopped does nothing, and one that was cut off does until it ends.
func (w *world) unsafe() string {
	var who []int
	for i, r := range w.replicas {
		if (r.mode == up || r.mode == cut) && r.reconcile {
			who = append(who, i)
		}
	}
	if len(who) > 1 {
		return fmt.Sprintf("%v reconcile objects of one shard", who)
	}
	return ""
}
