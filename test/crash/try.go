// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
)

// Try runs a flow undisturbed, which returns what came of it, and then with what may happen at its writes: what is wanted then is
// the same. One trial of the flow, which is the nth, with every fourth flow a late write besides, or all of them (All); after three that
// failed no other is tried.
func Try(t *testing.T, nth int, run func(t *testing.T, k *Killer, want string) string) {
	t.Helper()
	undisturbed := &Killer{}
	want := run(t, undisturbed, "")
	writes := undisturbed.Writes()
	if len(writes) == 0 {
		t.Fatal("nothing was written")
	}
	var failed atomic.Int64
	tried := map[string]int{}
	trials := Some(Trials(len(writes), undisturbed.Requests(), len(writes)+1), 1, nth)
	if !All() && nth%4 == 0 {
		trials = append(trials, Trial{"late writes", 1 + len(writes)/2, Late, 0})
	}
	for _, trial := range trials {
		tried[trial.What]++
		t.Run(fmt.Sprintf("%d %s %d", trial.At, trial.When, trial.Again), func(t *testing.T) {
			t.Parallel()
			if failed.Load() > 2 {
				t.Fatal("not tried any more")
			}
			t.Cleanup(func() {
				if t.Failed() {
					failed.Add(1)
				}
			})
			run(t, &Killer{At: trial.At, When: trial.When, Again: trial.Again}, want)
		})
	}
	t.Logf("%d writes: %v\n%s", len(writes), tried, strings.Join(writes, "\n"))
}
