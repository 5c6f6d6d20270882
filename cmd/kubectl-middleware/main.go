// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command kubectl-middleware is the plugin `kubectl middleware`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"middleware.hc.cn/operator/internal/plugin"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	err := plugin.New(plugin.Environment{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Lookup: os.LookupEnv}).ExecuteContext(ctx)
	if err == nil {
		return
	}
	if !errors.Is(err, plugin.ErrFound) {
		fmt.Fprintln(os.Stderr, "Error:", plugin.Told(err))
	}
	os.Exit(1)
}
