// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

var errInUse = errors.New("what was begun under the Lease has not ended: it is not released")

// kept is a lock that is not released while it is in use: client-go releases one also that it could not renew. It is free as soon as it was
// not seen renewed for long enough: client-go begins to count when it is first tried.
type kept struct {
	resourcelock.Interface
	silent func(raw []byte) bool

	mu sync.Mutex
	// used reports whether something is under way under the Lease, given that nothing may begin any more: somebody else may have it.
	used, given bool
}

// use marks the Lease as in use, unless it was given away.
func (k *kept) use() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used = !k.given
	return k.used
}

// give lets it be released.
func (k *kept) give() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.used, k.given = false, true
}

// Get implements resourcelock.Interface.
func (k *kept) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := k.Interface.Get(ctx)
	if err != nil || record.HolderIdentity == k.Identity() || !k.silent(raw) {
		return record, raw, err //nolint:wrapcheck // as it is
	}
	free := *record
	free.HolderIdentity = ""
	return &free, append(slices.Clone(raw), '\n'), nil // another record, for who compares them
}

// Update implements resourcelock.Interface.
func (k *kept) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	if record.HolderIdentity == "" {
		k.mu.Lock()
		used := k.used
		k.given = k.given || !used
		k.mu.Unlock()
		if used {
			return errInUse
		}
	}
	return k.Interface.Update(ctx, record)
}

// election is the attempt to get one Lease, and to keep it.
type election struct {
	lock   *kept
	cancel context.CancelFunc
	// used reports whether what the Lease allows was begun, drained that it has ended, and ended that nobody renews it any more.
	used, drained, ended bool
}

// giveUp releases the Lease, or tries to get it no more.
func (e *election) giveUp() {
	e.lock.give()
	e.cancel()
}

// elect begins an election. silent reports whether a record has not been renewed for long enough. got is called when the Lease is this
// replica's, ended when it is no more, or is not tried any more.
func (o Options) elect(name string, silent func(raw []byte) bool, got, ended func(*election)) (*election, error) {
	lock, err := o.Lock(name)
	if err != nil {
		return nil, fmt.Errorf("make the lock of Lease %s: %w", name, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	e := &election{lock: &kept{Interface: lock, silent: silent}, cancel: cancel}
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: e.lock, Name: name, ReleaseOnCancel: true,
		LeaseDuration: o.LeaseDuration, RenewDeadline: o.RenewDeadline, RetryPeriod: o.RetryPeriod,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(context.Context) { got(e) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("elect by Lease %s: %w", name, err)
	}
	go func() {
		defer cancel()
		elector.Run(ctx)
		ended(e)
	}()
	return e, nil
}

// sight is what was last seen of a Lease, and when that was new: others' clocks count for nothing.
type sight struct {
	known  bool
	raw    []byte
	holder string
	at     time.Time
}

// live reports whether somebody has the Lease, or may have it.
func (s sight) live(now time.Time, duration time.Duration) bool {
	return !s.known || s.holder != "" && now.Sub(s.at) < duration
}

// look looks at a Lease again. What cannot be read stays as it was known.
func (s sight) look(ctx context.Context, lock resourcelock.Interface) (sight, error) {
	record, raw, err := lock.Get(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return sight{known: true, at: time.Now()}, nil
	case err != nil:
		return s, fmt.Errorf("read %s: %w", lock.Describe(), err)
	case s.known && bytes.Equal(raw, s.raw) && record.HolderIdentity == s.holder:
		return s, nil
	}
	return sight{known: true, raw: raw, holder: record.HolderIdentity, at: time.Now()}, nil
}
