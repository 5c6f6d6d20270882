// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var resource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// server has Leases as an API server does.
type server struct {
	mu      sync.Mutex
	records map[string][]byte
	version map[string]int
	away    map[string]bool // by identity
}

// lock is one client's lock of one Lease.
type lock struct {
	*server
	name, identity string
	version        int
}

func (l *lock) Identity() string   { return l.identity }
func (l *lock) Describe() string   { return l.name }
func (l *lock) RecordEvent(string) {}
func (l *lock) reach() error {
	if l.away[l.identity] {
		return errors.New("the API server is not reached")
	}
	return nil
}

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.reach(); err != nil {
		return nil, nil, err
	}
	raw, is := l.records[l.name]
	if !is {
		return nil, nil, apierrors.NewNotFound(resource, l.name)
	}
	l.version = l.server.version[l.name]
	record := &resourcelock.LeaderElectionRecord{}
	return record, raw, json.Unmarshal(raw, record)
}

func (l *lock) Create(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, is := l.records[l.name]; is {
		return apierrors.NewAlreadyExists(resource, l.name)
	}
	return l.write(record)
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.version != l.server.version[l.name] {
		return apierrors.NewConflict(resource, l.name, errors.New("somebody has written it"))
	}
	return l.write(record)
}

func (l *lock) write(record resourcelock.LeaderElectionRecord) error {
	if err := l.reach(); err != nil {
		return err
	}
	raw, err := json.Marshal(record)
	l.records[l.name] = raw
	l.server.version[l.name]++
	l.version = l.server.version[l.name]
	return err
}

func (s *server) cut(identity string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away[identity] = true
}

// books has which objects are reconciled, by whom.
type books struct {
	mu      sync.Mutex
	by      map[string]string
	counts  map[string]int // of reconciliations, by replica
	mistake string
}

func (b *books) begin(namespace, by string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if other := b.by[namespace]; other != "" {
		b.mistake = fmt.Sprintf("%s is reconciled by %s and %s", namespace, other, by)
	}
	b.by[namespace] = by
	b.counts[by]++
}

func (b *books) end(namespace string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.by[namespace] = ""
}

const (
	testShards = 6
	work       = 700 * time.Millisecond
	leasedFor  = 15 * time.Second
)

// running is a replica with workers that reconcile an object of each namespace again and again.
type running struct {
	gate *Gate
	stop context.CancelFunc
	lost chan struct{}
	done chan struct{}
}

func (s *server) run(b *books, identity string, stubborn bool) *running {
	ctx, stop := context.WithCancel(context.Background())
	is := &running{gate: NewGate(testShards), stop: stop, lost: make(chan struct{}), done: make(chan struct{})}
	var once sync.Once
	r := NewReplica(Options{Gate: is.gate, Name: "operator", Identity: identity, Leader: "operator", Alike: func(string) bool { return true },
		Lock: func(name string) (resourcelock.Interface, error) {
			return &lock{server: s, name: name, identity: identity}, nil
		},
		LeaseDuration: leasedFor, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, DrainWithin: 5 * time.Second,
		Lost: func() { once.Do(func() { close(is.lost); stop() }) }, Told: func(int) {}, Log: logr.Discard()})
	var workers sync.WaitGroup
	for i := range 3 * testShards {
		namespace := fmt.Sprint("team-", i)
		workers.Go(func() {
			for ctx.Err() == nil {
				if within, leave, ok := is.gate.enter(context.Background(), namespace); ok {
					b.begin(namespace, identity)
					if stubborn {
						<-within.Done()
					} else {
						time.Sleep(work)
					}
					b.end(namespace)
					leave()
				}
				time.Sleep(work / 7)
			}
		})
	}
	go func() {
		_ = r.Start(ctx)
		workers.Wait()
		close(is.done)
	}()
	return is
}

func (r *running) held() (n int) {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	for _, of := range r.gate.open {
		if of != nil && !of.closed {
			n++
		}
	}
	return n
}

func held(replicas ...*running) (held []int) {
	for _, r := range replicas {
		held = append(held, r.held())
	}
	return held
}

func wants(t *testing.T, what string, b *books, want []int, replicas ...*running) {
	t.Helper()
	if got := held(replicas...); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: %v shards are held, want %v", what, got, want)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mistake != "" {
		t.Fatalf("%s: %s", what, b.mistake)
	}
}

func setup() (*server, *books) {
	return &server{records: map[string][]byte{}, version: map[string]int{}, away: map[string]bool{}},
		&books{by: map[string]string{}, counts: map[string]int{}}
}

func TestReplicasDivideShards(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		first := s.run(b, "first", false)
		time.Sleep(10 * time.Second)
		wants(t, "one alone", b, []int{6}, first)
		second, third := s.run(b, "second", false), s.run(b, "third", false)
		time.Sleep(20 * time.Second)
		wants(t, "two came", b, []int{2, 2, 2}, first, second, third)
		second.stop()
		<-second.done
		time.Sleep(8 * time.Second) // no Lease has to run out
		wants(t, "one was stopped", b, []int{3, 0, 3}, first, second, third)

		s.cut("third")
		<-third.lost
		if third.held() > 0 {
			t.Error("who lost a Lease lets reconciliations begin")
		}
		<-third.done
		time.Sleep(leasedFor + 8*time.Second)
		wants(t, "one was cut off", b, []int{6}, first)
		again := s.run(b, "again", false)
		time.Sleep(20 * time.Second)
		wants(t, "one came back", b, []int{3, 3}, first, again)
		first.stop()
		again.stop()
		<-first.done
		<-again.done
		for name, raw := range s.records {
			record := resourcelock.LeaderElectionRecord{}
			if err := json.Unmarshal(raw, &record); err != nil || record.HolderIdentity != "" && record.HolderIdentity != "third" {
				t.Errorf("%s is %q's, %v", name, record.HolderIdentity, err)
			}
		}
	})
}

// A reconciliation that does not end by itself is told to after a while, and the Lease goes when it has.
func TestAShardIsReleasedWhenNothingIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		first := s.run(b, "first", true)
		time.Sleep(10 * time.Second)
		second := s.run(b, "second", false)
		time.Sleep(4 * time.Second)
		if second.held() != 0 {
			t.Error("a shard was released while a reconciliation was under way")
		}
		time.Sleep(15 * time.Second)
		wants(t, "later", b, []int{3, 3}, first, second)
		first.stop()
		second.stop()
		<-first.done
		<-second.done
	})
}

// While a leader divides objects in another way, or not at all, a replica works on nothing.
func TestOneOfAnotherKindLeads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, b := setup()
		leader := &lock{server: s, name: "operator", identity: "old"}
		lead := func(holder string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			if err := leader.write(resourcelock.LeaderElectionRecord{HolderIdentity: holder}); err != nil {
				t.Fatal(err)
			}
		}
		lead("old")
		ctx, stop := context.WithCancel(t.Context())
		gate, done := NewGate(testShards), make(chan struct{})
		is := &running{gate: gate}
		r := NewReplica(Options{Gate: gate, Name: "operator", Identity: "new", Leader: "operator",
			Alike: func(holder string) bool { return holder == "new" },
			Lock: func(name string) (resourcelock.Interface, error) {
				return &lock{server: s, name: name, identity: "new"}, nil
			},
			LeaseDuration: leasedFor, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second, DrainWithin: 5 * time.Second,
			Lost: func() { t.Error("a Lease was lost") }, Told: func(int) {}, Log: logr.Discard()})
		go func() {
			_ = r.Start(ctx)
			close(done)
		}()
		time.Sleep(10 * time.Second)
		wants(t, "an old one leads", b, []int{0}, is)
		lead("new")
		time.Sleep(10 * time.Second)
		wants(t, "a new one leads", b, []int{6}, is)
		lead("old")
		time.Sleep(5 * time.Second)
		wants(t, "an old one leads again", b, []int{0}, is)
		stop()
		<-done
	})
}
