// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package live

import (
	"syscall"
	"testing"

	"middleware.hc.cn/operator/test/process"
)

// Local reports whether the cluster is the local one, whose processes are this machine's.
func Local() bool { return process.Local() }

// Signal sends a signal to processes of the local cluster (process.Find) and returns how many there were.
func Signal(t *testing.T, signal syscall.Signal, program, group string) int {
	t.Helper()
	found, err := process.Signal(signal, program, group)
	if err != nil {
		t.Fatal(err)
	}
	return found
}
