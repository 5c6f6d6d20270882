// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNetwork does something in the network of another process of this machine.
func inNetwork(namespace string, do func() error) (err error) {
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
		err = do()
	}()
	<-done
	return err
}
