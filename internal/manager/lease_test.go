// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// lock is a lease in memory.
type lock struct {
	resourcelock.Interface
	holder string
	fails  error
}

func (l *lock) Identity() string { return "me" }

func (l *lock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &resourcelock.LeaderElectionRecord{HolderIdentity: l.holder}, nil, l.fails
}

func (l *lock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	if l.fails == nil {
		l.holder = record.HolderIdentity
	}
	return l.fails
}

func (l *lock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.Update(ctx, record)
}

// How long a request of an election may take, and how often it may ask, is of the election alone: a watch would end as soon.
func TestLeasesLeaveTheConnectionOfOthersAlone(t *testing.T) {
	connection := func() *rest.Config { return &rest.Config{Host: "https://api.example.com", QPS: 20} }
	config, o := connection(), Options{Shards: 4}
	o.LeaderElection.RenewDeadline = 10 * time.Second
	if _, err := newLeases(config, "middleware", o, nil); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(connection(), config); diff != "" {
		t.Errorf("the connection of all others changed (-before +after):\n%s", diff)
	}
}

// An operator that held the lease ends when it reads that another one has it; not one that waits for it, has released it, or cannot
// read it.
func TestDeposed(t *testing.T) {
	for name, tt := range map[string]struct {
		wrote   []string // holders
		is      string
		fails   error
		deposed bool
	}{
		"waits":                       {is: "another"},
		"leads":                       {wrote: []string{"me"}, is: "me"},
		"leads, and another one does": {wrote: []string{"me"}, is: "another", deposed: true},
		"leads, and nobody is named":  {wrote: []string{"me"}, is: "", deposed: true},
		"has released it":             {wrote: []string{"me", ""}, is: "another"},
		"cannot read it":              {wrote: []string{"me"}, is: "another", fails: errors.New("no route to host")},
	} {
		t.Run(name, func(t *testing.T) {
			deposed := false
			inner := &lock{}
			l := &ownLease{Interface: inner, deposed: func() { deposed = true }}
			for i, holder := range tt.wrote {
				write := l.Update
				if i == 0 {
					write = l.Create
				}
				if err := write(t.Context(), resourcelock.LeaderElectionRecord{HolderIdentity: holder}); err != nil {
					t.Fatal(err)
				}
			}
			inner.holder, inner.fails = tt.is, tt.fails
			if _, _, err := l.Get(t.Context()); !errors.Is(err, tt.fails) || deposed != tt.deposed {
				t.Errorf("error %v, deposed %t, want %t", err, deposed, tt.deposed)
			}
		})
	}
}
