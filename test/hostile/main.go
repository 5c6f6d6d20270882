// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hostile runs a server that misbehaves in one way, for benchmarks of how clusters of hostile tenants affect others:
//
//	CGO_ENABLED=0 go build ./test/hostile && ./hostile --listen :6379 --kind bulk-overflow
//
// Where the environment variable HOSTILE names the kind, arguments that it does not know are passed over, so that it may
// stand in for the shell that starts redis-server in a pod.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"

	"middleware.hc.cn/operator/internal/redis/hostile"
)

func main() {
	fromEnvironment := os.Getenv("HOSTILE")
	if fromEnvironment != "" && slices.ContainsFunc(os.Args[1:], func(arg string) bool { return strings.HasSuffix(arg, "/switchover.sh") }) {
		return // in the place of the shell that runs the pod's preStop hook
	}
	flags := flag.NewFlagSet("hostile", flag.ContinueOnError)
	address := flags.String("listen", ":6379", "address to listen on")
	kind := flags.String("kind", cmp.Or(fromEnvironment, string(hostile.Silent)), fmt.Sprintf("one of %q", hostile.Kinds()))
	if err := flags.Parse(os.Args[1:]); err != nil && fromEnvironment == "" {
		os.Exit(2)
	}
	listener, err := net.Listen("tcp", *address)
	if err == nil {
		err = hostile.Serve(listener, hostile.Kind(*kind))
	}
	fmt.Fprintln(os.Stderr, "hostile:", err)
	os.Exit(1)
}
