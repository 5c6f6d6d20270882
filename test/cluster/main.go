// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command cluster runs a real Kubernetes cluster on this machine: several nodes,
// each in Linux namespaces of its own, from binaries built from pinned Go modules
// and images built from Debian packages. README.md tells how it works.
package main

import (
	"os"

	"middleware.hc.cn/operator/test/cluster/internal/cli"
)

func main() {
	os.Exit(cli.Main())
}
