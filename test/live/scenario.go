// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
)

// listOfOpen is the variable with the path of a file that takes a line for each test which stayed inconclusive; `make test` prints
// it last. Without it, such a test fails.
const listOfOpen = "INCONCLUSIVE"

// runs is how often a scenario is run at the most. What is inconclusive three times is so because of the machine, not of a moment.
const runs = 3

// repeatsWithin is how long all repeats of a test binary may take before none is begun any more: a machine that is busy for
// longer will be so for the next scenario, too.
const repeatsWithin = 10 * time.Minute

// repeated is how long repeats have taken, in nanoseconds.
var repeated atomic.Int64

// NothingMoved means that no slot moved under a load.
const NothingMoved v1alpha1.MigrationMethod = ""

// Run is one run of a scenario.
type Run struct {
	t    *testing.T
	open []string // why it is inconclusive
}

// Scenario runs what is to go unnoticed by an application, anew when a run was inconclusive, each as a test of its own: body makes a
// namespace and all else again. What fails fails at once.
func Scenario(t *testing.T, body func(*testing.T, *Run)) {
	t.Helper()
	open := conclude(func() bool { return repeated.Load() < int64(repeatsWithin) }, func(number int) (bool, []string) {
		began := time.Now()
		if number > 1 {
			defer func() { repeated.Add(int64(time.Since(began))) }()
		}
		run := &Run{}
		passed := t.Run(fmt.Sprintf("run %d", number), func(t *testing.T) {
			run.t = t
			body(t, run)
			if len(run.open) > 0 && !t.Failed() {
				t.Skipf("inconclusive: %s", strings.Join(run.open, "; "))
			}
		})
		return passed, run.open
	})
	if len(open) > 0 {
		leave(t, os.Getenv(listOfOpen), strings.Join(open, "; "))
	}
}

// conclude runs again what passed and left something open, while it may, and returns what the last run left open; nothing when one
// failed.
func conclude(may func() bool, run func(number int) (passed bool, open []string)) (open []string) {
	for number := 1; number == 1 || number <= runs && may(); number++ {
		passed, left := run(number)
		if !passed || len(left) == 0 {
			return nil
		}
		open = left
	}
	return open
}

// leave ends a test as neither passed nor failed, and lists it; where there is no list, it has failed.
func leave(t *testing.T, list, why string) {
	t.Helper()
	if list == "" {
		t.Fatalf("inconclusive: %s", why)
	}
	file, err := os.OpenFile(list, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o600) //nolint:gosec // the Makefile says which
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(file, "%s: %s\n", t.Name(), why)
	if closed := file.Close(); err != nil || closed != nil {
		t.Fatal(err, closed)
	}
	t.Skipf("inconclusive: %s", why)
}

// Inconclusive says why the run cannot be judged.
func (r *Run) Inconclusive(why string) { r.open = append(slices.Clip(r.open), why) }

// WantUnnoticed ends a load and says that planned work went unnoticed by it, with slots that moved by a method, or none that did:
// nothing failed, nothing was lost, all that was filled in is there, and at no time did two instances of a shard stop serving.
func (r *Run) WantUnnoticed(load *Load, slotsMoved v1alpha1.MigrationMethod) {
	r.t.Helper()
	result := load.Stop()
	failures, open := result.Unnoticed(slotsMoved)
	failures = append(failures, watched.alarmsOf(load.namespace, true)...)
	for _, failure := range failures {
		r.t.Error(failure)
	}
	if open != "" {
		r.Inconclusive(open)
	}
	if load.data != nil {
		load.WantData()
	}
}
