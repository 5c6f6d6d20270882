// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process finds programs of the local cluster among this machine's processes, so that tests and benchmarks can kill or
// hang them as no API can.
package process

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// Local reports whether the cluster is the local one, whose processes are this machine's.
func Local() bool { return os.Getenv("LOCAL_CLUSTER") == "yes" }

// Find lists the processes of the local cluster that run a program and are in a control group whose path has this part: a pod's
// UID, or the name of a member between slashes.
func Find(program, group string) ([]int, error) {
	cluster := "/middleware-operator-" + cmp.Or(os.Getenv("MIDDLEWARE_OPERATOR_CLUSTER"), "local") + "/"
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var found []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		command, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // a process may end meanwhile
		name, _, _ := strings.Cut(string(command), "\x00")
		name, _, _ = strings.Cut(name, " ") // Redis shows its address behind its name
		groups, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
		if filepath.Base(name) == program && strings.Contains(string(groups), cluster) && strings.Contains(string(groups), group) {
			found = append(found, pid)
		}
	}
	return found, nil
}

// Signal sends a signal to what Find finds, and returns how many that were.
func Signal(signal syscall.Signal, program, group string) (int, error) {
	found, err := Find(program, group)
	if err != nil {
		return 0, err
	}
	for _, pid := range found {
		if err := syscall.Kill(pid, signal); err != nil {
			return 0, fmt.Errorf("signal %v to %s (%d): %w", signal, program, pid, err)
		}
	}
	return len(found), nil
}
