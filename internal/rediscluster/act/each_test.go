// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
)

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
