// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// dialWithin connects from the network of another process of this machine.
func dialWithin(ctx context.Context, namespace, network, address string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var ns *os.File
		if ns, err = os.Open(namespace); err != nil {
			return
		}
		defer ns.Close()
		if err = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return
		}
		conn, err = (&net.Dialer{}).DialContext(ctx, network, address)
	}()
	<-done
	return conn, err
}
