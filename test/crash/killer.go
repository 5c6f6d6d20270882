// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package crash ends the operator's process at one of its writes, or has that write refused: what the tests share that do so
// against a simulated cluster and against an API server.
package crash

import (
	"errors"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Moment is when the process ends, as seen from one of its writes; or what else becomes of the write.
type Moment string

// The moments at which a process ends, and what becomes of a write while it lives.
const (
	Never      Moment = ""
	Before     Moment = "before it"
	Unanswered Moment = "after it, before the answer"
	Answered   Moment = "after the answer"
	// Lost is a write that is carried out and whose answer does not arrive. The process lives.
	Lost Moment = "lost answer"
	// Late is a write at which the process is stopped, as by its machine, for longer than its lease: a successor does all the rest.
	// Then the process goes on, with this write first, until it notices that it leads no more.
	Late Moment = "late"
)

// Moments are those at which a process ends.
var Moments = []Moment{Before, Unanswered, Answered}

// ErrReset is a connection that breaks.
var ErrReset error = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}

// Refusals are answers of an API server that says no once.
var Refusals = map[Moment]error{
	"403":   apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("a policy says no")),
	"409":   apierrors.NewConflict(schema.GroupResource{}, "", errors.New("somebody was quicker")),
	"422":   apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("spec"), nil, "is not liked")}),
	"429":   apierrors.NewTooManyRequests("too many requests", 1),
	"500":   apierrors.NewInternalError(errors.New("etcd has no leader")),
	"reset": ErrReset,
}

// Killer counts the writes of the operator's processes and strikes at one of them. A nil one only lets them pass.
type Killer struct {
	// At is the write, from 1; 0 is none. When is what happens there.
	At   int
	When Moment
	// Again is at which of its writes the successor ends as well; 0: it lives.
	Again int
	// Meanwhile, if set, is called when the write comes, before anything becomes of it. It must not ask the Killer.
	Meanwhile func()
	// Say is told what happens.
	Say func(format string, arguments ...any)

	mu       sync.Mutex
	unheeded bool
	writes   []write
	latest   time.Time
	struck   bool
}

type write struct {
	what string
	api  bool
}

// Process is one life of the operator.
type Process struct {
	killer *Killer
	// dying: the answer is there, and the process gets no further than to its next write. dead: what it still sends goes nowhere.
	dying, dead bool
	ended       chan struct{}
	// stopped is not nil from when the process is stopped on, and closed when it goes on.
	stopped chan struct{}
}

// Begin is the start of a process.
func (k *Killer) Begin() *Process {
	if k == nil {
		return nil
	}
	return &Process{killer: k, ended: make(chan struct{})}
}

// Heed makes writes count from now on, or no more. At first they do.
func (k *Killer) Heed(heeded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.unheeded = !heeded
}

// Strikes notes a write, to the API server or elsewhere, and says what is to become of it. Before also stands for a write of a
// process that has ended.
func (p *Process) Strikes(what string, api bool) Moment {
	if p == nil {
		return Never
	}
	k := p.killer
	k.mu.Lock()
	defer k.mu.Unlock()
	if p.dead || p.dying {
		p.dead = true
		return Before
	}
	k.latest = time.Now()
	if k.unheeded {
		return Never
	}
	k.writes = append(k.writes, write{what, api})
	if len(k.writes) != k.At {
		return Never
	}
	k.struck = true
	if k.Meanwhile != nil {
		k.Meanwhile()
	}
	if k.When == Never {
		k.say("!!! write %d, %s", len(k.writes), what)
		return Never
	}
	if k.Again > 0 {
		k.At, k.Again = len(k.writes)+k.Again, 0
	}
	if Refusals[k.When] != nil || k.When == Lost {
		k.say("!!! write %d, %s: answered with %s", len(k.writes), what, k.When)
		return k.When
	}
	if k.When == Late {
		k.say("!!! write %d, %s: the operator's process is stopped", len(k.writes), what)
		p.stopped = make(chan struct{})
		close(p.ended)
		return Late
	}
	k.say("!!! write %d, %s: the operator's process ends %s", len(k.writes), what, k.When)
	p.dead, p.dying = k.When != Answered, k.When == Answered
	close(p.ended)
	return k.When
}

// goesOn is closed when a process that is stopped goes on; nil when it is not stopped.
func (p *Process) goesOn() chan struct{} {
	if p == nil {
		return nil
	}
	p.killer.mu.Lock()
	defer p.killer.mu.Unlock()
	return p.stopped
}

func (k *Killer) say(format string, arguments ...any) {
	if k.Say != nil {
		k.Say(format, arguments...)
	}
}

// Died reports whether the process has ended.
func (p *Process) Died() bool {
	if p == nil {
		return false
	}
	p.killer.mu.Lock()
	defer p.killer.mu.Unlock()
	return p.dead || p.dying
}

// End ends the process, whatever it does.
func (p *Process) End() {
	p.killer.mu.Lock()
	defer p.killer.mu.Unlock()
	if !p.dead && !p.dying && p.stopped == nil {
		close(p.ended)
	}
	p.dead = true
}

// Struck reports whether the write came at which something was to happen.
func (k *Killer) Struck() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.struck
}

// Stirs notes that a process does something, if it is no write.
func (k *Killer) Stirs() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.latest = time.Now()
}

// Latest is when a process last did something.
func (k *Killer) Latest() time.Time {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.latest
}

// Writes are those that counted so far.
func (k *Killer) Writes() []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var list []string
	for _, w := range k.writes {
		list = append(list, w.what)
	}
	return list
}

// Requests are the writes to the API server so far, from 1.
func (k *Killer) Requests() []int {
	k.mu.Lock()
	defer k.mu.Unlock()
	var numbers []int
	for i, w := range k.writes {
		if w.api {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

// Trial is one thing that happens to a flow.
type Trial struct {
	// What sums up trials of its kind.
	What  string
	At    int
	When  Moment
	Again int
}

// All reports whether everything is tried, and not only a sample.
func All() bool { return os.Getenv("SIMULATION") == "all" }

// Trials are what is tried on a flow that an undisturbed run took through so many writes, some of them to the API server: the
// process ends at each write at each moment, its successor a few writes later as well; each write goes out late; and each write to
// the API server is refused in each way, or its answer is lost. Unless SIMULATION is "all", only a sample: every moment and refusal,
// at some of about so many writes each.
func Trials(writes int, requests []int, sample int) []Trial {
	stride := writes/sample + 1
	if All() {
		stride = 1
	}
	var trials []Trial
	for i, when := range Moments {
		for at := 1 + i%stride; at <= writes; at += stride {
			trials = append(trials, Trial{"crashes", at, when, 0})
		}
		for at := 1 + i; at <= writes; at += 3 * stride {
			trials = append(trials, Trial{"pairs of crashes", at, when, 1 + at%3})
		}
	}
	late := stride
	if !All() {
		late *= 4
	}
	for at := 1 + stride/2; at <= writes; at += late {
		trials = append(trials, Trial{"late writes", at, Late, 0})
	}
	for i, when := range append(slices.Sorted(maps.Keys(Refusals)), Lost) {
		what := "refusals"
		if when == Lost {
			what = "lost answers"
		}
		for n := i % stride; n < len(requests); n += stride {
			trials = append(trials, Trial{what, requests[n], when, 0})
		}
	}
	return trials
}

// Some are a few of the trials, others from another place on, or all of them if SIMULATION is "all".
func Some(trials []Trial, few, from int) []Trial {
	if All() {
		return trials
	}
	var some []Trial
	for i := range few {
		some = append(some, trials[(17*from+i*len(trials)/few)%len(trials)])
	}
	return some
}
