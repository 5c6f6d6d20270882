// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"crypto/sha256"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
)

// One seed tells one story, however busy the machine is: the same steps, the same bytes sent to each node in the same order,
// the same cluster in the end.
func TestOneSeedOneStory(t *testing.T) {
	for _, tell := range []struct {
		name string
		seed uint64
		run  func(t *testing.T, seed uint64, onStart func(*simulation)) *simulation
	}{
		{"scaling Redis", 2, scales},
		{"scaling Valkey", 3, scales},
		{"healing", 1, healsAnyDamage},
	} {
		t.Run(tell.name, func(t *testing.T) {
			want := story(t, tell.seed, tell.run)
			before := runtime.GOMAXPROCS(1)
			onOne := story(t, tell.seed, tell.run)
			runtime.GOMAXPROCS(before)
			busy := besideOthers(func() []string { return story(t, tell.seed, tell.run) })
			for name, got := range map[string][]string{"with one processor": onOne, "beside busy goroutines": busy} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("another story %s:\n%s", name, diff)
				}
			}
		})
	}
}

// story is everything that happened in a simulation.
func story(t *testing.T, seed uint64, run func(*testing.T, uint64, func(*simulation)) *simulation) []string {
	t.Helper()
	var lines []string
	synctest.Test(t, func(t *testing.T) {
		sent, arrived := sha256.New(), 0
		s := run(t, seed, func(s *simulation) {
			s.schedule.told = func(addr string, bytes []byte) {
				_, _ = fmt.Fprintf(sent, "%s %s %q\n", s.world.Now(), addr, bytes) // it does not fail
				if arrived++; arrived%50 == 0 {                                    // enough to see where two stories part
					s.say("%d messages arrived, the last at %s: %x", arrived, addr, sent.Sum(nil)[:8])
				}
			}
		})
		lines = append(s.narrative, strings.Split(s.state(), "\n")...)
		lines = append(lines, fmt.Sprintf("%d messages: %x", arrived, sent.Sum(nil)))
	})
	return lines
}

// besideOthers runs something while every processor has more to do.
func besideOthers[T any](run func() T) T {
	var ended atomic.Bool
	defer ended.Store(true)
	for range 2 * runtime.GOMAXPROCS(0) {
		go func() {
			for !ended.Load() {
				runtime.Gosched()
			}
		}()
	}
	return run()
}
