// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import "runtime"

// Version and Commit are set by the linker (-X); a build without them is a development build.
var (
	Version = "dev"
	Commit  = "unknown"
)

// Build describes the running binary.
type Build struct {
	Version, Commit, Go string
}

// BuildInfo returns what the linker and the Go toolchain recorded.
func BuildInfo() Build {
	return Build{Version: Version, Commit: Commit, Go: runtime.Version()}
}
