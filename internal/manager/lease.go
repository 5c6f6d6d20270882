// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
)

// errDeposed ends the operator: another one works on the same objects.
var errDeposed = errors.New("another operator has the lease by now: this one was stopped, or cut off from the API server, for too long")

// ownLease is the lock of the election. client-go takes a leader which reads that another one has the lease for leading until
// the renew deadline is over, counted from then: who was stopped for longer than the lease and goes on would work beside its
// successor for that long.
type ownLease struct {
	resourcelock.Interface
	// deposed is called when the lease turns out to be another's that was held.
	deposed func()
	held    atomic.Bool
}

// leases makes the locks of one process.
type leases struct {
	namespace, identity string
	core                typedcorev1.CoreV1Interface
	client              coordinationv1.CoordinationV1Interface
	events              record.EventRecorder
	deposed             func()
}

// newLeases makes what locks are made of, in a namespace. The identity tells how the process divides objects.
func newLeases(config *rest.Config, namespace string, o Options, deposed func()) (*leases, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), "leader-election") // AddUserAgent changes what it is given
	config.Timeout = max(o.LeaderElection.RenewDeadline/2, time.Second)    // one request that hangs does not cost the lease
	if o.Shards > 0 {
		config.QPS = -1 // a renewal waits for no other one
	}
	core, err := typedcorev1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the events of the lease: %w", err)
	}
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client for the lease: %w", err)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, err
	}
	identity := host + "_" + string(uuid.NewUUID()) + divides(o.Shards)
	events := record.NewBroadcaster()
	events.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: core.Events(namespace)})
	return &leases{namespace: namespace, identity: identity, core: core, client: client, deposed: deposed,
		events: events.NewRecorder(scheme.Scheme, corev1.EventSource{Component: identity})}, nil
}

// divides is what the identity of a process that divides objects among shards ends with.
func divides(shards int) string {
	if shards == 0 {
		return ""
	}
	return fmt.Sprintf("_shards-%d", shards)
}

// leader is the lock of the election, which tells in Events who leads.
func (l *leases) leader(name string) (resourcelock.Interface, error) { return l.lock(name, l.events) }

// quiet is the lock of a Lease of which no Event tells.
func (l *leases) quiet(name string) (resourcelock.Interface, error) { return l.lock(name, nil) }

func (l *leases) lock(name string, events resourcelock.EventRecorder) (resourcelock.Interface, error) {
	lock, err := resourcelock.NewWithLabels(resourcelock.LeasesResourceLock, l.namespace, name, l.core, l.client,
		resourcelock.ResourceLockConfig{Identity: l.identity, EventRecorder: events}, nil)
	return &ownLease{Interface: lock, deposed: l.deposed}, err
}

// Get implements resourcelock.Interface.
func (l *ownLease) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && l.held.Load() && record.HolderIdentity != l.Identity() {
		l.deposed()
	}
	return record, raw, err
}

// Create implements resourcelock.Interface.
func (l *ownLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.noted(record, l.Interface.Create(ctx, record))
}

// Update implements resourcelock.Interface.
func (l *ownLease) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.noted(record, l.Interface.Update(ctx, record))
}

// noted notes whether the lease is held after a write. One that failed may have been carried out, and Get tells.
func (l *ownLease) noted(record resourcelock.LeaderElectionRecord, err error) error {
	if err == nil {
		l.held.Store(record.HolderIdentity == l.Identity())
	}
	return err
}
