// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/test/measure"
)

const (
	firstText  = "first"
	secondText = "second"

	// settleLimit is how long custom resources may take to settle.
	settleLimit = 20 * time.Minute
	// tail is how much longer work is counted after the last custom resource has settled: what is written about it belongs to it.
	tail = 2 * time.Second
	// pause is made before something else is measured.
	pause = 10 * time.Second
)

// run is what was measured of one contender with one number of custom resources.
type run struct {
	Contender string  `json:"contender"`
	Round     int     `json:"round"`
	CRs       int     `json:"crs"`
	Created   float64 `json:"createdSeconds"` // how long creating the custom resources took; the operator is at work meanwhile
	Settle    *work   `json:"settle,omitempty"`
	Idle      *work   `json:"idle,omitempty"`
	Update    *work   `json:"update,omitempty"`
	Drift     *drifts `json:"drift,omitempty"`
	// AtSettled is the operator's memory when its custom resources had settled, AtEnd when everything was measured.
	AtSettled measure.Memory `json:"atSettled"`
	AtEnd     measure.Memory `json:"atEnd"`
}

// work is what something took.
type work struct {
	Seconds      float64             `json:"seconds"` // until it was done, or how long it was watched
	OperatorCPU  float64             `json:"operatorCPUSeconds"`
	APIServerCPU float64             `json:"apiServerCPUSeconds"`
	EtcdCPU      float64             `json:"etcdCPUSeconds"`
	Allocated    measure.Allocations `json:"allocated"`
	Requests     measure.Requests    `json:"requests"`
}

// turn is one contender at work in a namespace of its own.
type turn struct {
	*server
	launch
	operator *operator
	world    *world
	names    []string
}

// measureRun lets a contender settle custom resources, and, if all is wanted, idle, update and repair them; then it removes them.
func measureRun(ctx context.Context, s *server, o options, c contender, size int, all bool) (measured run, err error) {
	measured = run{Contender: c.name, CRs: size}
	t, end, err := s.begin(ctx, o, c, size)
	if err != nil {
		return measured, err
	}
	defer func() {
		if endErr := end(); err == nil {
			err = endErr
		}
	}()
	if measured.Settle, err = t.settle(ctx, &measured); err != nil {
		return measured, err
	}
	if c.driftOnly {
		measured.Settle = nil
	}
	if all && o.idle > 0 && !c.driftOnly {
		if measured.Idle, err = t.idle(ctx, o.idle); err != nil {
			return measured, err
		}
	}
	if all && o.updates && !c.driftOnly {
		if measured.Update, err = t.update(ctx); err != nil {
			return measured, err
		}
	}
	if all && o.drifts > 0 {
		time.Sleep(pause)
		progress("%s: drifts", c.name)
		repaired, err := s.makeDrifts(ctx, t.world, t.names[:min(o.drifts, size)])
		if err != nil {
			return measured, err
		}
		measured.Drift = &repaired
	}
	measured.AtEnd, err = measure.MemoryOf(t.operator.PID())
	return measured, err
}

// begin starts a contender. The returned function ends it and removes what it left.
func (s *server) begin(ctx context.Context, o options, c contender, size int) (*turn, func() error, error) {
	l, err := s.prepare(ctx, o, c)
	if err != nil {
		return nil, nil, err
	}
	watching, stopWatching := context.WithCancel(ctx)
	t := &turn{server: s, launch: l}
	if t.world, err = s.watch(watching, l.namespace); err != nil {
		stopWatching()
		return nil, nil, err
	}
	progress("%s: %d custom resources, namespace %s", c.name, size, l.namespace)
	if t.operator, err = l.start(ctx); err != nil {
		stopWatching()
		return nil, nil, err
	}
	for i := range size {
		t.names = append(t.names, fmt.Sprintf("web-%04d", i))
	}
	return t, func() error {
		t.operator.Kill()
		stopWatching()
		s.Audit.Forget()
		return s.clear(context.WithoutCancel(ctx), l.namespace)
	}, nil
}

// create creates all custom resources.
func (t *turn) create(ctx context.Context) error {
	return inParallel(t.names, func(_ int, name string) error {
		_, err := t.dynamic.Resource(webs).Namespace(t.namespace).Create(ctx, newWeb(t.namespace, name, firstText), metav1.CreateOptions{})
		return err
	})
}

func (t *turn) settle(ctx context.Context, measured *run) (*work, error) {
	time.Sleep(tail) // the operator's watches begin
	finish := func() error { return nil }
	if t.operator.pprof != "" {
		prefix := filepath.Join(t.options.profiles, fmt.Sprintf("%s-%d", t.name, len(t.names)))
		finish = measure.Profile(ctx, t.operator.pprof, prefix, 10*time.Second)
	}
	w, err := t.during(tail, func() error {
		began := time.Now()
		if err := t.create(ctx); err != nil {
			return err
		}
		measured.Created = time.Since(began).Seconds()
		return t.all(ctx, func(name string) bool { return t.world.settled(name, firstText) })
	})
	if err != nil {
		return nil, err
	}
	progress("%s: settled after %.1f s", t.name, w.Seconds)
	if measured.AtSettled, err = measure.MemoryOf(t.operator.PID()); err != nil {
		return nil, err
	}
	return w, finish()
}

func (t *turn) idle(ctx context.Context, period time.Duration) (*work, error) {
	progress("%s: idle", t.name)
	time.Sleep(pause)
	return t.during(0, func() error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(period):
			return nil
		}
	})
}

func (t *turn) update(ctx context.Context) (*work, error) {
	patch := []byte(`{"spec":{"text":"` + secondText + `"}}`)
	w, err := t.during(tail, func() error {
		if err := inParallel(t.names, func(_ int, name string) error {
			_, err := t.dynamic.Resource(webs).Namespace(t.namespace).Patch(ctx, name, mergePatch, patch, metav1.PatchOptions{})
			return err
		}); err != nil {
			return err
		}
		return t.all(ctx, func(name string) bool { return t.world.carries(name, secondText) })
	})
	if err == nil {
		progress("%s: updated after %.1f s", t.name, w.Seconds)
	}
	return w, err
}

// all waits until something holds for all custom resources.
func (t *turn) all(ctx context.Context, holds func(string) bool) error {
	left, err := await(ctx, t.names, settleLimit, holds)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d of %d custom resources are not done after %v, %s among them (the operator's log is %s)",
			len(left), len(t.names), settleLimit, left[0], t.logs)
	}
	return err
}

// during measures what the operator does while a function runs and some time after.
func (t *turn) during(after time.Duration, call func() error) (*work, error) {
	before, err := t.usage(t.operator)
	if err != nil {
		return nil, err
	}
	if err := call(); err != nil {
		return nil, err
	}
	seconds := time.Since(before.at).Seconds()
	time.Sleep(after)
	then, err := t.usage(t.operator)
	if err != nil {
		return nil, err
	}
	events, err := t.Audit.Read()
	if err != nil {
		return nil, err
	}
	return &work{
		Seconds:      seconds,
		OperatorCPU:  then.operator - before.operator,
		APIServerCPU: then.apiServer - before.apiServer,
		EtcdCPU:      then.etcd - before.etcd,
		Allocated: measure.Allocations{Bytes: then.allocated.Bytes - before.allocated.Bytes,
			Objects: then.allocated.Objects - before.allocated.Objects},
		Requests: measure.Count(events, t.user, before.at, then.at),
	}, nil
}
