// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Only so many are told something at the same time, and in the end all of them are.
func TestEachIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const all = 2*commandsAtOnce + 1
		var begun atomic.Int32
		answer, ended := make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- each(t.Context(), make([]int, all), func(context.Context, int) error {
				begun.Add(1)
				<-answer
				return nil
			})
		}()
		if synctest.Wait(); begun.Load() != commandsAtOnce {
			t.Errorf("%d are told at the same time", begun.Load())
		}
		close(answer)
		if err := <-ended; err != nil || begun.Load() != all {
			t.Errorf("%d of %d were told: %v", begun.Load(), all, err)
		}
	})
}

// An item that fails or panics stops none of the others, nor cancels them; the first error in their order is told.
func TestEachGoesOn(t *testing.T) {
	var done atomic.Int32
	failed := make(chan struct{})
	err := each(t.Context(), []int{0, 1, 2, 3}, func(ctx context.Context, i int) error {
		switch i {
		case 1:
			defer close(failed)
			panic("makeslice: len out of range")
		case 2:
			return errors.New("no")
		}
		<-failed
		done.Add(1)
		return ctx.Err()
	})
	if err == nil || !strings.Contains(err.Error(), "panic: makeslice: len out of range") || done.Load() != 2 {
		t.Errorf("error %v, %d of 2 are done", err, done.Load())
	}
}
