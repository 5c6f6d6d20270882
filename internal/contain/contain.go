// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contain keeps a panic from ending the process when it happens in a goroutine of its own: there nobody else would
// recover it. It belongs at the foot of every goroutine that handles what servers answer.
package contain

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/go-logr/logr"

	"middleware.hc.cn/operator/internal/excerpt"
)

// Call runs a function, and makes an error of its panic, which it logs with its stack to the logger of the context. what
// names what was tried, such as `describe c-0-1`.
func Call(ctx context.Context, what string, run func() error) (err error) {
	defer func() {
		if recovered := recover(); recovered != nil {
			const longest = 200
			err = fmt.Errorf("%s: panic: %s", what, excerpt.Of(fmt.Sprint(recovered), longest))
			logr.FromContextOrDiscard(ctx).Error(err, "Recovered from a panic", "stack", string(debug.Stack()))
		}
	}()
	return run()
}
