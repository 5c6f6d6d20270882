// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the installed operator on a real Kubernetes with real Redis and
// Valkey. It needs KUBECONFIG, and the operator deployed there (make test-e2e does both).
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"

	"middleware.hc.cn/operator/test/live"
)

func TestMain(m *testing.M) {
	if err := connect(); err != nil {
		fmt.Fprintf(os.Stderr, "end-to-end tests: %v; run them with make test-e2e, which brings a cluster up and installs the operator\n", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// busy has a place for each test that keeps two processors busy beside others: with more of them clients wait for the machine.
var busy = make(chan struct{}, 3)

// entering is of the test that waits for others to leave it some of the machine.
var entering sync.Mutex

const (
	// crowded is how many tasks wait for each processor on a machine that has enough to do.
	crowded = 8
	// calmWithin is how long a test waits at most for others to leave it some of the machine.
	calmWithin = 10 * time.Minute
	// felt is how long it takes until the machine shows that another test has begun.
	felt = 20 * time.Second
)

// parallel runs a test beside others when it has a place, and the machine is not crowded. What waits most of the time takes none: it calls
// t.Parallel, as does a test whose parts are parallel. Where processors have enough to do, no two begin in the same moment: forming a
// cluster takes most of what one takes of the machine.
func parallel(t *testing.T) {
	t.Helper()
	t.Parallel()
	busy <- struct{}{}
	t.Cleanup(func() { <-busy })
	deadline := time.Now().Add(calmWithin)
	entering.Lock()
	defer entering.Unlock()
	for len(busy) > 1 && tasks() > crowded && time.Now().Before(deadline) {
		time.Sleep(time.Second)
	}
	if tasks() > crowded/2 {
		time.Sleep(felt)
	}
}

// shownElsewhere leaves a test to E2E=all: a lower layer shows what it does, by the tests named, and it takes minutes.
func shownElsewhere(t *testing.T, by string) {
	t.Helper()
	if os.Getenv("E2E") != "all" {
		t.Skip("takes minutes: with E2E=all; else " + by)
	}
}

// tasks is how many tasks ran or waited for each processor in the last minute; 0 where that is not told.
func tasks() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	minute, _, _ := strings.Cut(string(text), " ")
	load, err := strconv.ParseFloat(minute, 64)
	if err != nil {
		return 0
	}
	return load / float64(runtime.NumCPU())
}

func connect() error {
	if err := live.Connect(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*live.Timeout)
	defer cancel()
	var operator appsv1.Deployment
	if err := live.Kube.Get(ctx, theOperator, &operator); err != nil {
		return fmt.Errorf("find the operator: %w", err)
	}
	return errors.Join(clearLeftovers(ctx), live.Watch(context.Background()))
}
