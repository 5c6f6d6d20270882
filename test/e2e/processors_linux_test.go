// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"middleware.hc.cn/operator/test/process"
)

// ownProcessors gives the instances of all RedisClusters and the load the processors of the local cluster before all else, as if each had
// one of its own, until they end. What an instance forks shares them as usual. Two processors carry three nodes, a store and whatever else
// the machine does, which would keep each of them waiting for longer than what is measured. Threads that begin later have it within a
// second.
func ownProcessors(t *testing.T) {
	t.Helper()
	if err := everyThread(); err != nil {
		t.Logf("instances share the processors with all else: %v", err)
		return
	}
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for tick := time.NewTicker(time.Second); ; {
			select {
			case <-done:
				tick.Stop()
				return
			case <-tick.C:
				_ = everyThread() // what has just ended
			}
		}
	}()
}

func everyThread() error {
	for _, program := range []string{"redis-server", "valkey-server", "load"} {
		found, err := process.Find(program, "/kubepods/")
		if err != nil {
			return err
		}
		for _, pid := range found {
			threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // it may have ended
			for _, thread := range threads {
				id, err := strconv.Atoi(thread.Name())
				if err != nil {
					return err
				}
				if err := inTurn(id); err != nil && !errors.Is(err, unix.ESRCH) {
					return fmt.Errorf("thread %d of %s: %w", id, program, err)
				}
			}
		}
	}
	return nil
}

// inTurn has a thread go before all that are not in turn (SCHED_RR), which the kernel allows in the root group alone where groups have a
// share of that (CONFIG_RT_GROUP_SCHED).
func inTurn(thread int) error {
	attributes := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}
	err := unix.SchedSetAttr(thread, attributes, 0)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	for _, root := range []string{"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"} {
		err := os.WriteFile(filepath.Join(root, "tasks"), []byte(strconv.Itoa(thread)), 0)
		if err == nil {
			return unix.SchedSetAttr(thread, attributes, 0)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return err
}
